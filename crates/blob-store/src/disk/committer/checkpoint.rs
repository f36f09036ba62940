//! Checkpoints: the file system and the index are synced, then the journal files that they cover are removed.

use std::fs::File;
use std::io;

use super::commit_loop::CommitLoop;
use crate::disk::journal;
use crate::{Result, StoreError};

/// Units: bytes. A journal of this length is replayed in about a second after a crash.
const JOURNAL_LIMIT_BYTES: u64 = 16 << 20;

impl CommitLoop {
    /// Starts a checkpoint when one is due, and removes the journal files of a finished one.
    pub(super) fn checkpoint(&mut self, is_idle: bool) -> Result<()> {
        match &self.checkpoint_sync {
            None => self.start_checkpoint(is_idle),
            Some(syncing) if syncing.is_finished() => self.finish_checkpoint(),
            Some(_) => Ok(()),
        }
    }

    fn finish_checkpoint(&mut self) -> Result<()> {
        let failed = || StoreError::io("syncing the storage folder");
        let Some(syncing) = self.checkpoint_sync.take() else {
            return Ok(());
        };
        let synced = syncing
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("panicked")));
        if let Err(error) = synced {
            // The kernel reports a lost page once, and the next sync succeeds without it: the replay has to write
            // everything again before a checkpoint may remove journal files.
            self.must_rewrite = true;
            self.needs_replay = true;
            return Err(failed()(error));
        }
        // Index before journal: without journal files, a replay cannot repair an index that lost its last rows.
        self.shared.sync_index()?;
        // Oldest first, each removal durable before the next: a replay of an older file without the later ones would
        // undo the later changes.
        while let Some(file) = self.old.first() {
            journal::remove(file).map_err(failed())?;
            self.old.remove(0);
        }
        Ok(())
    }

    fn start_checkpoint(&mut self, is_idle: bool) -> Result<()> {
        let failed = || StoreError::io("syncing the storage folder");
        if is_idle && self.needs_replay && self.journal.is_some() {
            self.recover()?;
        }
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        let length = journal.length();
        let has_work = length > 0 || !self.old.is_empty() || self.shared.index.is_frozen();
        let is_time = length >= JOURNAL_LIMIT_BYTES || is_idle && has_work;
        if !is_time || self.needs_replay {
            return Ok(());
        }
        // Rotation before the sync: changes during the sync go to a file that this checkpoint does not remove.
        if length > 0 {
            self.old.push(journal.rotate().map_err(failed())?);
        }
        let folder = File::open(self.shared.layout.root()).map_err(failed())?;
        let syncing = std::thread::Builder::new()
            .name("store-sync".to_owned())
            .spawn(move || Ok(rustix::fs::syncfs(folder)?))
            .map_err(failed())?;
        self.checkpoint_sync = Some(syncing);
        Ok(())
    }
}
