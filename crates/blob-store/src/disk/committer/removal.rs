//! Removal of content and empty repositories, quarantine, and adoption of a repository.

use super::commit_loop::CommitLoop;
use super::shared::SharedState;
use crate::disk::examine::DamagedContent;
use crate::disk::quarantine;
use crate::disk::{adopt, compare, files, scan};
use crate::{Result, StoreError};
use oci::{Digest, Repository};

impl CommitLoop {
    pub(super) fn quarantine(&mut self, condemned: &DamagedContent) -> Result<bool> {
        self.may_change()?;
        self.recover()?;
        quarantine::take(&self.shared, condemned)
    }

    /// Adopts a repository. In this thread no commit is half-way, so every difference comes from another program.
    pub(super) fn adopt(&mut self, repository: &Repository) -> Result<bool> {
        // A read-only folder cannot be replayed, and is adopted all the same.
        if self.needs_replay && self.journal.is_some() {
            self.recover()?;
        }
        let SharedState {
            layout, adoption, ..
        } = &*self.shared;
        if !compare::differs(&self.shared, repository)? {
            return Ok(false);
        }
        let update = self.shared.index.update()?;
        adopt::repository(layout, &mut update.tables()?, repository, || {
            !adoption.is_stopped()
        })?;
        update.commit()?;
        Ok(true)
    }

    /// Not journalled: the next collection finds content again that a crash spared.
    pub(super) fn remove_content(&self, digest: &Digest) -> Result<bool> {
        if self.needs_replay || self.shared.index.snapshot()?.is_used(digest)? {
            return Ok(false);
        }
        let data = self.shared.layout.data(digest);
        let folder = data.parent().unwrap_or(&data);
        files::remove(&self.shared.layout, folder).map_err(StoreError::io("removing garbage"))?;
        Ok(true)
    }

    /// Rows that survive a failure are harmless: they name content that does not exist.
    pub(super) fn forget_unused(&self, digests: &[Digest]) -> Result<bool> {
        let update = self.shared.index.update()?;
        update.tables()?.forget_unused(digests)?;
        update.commit()?;
        Ok(true)
    }

    pub(super) fn remove_if_empty(&self, repository: &Repository, is_dry: bool) -> Result<bool> {
        let layout = &self.shared.layout;
        let update = self.shared.index.update()?;
        {
            let mut tables = update.tables()?;
            // Links of unreadable content, and links that other programs added, are in the folder only.
            let has_links = scan::has_links(layout, repository)?;
            if self.needs_replay || has_links || !tables.is_empty(repository)? {
                return Ok(false);
            }
            tables.forget(repository)?;
        }
        if is_dry {
            return Ok(true);
        }
        // Folder before index: after a crash in between, adoption drops the rows of a folder that does not exist.
        let folders = [layout.manifests(repository), layout.layers(repository)];
        for folder in folders.iter().filter(|folder| folder.is_dir()) {
            files::remove(layout, folder).map_err(StoreError::io("removing garbage"))?;
        }
        // Folders that are not empty stay: they hold uploads or other repositories.
        for folder in [layout.uploads(repository), layout.repository(repository)] {
            std::fs::remove_dir(folder).ok();
        }
        update.commit()?;
        Ok(true)
    }
}
