//! Changes applied to the folder: first temporary files, which need room, then renames and removals.
//!
//! Nothing is synced here: the journal holds every change until a checkpoint.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::change::{BlobSource, ContentName, JournalEntry, StoreChange};
use super::committer::nanos;
use super::layout::FolderLayout;
use super::staged::{self, Staged};
use crate::verified::Verified;
use oci::{Digest, Manifest, Repository, Tag};

/// A change whose files are written and only need their names.
#[derive(Debug, Default)]
pub(super) struct PreparedFiles {
    /// Content that was hashed while it arrived.
    brought: Option<Digest>,
    /// An upload's file, and its final name.
    moved: Option<(PathBuf, PathBuf)>,
    /// In the order of the renames, for programs that take no lock: tags last.
    staged: Vec<(Staged, PathBuf)>,
    /// Files and folders to remove.
    removed: Vec<PathBuf>,
}

/// Writes the temporary files of a change; dropping the result removes them.
///
/// Errors: NotFound – the bytes of a blob are missing.
pub(super) fn prepare(
    layout: &FolderLayout,
    verified: &Verified,
    entry: &JournalEntry,
) -> io::Result<PreparedFiles> {
    let mut preparing = Preparing {
        layout,
        verified,
        content: entry.content.clone(),
        prepared: PreparedFiles::default(),
    };
    match &entry.change {
        StoreChange::AddBlob {
            repository,
            blob,
            size,
            from,
        } => {
            let upload = match from {
                BlobSource::Stored => None,
                BlobSource::Upload(id) => Some(layout.upload(repository, *id)),
            };
            preparing.bytes(&blob.canonical, *size, upload)?;
            preparing.names(blob, |digest| layout.layer_link(repository, digest))?;
        }
        StoreChange::AddManifest {
            repository,
            manifest,
            tags,
            is_signed,
            ..
        } => {
            let digest = &manifest.canonical;
            if *is_signed {
                preparing.signed(repository, digest)?;
            }
            let size = preparing.content.as_ref().map_or(0, Bytes::len) as u64;
            preparing.bytes(digest, size, None)?;
            preparing.names(manifest, |name| layout.revision_link(repository, name))?;
            for tag in tags {
                // By the client's digest, which `current` cannot hold.
                let history = layout.tag_history(repository, tag, manifest.requested());
                preparing.link(history, digest)?;
            }
            for tag in tags {
                preparing.link(layout.tag_current(repository, tag), digest)?;
            }
        }
        StoreChange::RemoveBlob {
            repository, blob, ..
        } => {
            preparing.remove(blob, |digest| layout.layer_link(repository, digest));
        }
        StoreChange::RemoveManifest {
            repository,
            manifest,
            tags,
            ..
        } => {
            preparing.remove_tags(repository, tags);
            let signed = layout.signed(repository, &manifest.canonical);
            preparing.prepared.removed.push(signed);
            preparing.remove(manifest, |digest| layout.revision_link(repository, digest));
        }
        StoreChange::RemoveTag {
            repository, tag, ..
        } => {
            preparing.remove_tags(repository, std::slice::from_ref(tag));
        }
    }
    Ok(preparing.prepared)
}

struct Preparing<'a> {
    layout: &'a FolderLayout,
    verified: &'a Verified,
    content: Option<Bytes>,
    prepared: PreparedFiles,
}

impl Preparing<'_> {
    /// The bytes of content, unless they are verified already: from an upload, or else from the journal.
    fn bytes(&mut self, digest: &Digest, size: u64, upload: Option<PathBuf>) -> io::Result<()> {
        let target = self.layout.data(digest);
        let has = |path: &Path| fs::metadata(path).is_ok_and(|found| found.len() == size);
        let is_there = has(&target);
        if !(is_there && self.verified.contains(digest)) {
            let data = upload.as_ref().map(|upload| upload.join("data"));
            if let Some(data) = data.filter(|data| has(data)) {
                create_parent(&target)?;
                self.prepared.moved = Some((data, target));
                self.prepared.brought = Some(digest.clone());
            } else if let Some(content) = self.content.clone() {
                self.stage(target, &content)?;
                self.prepared.brought = Some(digest.clone());
            } else if !is_there {
                return Err(io::ErrorKind::NotFound.into());
            }
        }
        self.prepared.removed.extend(upload);
        Ok(())
    }

    /// The manifest as pushed; the file under its digest has no signatures.
    fn signed(&mut self, repository: &Repository, digest: &Digest) -> io::Result<()> {
        let signed = self.content.clone().unwrap_or_default();
        let manifest = Manifest::parse(signed, None).map_err(io::Error::other)?;
        self.stage(self.layout.signed(repository, digest), &manifest.bytes)?;
        self.content = Some(manifest.digested().clone());
        Ok(())
    }

    fn names(&mut self, name: &ContentName, link: impl Fn(&Digest) -> PathBuf) -> io::Result<()> {
        name.digests()
            .try_for_each(|digest| self.link(link(digest), &name.canonical))
    }

    fn link(&mut self, link: PathBuf, to: &Digest) -> io::Result<()> {
        self.stage(link, to.to_string().as_bytes())
    }

    fn stage(&mut self, target: PathBuf, bytes: &[u8]) -> io::Result<()> {
        create_parent(&target)?;
        let staged = Staged::write(self.layout.temporary(), bytes)?;
        self.prepared.staged.push((staged, target));
        Ok(())
    }

    fn remove(&mut self, name: &ContentName, link: impl Fn(&Digest) -> PathBuf) {
        // The canonical link is removed first: without it, no alias counts.
        self.prepared.removed.extend(name.digests().map(link));
    }

    fn remove_tags(&mut self, repository: &Repository, tags: &[Tag]) {
        let folders = tags.iter().map(|tag| self.layout.tag(repository, tag));
        self.prepared.removed.extend(folders);
    }
}

/// Whether the target of a removal was pushed later than the change allows.
pub(super) fn is_too_young(layout: &FolderLayout, change: &StoreChange) -> io::Result<bool> {
    let (link, since) = match change {
        StoreChange::RemoveTag {
            repository,
            tag,
            unless_since: Some(since),
        } => (layout.tag_current(repository, tag), since),
        StoreChange::RemoveManifest {
            repository,
            manifest,
            unless_since: Some(since),
            ..
        } => (
            layout.revision_link(repository, manifest.requested()),
            since,
        ),
        _ => return Ok(false),
    };
    Ok(nanos(fs::metadata(link)?.modified()?) > *since)
}

/// Removes a folder atomically, by a rename first: distribution would still list a tag that is half removed.
pub(super) fn remove(layout: &FolderLayout, folder: &Path) -> io::Result<()> {
    let leaving = layout.temporary();
    fs::rename(folder, &leaving)?;
    fs::remove_dir_all(leaving)
}

fn create_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

impl PreparedFiles {
    /// Renames and removes files. Idempotent.
    pub(super) fn place(self, layout: &FolderLayout, verified: &Verified) -> io::Result<()> {
        // Bytes before links, so that no link is visible without its content.
        if let Some((from, to)) = self.moved {
            staged::rename(&from, &to)?;
        }
        for (staged, target) in self.staged {
            staged.place(&target)?;
        }
        if let Some(canonical) = &self.brought {
            verified.mark(canonical);
        }
        // Removals last: the folder of an upload may hold the bytes until their rename.
        for path in self.removed {
            if path.is_dir() {
                remove(layout, &path)?;
            } else {
                staged::remove_file(&path)?;
            }
        }
        Ok(())
    }
}
