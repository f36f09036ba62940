//! Manifests and tags on disk.
//!
//! A push makes all its links visible under one lock, and readers take the same lock: nobody sees a manifest
//! without its tag, or a tag without its manifest.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::durable::{self, Staged};
use super::inner::{Inner, linked, read_link};
use crate::store::{Result, StoreError};
use crate::{Digest, MANIFEST_LIMIT_BYTES, Manifest, Repository, Tag};

impl Inner {
    pub(super) fn resolve_tag(&self, repository: &Repository, tag: &Tag) -> Result<Digest> {
        let _guard = self.shared(repository);
        read_link(&self.layout.tag_current(repository, tag))?
            .ok_or_else(|| StoreError::UnknownManifest(tag.to_string()))
    }

    pub(super) fn manifest(&self, repository: &Repository, digest: &Digest) -> Result<Manifest> {
        let unknown = || StoreError::UnknownManifest(digest.to_string());
        let canonical = {
            let _guard = self.shared(repository);
            self.revision(repository, digest)?.ok_or_else(unknown)?
        };
        let damaged = |why: String| StoreError::Damaged {
            what: format!("manifest {canonical}"),
            why,
        };
        let path = self.layout.data(&canonical);
        let bytes = match read_bounded(&path) {
            Ok(bytes) => bytes,
            Err(error) if durable::is_absent(&error) => {
                tracing::warn!(repo.name = %repository, %digest, "a link points at a manifest that is not there");
                return Err(unknown());
            }
            Err(error) => return Err(StoreError::io("reading a manifest")(error)),
        };
        let manifest =
            Manifest::parse(bytes.into(), None).map_err(|error| damaged(error.to_string()))?;
        if manifest.digest != canonical {
            return Err(damaged(format!(
                "its bytes have the digest {}",
                manifest.digest
            )));
        }
        Ok(manifest)
    }

    fn revision(&self, repository: &Repository, digest: &Digest) -> Result<Option<Digest>> {
        linked(digest, |digest| {
            self.layout.revision_link(repository, digest)
        })
    }

    pub(super) fn put_manifest(
        &self,
        repository: &Repository,
        manifest: &Manifest,
        digest: &Digest,
        tags: &[Tag],
    ) -> Result<()> {
        let failed = || StoreError::io("storing a manifest");
        self.check_content(repository, manifest)?;
        self.keep_bytes(manifest).map_err(failed())?;
        let links = self.stage_manifest_links(repository, &manifest.digest, digest, tags)?;
        let targets: Vec<_> = links.iter().map(|(_, link)| link.clone()).collect();
        {
            let _guard = self.exclusive(repository);
            // Again, since a blob may have been deleted meanwhile.
            self.check_content(repository, manifest)?;
            place_all(links).map_err(failed())?;
        }
        targets
            .iter()
            .try_for_each(|link| durable::sync_parent(link))
            .map_err(failed())
    }

    fn check_content(&self, repository: &Repository, manifest: &Manifest) -> Result<()> {
        let mut missing = Vec::new();
        for digest in manifest.required_blobs() {
            match self.find_blob(repository, digest) {
                Ok(_) => {}
                Err(StoreError::UnknownBlob(_)) => missing.push(digest.clone()),
                Err(error) => return Err(error),
            }
        }
        for digest in manifest.required_manifests() {
            if self.revision(repository, digest)?.is_none() {
                missing.push(digest.clone());
            }
        }
        if missing.is_empty() {
            Ok(())
        } else {
            Err(StoreError::MissingContent(missing))
        }
    }

    fn keep_bytes(&self, manifest: &Manifest) -> io::Result<()> {
        let target = self.layout.data(&manifest.digest);
        let size = manifest.bytes.len() as u64;
        if fs::metadata(&target).is_ok_and(|metadata| metadata.len() == size) {
            return Ok(());
        }
        durable::create_parent(&target)?;
        Staged::write(self.layout.temporary(), &manifest.bytes)?.place(&target)?;
        durable::sync_parent(&target)
    }

    /// In the order in which they become visible to a process that takes no lock: the tags last.
    fn stage_manifest_links(
        &self,
        repository: &Repository,
        canonical: &Digest,
        name: &Digest,
        tags: &[Tag],
    ) -> Result<Vec<(Staged, PathBuf)>> {
        let mut links = vec![self.layout.revision_link(repository, canonical)];
        if name != canonical {
            links.push(self.layout.revision_link(repository, name));
        }
        links.extend(
            tags.iter()
                .map(|tag| self.layout.tag_history(repository, tag, canonical)),
        );
        links.extend(
            tags.iter()
                .map(|tag| self.layout.tag_current(repository, tag)),
        );
        links
            .into_iter()
            .map(|link| self.stage_link(link, canonical))
            .collect()
    }

    pub(super) fn delete_manifest(&self, repository: &Repository, digest: &Digest) -> Result<()> {
        let failed = || StoreError::io("deleting a manifest");
        let _guard = self.exclusive(repository);
        let canonical = self
            .revision(repository, digest)?
            .ok_or_else(|| StoreError::UnknownManifest(digest.to_string()))?;
        // Tags first: after a crash half-way the manifest is still there and can be deleted again.
        for tag in self.read_tags(repository).map_err(failed())? {
            if read_link(&self.layout.tag_current(repository, &tag))?.as_ref() == Some(&canonical) {
                self.remove_tag(repository, &tag).map_err(failed())?;
            }
        }
        [&canonical, digest]
            .into_iter()
            .try_for_each(|digest| {
                let link = self.layout.revision_link(repository, digest);
                if durable::remove_file(&link)? {
                    durable::sync_parent(&link)?;
                }
                Ok(())
            })
            .map_err(failed())
    }

    pub(super) fn delete_tag(&self, repository: &Repository, tag: &Tag) -> Result<()> {
        let _guard = self.exclusive(repository);
        if read_link(&self.layout.tag_current(repository, tag))?.is_none() {
            return Err(StoreError::UnknownManifest(tag.to_string()));
        }
        self.remove_tag(repository, tag)
            .map_err(StoreError::io("deleting a tag"))
    }

    /// The folder leaves in one step: a half-removed one would still be a tag to distribution.
    fn remove_tag(&self, repository: &Repository, tag: &Tag) -> io::Result<()> {
        let dir = self.layout.tag(repository, tag);
        let removed = self.layout.temporary();
        fs::rename(&dir, &removed)?;
        durable::sync_parent(&dir)?;
        fs::remove_dir_all(removed)
    }
}

/// All links or none: what was new is taken back when a later one fails, as on a full disk.
fn place_all(links: Vec<(Staged, PathBuf)>) -> io::Result<()> {
    let mut new: Vec<PathBuf> = Vec::new();
    for (staged, link) in links {
        let is_new = !link.exists();
        if let Err(error) = staged.place(&link) {
            for link in &new {
                durable::remove_file(link)?;
            }
            return Err(error);
        }
        if is_new {
            new.push(link);
        }
    }
    Ok(())
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    if fs::metadata(path)?.len() > MANIFEST_LIMIT_BYTES as u64 {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "larger than any manifest",
        ));
    }
    fs::read(path)
}
