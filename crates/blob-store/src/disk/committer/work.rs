//! The loop of the committing thread: batches, retries, and the times in between.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::shared::{Job, Shared};
use crate::disk::journal::Journal;
use crate::{Result, StoreError};

/// Changes that are made together at the most.
const BATCH_LIMIT: usize = 128;
/// Without changes for this long, a checkpoint is due.
const IDLE: Duration = Duration::from_secs(2);
/// Poll interval during a checkpoint.
const LOOK: Duration = Duration::from_millis(20);
/// Between attempts to recover: the first, and the longest.
pub(super) const RETRY: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(4));

pub(super) struct Work {
    pub(super) shared: Arc<Shared>,
    /// Nothing: the folder could not be opened for changes yet.
    pub(super) journal: Option<Journal>,
    /// Held as long as changes may be made.
    pub(super) exclusive: Option<File>,
    /// Files of the journal before the one that is written; they go when the medium has caught up.
    pub(super) old: Vec<PathBuf>,
    /// Syncs the medium.
    pub(super) catching_up: Option<JoinHandle<io::Result<()>>>,
    /// Something was promised by the journal and could not be made.
    pub(super) is_behind: bool,
    /// The medium may have lost what the folder shows: the replay writes everything again.
    pub(super) is_doubtful: bool,
    /// The index may not agree with the quarantine.
    pub(super) must_recall: bool,
    /// Until the next attempt to recover.
    pub(super) retry: Duration,
    /// Why the journal could not be emptied, as it was logged last.
    pub(super) last_complaint: String,
    /// When the reserve was looked after.
    pub(super) tended: Instant,
}

impl Work {
    pub(super) fn run(&mut self, queue: &Receiver<Job>) {
        loop {
            let is_broken = self.shared.write_side.broken().is_some();
            let wait = if self.catching_up.is_some() {
                LOOK
            } else if is_broken {
                self.retry
            } else {
                IDLE
            };
            let is_idle = match queue.recv_timeout(wait) {
                Ok(first) => {
                    let others = queue.try_iter().take(BATCH_LIMIT - 1);
                    self.make(std::iter::once(first).chain(others).collect());
                    false
                }
                Err(RecvTimeoutError::Timeout) => true,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if self.shared.read_only.is_some() {
                continue;
            }
            if is_idle && is_broken {
                self.retry = (self.retry * 2).min(RETRY.1);
                let recovered = self.recover();
                self.note(&recovered);
            }
            self.tend();
            let caught_up = self.catch_up(is_idle);
            self.complain(caught_up);
        }
        let Some(journal) = self.journal.take() else {
            return;
        };
        // Else the next start reads again what changed last, and does not know what was freed.
        if let Err(error) = self.shared.sync_index() {
            let error = model::error::chain(&error);
            tracing::warn!(error, "the index is not synced; the next start compares it");
        }
        if !self.is_behind
            && !self.is_doubtful
            && let Err(error) = journal.end()
        {
            tracing::warn!(%error, "the next start makes the last changes again");
        }
    }

    pub(super) fn note(&mut self, outcome: &Result<()>) {
        if outcome.is_ok() {
            self.retry = RETRY.0;
        }
        self.shared.write_side.note(outcome);
    }

    /// Takes the reserve again once there is room for it.
    fn tend(&mut self) {
        if self.shared.reserve.is_released() && self.tended.elapsed() >= IDLE / 2 {
            self.tended = Instant::now();
            if self.journal.is_some() && self.shared.reserve.take().is_ok() {
                tracing::info!("the disk has room again");
            }
        }
    }

    /// Logs why the journal cannot be emptied, once for each reason.
    fn complain(&mut self, caught_up: Result<()>) {
        let error = caught_up
            .err()
            .map_or(String::new(), |error| model::error::chain(&error));
        if !error.is_empty() && error != self.last_complaint {
            tracing::error!(error, "the journal cannot be emptied, which is tried again");
        }
        self.last_complaint = error;
    }

    fn make(&mut self, jobs: Vec<Job>) {
        let mut orders = Vec::new();
        for job in jobs {
            match job {
                Job::Commit(order, done) => orders.push((order, done)),
                Job::Adopt(repository, done) => {
                    done.send(self.adopt(&repository)).ok();
                }
                Job::RemoveContent(_, done) if self.shared.read_only.is_some() => {
                    done.send(Vec::new()).ok();
                }
                Job::RemoveContent(mut digests, done) => {
                    digests.retain(|digest| is_told(self.remove_content(digest)));
                    is_told(self.forget_unused(&digests));
                    done.send(digests).ok();
                }
                Job::RemoveIfEmpty { done, .. } if self.shared.read_only.is_some() => {
                    done.send(false).ok();
                }
                Job::RemoveIfEmpty {
                    repository,
                    is_dry,
                    done,
                } => {
                    done.send(is_told(self.remove_if_empty(&repository, is_dry)))
                        .ok();
                }
                Job::Quarantine(condemned, done) => {
                    done.send(self.quarantine(&condemned)).ok();
                }
            }
        }
        if !orders.is_empty() {
            self.commit(orders);
        }
    }

    /// Errors: the folder is never changed.
    pub(super) fn may_change(&self) -> Result<()> {
        match &self.shared.read_only {
            Some(why) => Err(StoreError::ReadOnly(why.clone())),
            None => Ok(()),
        }
    }
}

/// Whether it was done; why it could not be is logged.
fn is_told(result: Result<bool>) -> bool {
    result.unwrap_or_else(|error| {
        let error = model::error::chain(&error);
        tracing::error!(error, "garbage stays");
        false
    })
}
