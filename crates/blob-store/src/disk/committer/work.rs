//! The loop of the committing thread: batches of jobs, retries of recovery, checkpoints.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::shared::{Job, SharedState};
use crate::disk::journal::ChangeJournal;
use crate::{Result, StoreError};

/// Maximum number of changes in a group commit.
const BATCH_LIMIT: usize = 128;
/// Idle time before a checkpoint.
const IDLE: Duration = Duration::from_secs(2);
/// Poll interval during a checkpoint.
const LOOK: Duration = Duration::from_millis(20);
/// Delay between attempts to recover: the first, and the longest.
pub(super) const RETRY: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(4));

pub(super) struct CommitLoop {
    pub(super) shared: Arc<SharedState>,
    /// `None` until the folder is open for changes.
    pub(super) journal: Option<ChangeJournal>,
    /// The lock of the folder, held while changes may be made.
    pub(super) exclusive: Option<File>,
    /// Older files of the journal, which the next checkpoint removes.
    pub(super) old: Vec<PathBuf>,
    /// The checkpoint's sync in progress.
    pub(super) catching_up: Option<JoinHandle<io::Result<()>>>,
    /// The journal has changes that the folder or the index may lack.
    pub(super) is_behind: bool,
    /// A sync failed, so no file is trusted: the replay writes everything again.
    pub(super) is_doubtful: bool,
    /// The index may lack entries of the quarantine.
    pub(super) must_recall: bool,
    /// Delay until the next attempt to recover.
    pub(super) retry: Duration,
    /// The last logged error of a checkpoint.
    pub(super) last_complaint: String,
    /// Last attempt to allocate the space reserve.
    pub(super) tended: Instant,
}

impl CommitLoop {
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
        // Index before the end marker: after a marked end, the next start replays nothing, and orphaned manifests are
        // known from the index alone.
        if let Err(error) = self.shared.sync_index() {
            let error = model::error::chain(&error);
            tracing::warn!(
                error,
                "the index is not synced; the next start compares it with the folder"
            );
        }
        if !self.is_behind
            && !self.is_doubtful
            && let Err(error) = journal.end()
        {
            tracing::warn!(%error, "the journal is not marked as complete; the next start replays it");
        }
    }

    pub(super) fn note(&mut self, outcome: &Result<()>) {
        if outcome.is_ok() {
            self.retry = RETRY.0;
        }
        self.shared.write_side.note(outcome);
    }

    /// Allocates the space reserve again once there is room.
    fn tend(&mut self) {
        if self.shared.reserve.is_released() && self.tended.elapsed() >= IDLE / 2 {
            self.tended = Instant::now();
            if self.journal.is_some() && self.shared.reserve.take().is_ok() {
                tracing::info!("the disk has room again: pushes are accepted");
            }
        }
    }

    /// Logs the error of a checkpoint, once for each text.
    fn complain(&mut self, caught_up: Result<()>) {
        let error = caught_up
            .err()
            .map_or(String::new(), |error| model::error::chain(&error));
        if !error.is_empty() && error != self.last_complaint {
            tracing::error!(error, "checkpoint failed; retrying");
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

    /// Errors: ReadOnly.
    pub(super) fn may_change(&self) -> Result<()> {
        match &self.shared.read_only {
            Some(why) => Err(StoreError::ReadOnly(why.clone())),
            None => Ok(()),
        }
    }
}

/// Whether the removal succeeded; its error is logged.
fn is_told(result: Result<bool>) -> bool {
    result.unwrap_or_else(|error| {
        let error = model::error::chain(&error);
        tracing::error!(error, "garbage stays");
        false
    })
}
