//! Recovery: journalled changes are replayed, and a failed index, journal or quarantine is repaired.

use std::io;

use super::commit_loop::CommitLoop;
use super::errors::DOING;
use super::shared::SharedState;
use crate::disk::change::JournalEntry;
use crate::disk::index::ContentIndex;
use crate::disk::journal::{self, ChangeJournal};
use crate::disk::layout::FolderLayout;
use crate::disk::tables::Tables;
use crate::disk::writable::Writable;
use crate::disk::{adopt, files, quarantine, scan};
use crate::verified::Verified;
use crate::{Result, StoreError};

impl CommitLoop {
    /// Replays journaled changes, and repairs index, journal and quarantine.
    pub(super) fn recover(&mut self) -> Result<()> {
        if self.journal.is_none() {
            let writable = Writable::open(&self.shared.layout)?;
            self.take_over(writable);
        }
        // Index before replay: rows that a replay adds to an index that is thrown away would be lost.
        if self.shared.index.has_failed() {
            let SharedState { layout, index, .. } = &*self.shared;
            index.rebuild(|fresh| fill(layout, fresh))?;
            self.needs_replay = true;
            self.must_apply_notes = true;
        }
        // Journal before replay: a torn record must not be read as a change.
        if let Some(journal) = &mut self.journal {
            journal.truncate_torn().map_err(StoreError::io(DOING))?;
        }
        if self.needs_replay {
            self.replay()
                .or_else(|error| self.with_reserve(error, Self::replay))?;
        }
        // Quarantine after replay: a replay may restore content that a note names.
        if self.must_apply_notes {
            quarantine::apply_notes(&self.shared)?;
            self.must_apply_notes = false;
        }
        Ok(())
    }

    /// Runs `operation` with the space reserve released, if `error` is a full disk.
    pub(super) fn with_reserve(
        &mut self,
        error: StoreError,
        operation: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        if error.is_full() && self.shared.reserve.release() {
            operation(self)
        } else {
            Err(error)
        }
    }

    /// Takes over the journal files of the previous process.
    pub(super) fn take_over(&mut self, writable: Writable) {
        let (journal, old, needs_replay, exclusive) = writable.into_parts();
        self.exclusive = Some(exclusive);
        self.old = old;
        self.journal = Some(journal);
        if self.shared.reserve.take().is_err() {
            tracing::warn!(
                "the disk is nearly full: there is no room for the space reserve, so pushes are refused"
            );
        }
        self.needs_replay = needs_replay;
        self.must_apply_notes = true;
    }

    /// Replays the journal; idempotent.
    pub(super) fn replay(&mut self) -> Result<()> {
        let failed = || StoreError::io("reading the journal");
        let own = self.journal.iter().filter(|journal| journal.length() > 0);
        let own: Vec<_> = own.map(ChangeJournal::path).collect();
        // After a failed sync no file is trusted: the replay rewrites content that the journal has.
        let verified = if self.must_rewrite {
            &Verified::default()
        } else {
            &self.shared.verified
        };
        // In the order of the commits, so that the last change of a name wins; each file in one transaction.
        for file in self.old.iter().cloned().chain(own) {
            let update = self.shared.index.update()?;
            {
                let mut tables = update.tables()?;
                for entry in journal::read(&file).map_err(failed())? {
                    self.replay_entry(&mut tables, verified, &entry.map_err(failed())?)?;
                }
            }
            update.commit()?;
        }
        self.needs_replay = false;
        self.must_rewrite = false;
        Ok(())
    }

    fn replay_entry(
        &self,
        tables: &mut Tables<'_>,
        verified: &Verified,
        entry: &JournalEntry,
    ) -> Result<()> {
        let layout = &self.shared.layout;
        match files::prepare(layout, verified, entry) {
            Ok(prepared) => prepared
                .place(layout, &self.shared.verified)
                .map_err(StoreError::io(DOING))?,
            // A later change removed the bytes.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(StoreError::io(DOING)(error)),
        }
        tables.apply(entry)
    }
}

/// Reads the whole folder into an empty index.
fn fill(layout: &FolderLayout, index: &ContentIndex) -> Result<()> {
    for repository in scan::repositories(layout, || true)? {
        let update = index.update()?;
        adopt::repository(layout, &mut update.tables()?, &repository, || true)?;
        update.commit()?;
    }
    Ok(())
}
