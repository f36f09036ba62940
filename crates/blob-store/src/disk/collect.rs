//! Garbage collection, while requests are served: candidates are found here, and removed by the committing thread, so
//! that no push can use them meanwhile.
//!
//! Four rounds, each over the results of the one before: orphaned manifests, blobs of a repository that none of its
//! manifests needs, content without a repository, repositories without content. Content within the grace period
//! stays: its manifest may still be pushed.
//!
//! Candidates come from the index, the decision from the folder: before a removal, the links that might name the
//! content are compared with the index again. Content of other programs has its grace period from its discovery on.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use super::adoption;
use super::change::{ContentName, JournalEntry, StoreChange};
use super::committer::{nanos, now};
use super::inner::DiskInner;
use super::orphans::OrphanedManifest;
use super::{scan, staged};
use crate::{CollectedGarbage, Result, StoreError};
use oci::{Digest, Repository};

/// Removals per batch; larger batches would delay pushes.
const BATCH: usize = 32;
/// Candidates in memory; the links of all repositories are read again once for each of these batches.
const CANDIDATES: usize = 1 << 16;
const DOING: &str = "looking for garbage";

/// Collects garbage; with `is_dry`, only counts it. To be called after adoption, before which all content looks like
/// garbage.
pub(super) fn collect(
    inner: &DiskInner,
    before: SystemTime,
    is_dry: bool,
) -> Result<CollectedGarbage> {
    let mut collection = Collection {
        inner,
        before,
        is_dry,
        found: CollectedGarbage::default(),
    };
    collection.check()?;
    collection.orphaned_manifests()?;
    collection.unneeded_blobs()?;
    collection.check()?;
    collection.unused_content()?;
    collection.empty_repositories()?;
    Ok(collection.found)
}

struct Collection<'a> {
    inner: &'a DiskInner,
    before: SystemTime,
    is_dry: bool,
    found: CollectedGarbage,
}

impl Collection<'_> {
    /// Errors: Io – a part of the folder could not be read.
    fn check(&self) -> Result<()> {
        if self.inner.shared.is_incomplete.load(Ordering::Acquire) {
            let why = "a part of the storage folder could not be read, so no garbage is collected; see the log of the start";
            return Err(StoreError::io(DOING)(io::Error::other(why)));
        }
        Ok(())
    }

    /// Whether a manifest of the repository cannot be read, so that its needs are unknown.
    fn has_unread_manifests(&self, repository: &Repository) -> Result<bool> {
        let snapshot = self.inner.shared.index.snapshot()?;
        for name in scan::links(&self.inner.layout().revisions(repository))? {
            if snapshot.manifest(repository, name.requested())?.is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn orphaned_manifests(&mut self) -> Result<()> {
        let mut after: Option<OrphanedManifest> = None;
        let mut compared: Option<Repository> = None;
        let before = nanos(self.before);
        loop {
            let snapshot = self.inner.shared.index.snapshot()?;
            let page = snapshot.orphans(after.as_ref(), BATCH)?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            after = Some(last.clone());
            for orphan in page.into_iter().filter(|orphan| orphan.at < before) {
                if compared.as_ref() != Some(&orphan.repository) {
                    self.inner.committer.refresh(&orphan.repository)?;
                    compared = Some(orphan.repository.clone());
                }
                self.remove_manifest(orphan)?;
            }
        }
    }

    /// Removes an orphaned manifest without a tag, an index or an existing subject, in the folder and in the index.
    fn remove_manifest(&mut self, orphan: OrphanedManifest) -> Result<()> {
        let OrphanedManifest {
            repository,
            canonical,
            ..
        } = orphan;
        let index = &self.inner.shared.index;
        if index.snapshot()?.adopted_at(&repository)? >= nanos(self.before) {
            return Ok(());
        }
        let mut entry = JournalEntry {
            change: StoreChange::RemoveManifest {
                repository,
                manifest: ContentName::new(canonical.clone(), &canonical),
                tags: Vec::new(),
                unless_since: Some(nanos(self.before)),
                frees: true,
            },
            content: None,
        };
        let removed = if self.is_dry {
            index.update()?.tables()?.check(&mut entry)
        } else {
            let mut removed = self.inner.committer.commit_all(std::iter::once(entry))?;
            removed.pop().unwrap_or(Ok(()))
        };
        match removed {
            Ok(()) => self.found.manifests += 1,
            // It is needed, was pushed again, or is already removed.
            Err(StoreError::InUse(_) | StoreError::Renewed | StoreError::UnknownManifest(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn unneeded_blobs(&mut self) -> Result<()> {
        let mut after = String::new();
        loop {
            let snapshot = self.inner.shared.index.snapshot()?;
            let Some(repository) = snapshot.next_with_blobs(&after)? else {
                return Ok(());
            };
            after = repository.to_string();
            if self.unneeded(&repository)?.is_empty() {
                continue;
            }
            self.inner.committer.refresh(&repository)?;
            let adopted_at = self.adopted_at(&repository)?;
            // Other programs may copy the manifests of an image last.
            if adopted_at >= nanos(self.before) || self.has_unread_manifests(&repository)? {
                continue;
            }
            for batch in self.unneeded(&repository)?.chunks(BATCH) {
                self.remove_blobs(&repository, batch)?;
            }
        }
    }

    fn adopted_at(&self, repository: &Repository) -> Result<u64> {
        self.inner.shared.index.snapshot()?.adopted_at(repository)
    }

    /// Blobs of a repository older than the grace period that no manifest needs.
    fn unneeded(&self, repository: &Repository) -> Result<Vec<ContentName>> {
        let blobs = self.inner.shared.index.snapshot()?.blobs(repository)?;
        let needed: HashSet<_> = blobs
            .iter()
            .filter(|(_, is_needed)| *is_needed)
            .map(|(name, _)| &name.canonical)
            .collect();
        let mut unneeded = Vec::new();
        for (name, _) in &blobs {
            if !needed.contains(&name.canonical) && self.is_old(repository, name)? {
                unneeded.push(name.clone());
            }
        }
        Ok(unneeded)
    }

    /// Whether the last push, mount or check of a blob is older than the grace period.
    fn is_old(&self, repository: &Repository, name: &ContentName) -> Result<bool> {
        if self
            .inner
            .checked_blobs
            .contains(repository, name.requested())
        {
            return Ok(false);
        }
        let link = self.inner.layout().layer_link(repository, name.requested());
        is_older(&link, self.before)
    }

    fn remove_blobs(&mut self, repository: &Repository, blobs: &[ContentName]) -> Result<()> {
        if self.is_dry {
            self.found.links += blobs.len() as u64;
            return Ok(());
        }
        let entries = blobs.iter().map(|name| JournalEntry {
            change: StoreChange::RemoveBlob {
                repository: repository.clone(),
                blob: ContentName::new(name.requested().clone(), name.requested()),
                only_unused: true,
            },
            content: None,
        });
        for removed in self.inner.committer.commit_all(entries)? {
            match removed {
                Ok(()) => self.found.links += 1,
                // It is needed now, or is already removed.
                Err(StoreError::InUse(_) | StoreError::UnknownBlob(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn unused_content(&mut self) -> Result<()> {
        let failed = || StoreError::io(DOING);
        let folder = self.inner.layout().blobs().join("sha256");
        let mut unused = Vec::new();
        for prefix in scan::folders(&folder).map_err(failed())? {
            let snapshot = self.inner.shared.index.snapshot()?;
            for hex in scan::folders(&folder.join(prefix)).map_err(failed())? {
                let Ok(digest) = format!("sha256:{hex}").parse::<Digest>() else {
                    continue;
                };
                let data = self.inner.layout().data(&digest);
                if !snapshot.is_used(&digest)? && is_older(&data, self.before)? {
                    unused.push((digest, size(&data).map_err(failed())?));
                }
            }
            if unused.len() >= CANDIDATES {
                self.remove_unused(std::mem::take(&mut unused))?;
            }
        }
        self.remove_unused(unused)
    }

    /// Removes candidates that still have no link after the links of all repositories were read again.
    fn remove_unused(&mut self, unused: Vec<(Digest, u64)>) -> Result<()> {
        if unused.is_empty() {
            return Ok(());
        }
        self.refresh()?;
        self.check()?;
        let snapshot = self.inner.shared.index.snapshot()?;
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for (digest, size) in unused {
            match snapshot.unused_since(&digest)? {
                _ if snapshot.is_used(&digest)? => {}
                Some(since) if since < nanos(self.before) => old.push((digest, size)),
                Some(_) => {}
                None => new.push((digest, size)),
            }
        }
        self.note_unused(&new)?;
        for batch in old.chunks(BATCH) {
            self.remove_content(batch.to_vec())?;
        }
        Ok(())
    }

    /// Compares the links of all repositories with the index again.
    fn refresh(&self) -> Result<()> {
        let DiskInner {
            shared, committer, ..
        } = self.inner;
        let is_open = || !shared.adoption.is_stopped();
        let names = scan::repositories(&shared.layout, is_open)?;
        let mut refresh = |name: &Repository| committer.refresh(name).map(drop);
        names.iter().try_for_each(&mut refresh)?;
        adoption::deleted_repositories(shared, &names, refresh)
    }

    /// Starts the grace period of content that other programs left without a link.
    fn note_unused(&self, unused: &[(Digest, u64)]) -> Result<()> {
        if self.is_dry || unused.is_empty() {
            return Ok(());
        }
        let update = self.inner.shared.index.update()?;
        let digests = unused.iter().map(|(digest, _)| digest);
        update.tables()?.note_unused(digests, now())?;
        update.commit()
    }

    fn remove_content(&mut self, mut unused: Vec<(Digest, u64)>) -> Result<()> {
        if !self.is_dry {
            let digests = unused.iter().map(|(digest, _)| digest.clone()).collect();
            let removed = self.inner.committer.remove_content(digests)?;
            unused.retain(|(digest, _)| removed.contains(digest));
        }
        self.found.blobs += unused.len() as u64;
        self.found.bytes += unused.iter().map(|(_, size)| size).sum::<u64>();
        Ok(())
    }

    fn empty_repositories(&mut self) -> Result<()> {
        for repository in scan::repositories(self.inner.layout(), || true)? {
            let manifests = self.inner.layout().manifests(&repository);
            let layers = self.inner.layout().layers(&repository);
            let adopted_at = self.adopted_at(&repository)?;
            if adopted_at >= nanos(self.before)
                || !is_older(&manifests, self.before)?
                || !is_older(&layers, self.before)?
            {
                continue;
            }
            if self
                .inner
                .committer
                .remove_if_empty(repository, self.is_dry)?
            {
                self.found.repositories += 1;
            }
        }
        Ok(())
    }
}

fn size(path: &Path) -> io::Result<u64> {
    match fs::metadata(path) {
        Ok(found) => Ok(found.len()),
        Err(error) if staged::is_absent(&error) => Ok(0),
        Err(error) => Err(error),
    }
}

/// Whether a file or folder is older than `before`, or absent.
fn is_older(path: &Path, before: SystemTime) -> Result<bool> {
    match fs::metadata(path) {
        Ok(found) => Ok(changed_at(&found).map_err(StoreError::io(DOING))? < nanos(before)),
        Err(error) if staged::is_absent(&error) => Ok(true),
        Err(error) => Err(StoreError::io(DOING)(error)),
    }
}

/// The later of mtime and ctime: copies keep the mtime of the original. Units: nanoseconds since 1970.
fn changed_at(found: &Metadata) -> io::Result<u64> {
    let seconds = u64::try_from(found.ctime()).unwrap_or(0);
    let nanoseconds = u64::try_from(found.ctime_nsec()).unwrap_or(0);
    let came_at = seconds.saturating_mul(1_000_000_000) + nanoseconds;
    Ok(nanos(found.modified()?).max(came_at))
}
