//! Group commit: changes are checked, journalled by one fsync, applied to the folder, and published together.

use std::io;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::commit_loop::CommitLoop;
use super::errors::{DOING, copy_of, ended, full};
use super::shared::SharedState;
use crate::disk::change::{JournalEntry, StoreChange};
use crate::disk::files::{self, PreparedFiles};
use crate::disk::tables::Tables;
use crate::{Result, StoreError};

/// A change that passed its check.
struct CheckedChange {
    entry: JournalEntry,
    prepared: PreparedFiles,
    done: oneshot::Sender<Result<()>>,
}

impl CommitLoop {
    pub(super) fn commit(&mut self, entries: Vec<(JournalEntry, oneshot::Sender<Result<()>>)>) {
        if let Err(refused) = self.may_change() {
            return refuse(entries, &refused);
        }
        let recovered = self.recover();
        if let Err(error) = &recovered {
            refuse(entries, error);
            return self.note(&recovered);
        }
        let mut accepted = Vec::new();
        let made = self.try_commit(entries, &mut accepted);
        self.note(&made);
        for CheckedChange { done, .. } in accepted {
            // The caller may have disconnected: its change is committed all the same.
            done.send(match &made {
                Ok(()) => Ok(()),
                Err(error) => Err(copy_of(error)),
            })
            .ok();
        }
    }

    fn try_commit(
        &mut self,
        entries: Vec<(JournalEntry, oneshot::Sender<Result<()>>)>,
        accepted: &mut Vec<CheckedChange>,
    ) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        // First check everything and write all temporary files, so that a refused change leaves nothing in the journal
        // and a full disk is noticed before anything is acknowledged. The open transaction is not visible yet.
        let update = shared.index.update()?;
        {
            let mut tables = update.tables()?;
            for (mut entry, done) in entries {
                match self.accept(&mut tables, &mut entry) {
                    Ok(prepared) => accepted.push(CheckedChange {
                        entry,
                        prepared,
                        done,
                    }),
                    Err(error) => drop(done.send(Err(error))),
                }
            }
        }
        if accepted.is_empty() {
            return Ok(());
        }
        // The commit point, one fsync for the batch: from here on a replay completes the changes. Before the renames,
        // since a crash between two of them would leave half a change.
        self.append(accepted)?;
        self.needs_replay = true;
        let placed = accepted
            .iter_mut()
            .map(|accepted| std::mem::take(&mut accepted.prepared))
            .try_for_each(|prepared| prepared.place(&shared.layout, &shared.verified))
            .map_err(StoreError::io(DOING));
        // Index last, so that no reader sees a row before its files. Without this commit the index is unchanged; two
        // write transactions at a time would deadlock.
        let committed = placed.and_then(|()| update.commit());
        if let Err(error) = committed {
            tracing::warn!(
                error = model::error::chain(&error),
                "changes are replayed from the journal"
            );
            // The journal has the changes: a replay repairs transient failures and, with the reserve, a full disk.
            return self
                .replay()
                .or_else(|error| self.with_reserve(error, Self::replay));
        }
        self.needs_replay = false;
        Ok(())
    }

    /// Appends changes to the journal. Deletions may use the space reserve.
    fn append(&mut self, accepted: &[CheckedChange]) -> Result<()> {
        let append = |work: &mut Self| {
            let entries = accepted.iter().map(|accepted| &accepted.entry);
            let journal = work.journal.as_mut().ok_or_else(ended)?;
            journal.append(entries).map_err(StoreError::io(DOING))
        };
        let removes = accepted
            .iter()
            .any(|accepted| !accepted.entry.change.adds());
        append(self).or_else(|error| {
            if removes {
                self.with_reserve(error, append)
            } else {
                Err(error)
            }
        })
    }

    fn accept(&self, tables: &mut Tables<'_>, entry: &mut JournalEntry) -> Result<PreparedFiles> {
        tables.check(entry)?;
        if entry.change.adds() && self.shared.reserve.is_released() {
            return Err(full());
        }
        let SharedState {
            layout, verified, ..
        } = &*self.shared;
        if files::is_too_young(layout, &entry.change).map_err(StoreError::io(DOING))? {
            return Err(StoreError::Renewed);
        }
        let prepared = files::prepare(layout, verified, entry).map_err(|error| {
            match &entry.change {
                // Found a moment ago, and collected since.
                StoreChange::AddBlob { blob, .. } if error.kind() == io::ErrorKind::NotFound => {
                    StoreError::UnknownBlob(blob.requested().clone())
                }
                _ => StoreError::io(DOING)(error),
            }
        })?;
        tables.apply(entry)?;
        Ok(prepared)
    }
}

fn refuse(entries: Vec<(JournalEntry, oneshot::Sender<Result<()>>)>, why: &StoreError) {
    for (_, done) in entries {
        done.send(Err(copy_of(why))).ok();
    }
}
