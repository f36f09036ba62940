//! Garbage, found while requests are answered and taken away by the thread that makes all changes: what is looked
//! at there cannot be in a push.
//!
//! Three rounds, each over what the one before has let go: blobs of a repository that no manifest of it needs,
//! content that no repository has, repositories without content. What is younger than the grace period stays: its
//! manifest may be on its way.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use super::adopt;
use super::change::{Change, Name, Order};
use super::durable;
use super::inner::Inner;
use crate::store::{Collected, Result, StoreError};
use crate::{Digest, Repository};

/// Removals that are asked for together: more would make a push wait.
const BATCH: usize = 32;
/// While the folder is compared with the index.
const LOOK: Duration = Duration::from_millis(10);
const DOING: &str = "looking for garbage";

/// Takes garbage away; with `is_dry`, only counts it.
pub(super) fn collect(inner: &Inner, before: SystemTime, is_dry: bool) -> Result<Collected> {
    // Content that the index does not know yet looks like garbage.
    while !inner.shared.has_compared.load(Ordering::Acquire) {
        std::thread::sleep(LOOK);
    }
    let mut collection = Collection {
        inner,
        before,
        is_dry,
        found: Collected::default(),
    };
    collection.check()?;
    collection.unneeded_blobs()?;
    collection.check()?;
    collection.unused_content()?;
    collection.empty_repositories()?;
    Ok(collection.found)
}

struct Collection<'a> {
    inner: &'a Inner,
    before: SystemTime,
    is_dry: bool,
    found: Collected,
}

impl Collection<'_> {
    /// Errors: not all that is in the folder is known.
    fn check(&self) -> Result<()> {
        if self.inner.shared.is_unsure.load(Ordering::Acquire) {
            let why = "a part of the folder could not be read, so nothing is taken for garbage; see the log of the start";
            return Err(StoreError::io(DOING)(io::Error::other(why)));
        }
        Ok(())
    }

    /// Whether a manifest of the repository is in the folder and cannot be read: what it needs is not known.
    fn has_unread_manifests(&self, repository: &Repository) -> Result<bool> {
        let snapshot = self.inner.shared.index.snapshot()?;
        for name in adopt::links(&self.inner.layout().revisions(repository))? {
            if snapshot.manifest(repository, name.told())?.is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn unneeded_blobs(&mut self) -> Result<()> {
        let mut after = String::new();
        loop {
            let snapshot = self.inner.shared.index.snapshot()?;
            let Some(repository) = snapshot.next_with_blobs(&after)? else {
                return Ok(());
            };
            after = repository.to_string();
            if self.has_unread_manifests(&repository)? {
                continue;
            }
            let blobs = snapshot.blobs(&repository)?;
            let needed: HashSet<_> = blobs
                .iter()
                .filter(|(_, is_needed)| *is_needed)
                .map(|(name, _)| &name.canonical)
                .collect();
            let mut unneeded = Vec::new();
            for (name, _) in &blobs {
                if !needed.contains(&name.canonical) && self.is_old(&repository, name)? {
                    unneeded.push(name.clone());
                }
            }
            for batch in unneeded.chunks(BATCH) {
                self.remove_blobs(&repository, batch)?;
            }
        }
    }

    /// Whether nobody has pushed, mounted or asked for it since.
    fn is_old(&self, repository: &Repository, name: &Name) -> Result<bool> {
        if self.inner.wanted.contains(repository, name.told()) {
            return Ok(false);
        }
        let link = self.inner.layout().layer_link(repository, name.told());
        is_older(&link, self.before)
    }

    fn remove_blobs(&mut self, repository: &Repository, blobs: &[Name]) -> Result<()> {
        if self.is_dry {
            self.found.links += blobs.len() as u64;
            return Ok(());
        }
        let orders = blobs.iter().map(|name| Order {
            change: Change::RemoveBlob {
                repository: repository.clone(),
                blob: Name::new(name.told().clone(), name.told()),
                only_unused: true,
            },
            content: None,
        });
        for removed in self.inner.committer.commit_all(orders)? {
            match removed {
                Ok(()) => self.found.links += 1,
                // Somebody was quicker, this way or the other.
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
        for prefix in adopt::folders(&folder).map_err(failed())? {
            let snapshot = self.inner.shared.index.snapshot()?;
            for hex in adopt::folders(&folder.join(prefix)).map_err(failed())? {
                let Ok(digest) = format!("sha256:{hex}").parse::<Digest>() else {
                    continue;
                };
                let data = self.inner.layout().data(&digest);
                if !snapshot.is_used(&digest)? && is_older(&data, self.before)? {
                    unused.push((digest, size(&data).map_err(failed())?));
                }
            }
            if unused.len() >= BATCH {
                self.remove_content(std::mem::take(&mut unused))?;
            }
        }
        self.remove_content(unused)
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
        for repository in adopt::repositories(self.inner.layout())? {
            let manifests = self.inner.layout().manifests(&repository);
            let layers = self.inner.layout().layers(&repository);
            if !is_older(&manifests, self.before)? || !is_older(&layers, self.before)? {
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
        Err(error) if durable::is_absent(&error) => Ok(0),
        Err(error) => Err(error),
    }
}

/// Whether a file or folder was changed before, or is not there.
fn is_older(path: &Path, before: SystemTime) -> Result<bool> {
    match fs::metadata(path).and_then(|found| found.modified()) {
        Ok(time) => Ok(time < before),
        Err(error) if durable::is_absent(&error) => Ok(true),
        Err(error) => Err(StoreError::io(DOING)(error)),
    }
}
