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
const CHECKPOINT_POLL: Duration = Duration::from_millis(20);
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
    pub(super) checkpoint_sync: Option<JoinHandle<io::Result<()>>>,
    /// The journal has changes that the folder or the index may lack.
    pub(super) needs_replay: bool,
    /// A sync failed, so no file is trusted: the replay writes everything again.
    pub(super) must_rewrite: bool,
    /// The index may lack entries of the quarantine.
    pub(super) must_apply_notes: bool,
    /// Delay until the next attempt to recover.
    pub(super) retry: Duration,
    /// The last logged error of a checkpoint.
    pub(super) last_checkpoint_error: String,
    /// Last attempt to allocate the space reserve.
    pub(super) reserve_tried_at: Instant,
}

impl CommitLoop {
    pub(super) fn run(&mut self, queue: &Receiver<Job>) {
        loop {
            let is_broken = self.shared.write_side.broken().is_some();
            let wait = if self.checkpoint_sync.is_some() {
                CHECKPOINT_POLL
            } else if is_broken {
                self.retry
            } else if self.shared.reserve.is_released() {
                RETRY.0
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
            if self.reserve_tried_at.elapsed() >= RETRY.0 {
                self.renew_reserve();
            }
            let checkpointed = self.checkpoint(is_idle);
            self.log_checkpoint_error(checkpointed);
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
        if !self.needs_replay
            && !self.must_rewrite
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
    fn renew_reserve(&mut self) {
        if !self.shared.reserve.is_released() {
            return;
        }
        self.reserve_tried_at = Instant::now();
        if self.journal.is_some() && self.shared.reserve.take().is_ok() {
            tracing::info!("the disk has room again: pushes are accepted");
        }
    }

    /// Logs the error of a checkpoint, once for each text.
    fn log_checkpoint_error(&mut self, checkpointed: Result<()>) {
        let error = checkpointed
            .err()
            .map_or(String::new(), |error| model::error::chain(&error));
        if !error.is_empty() && error != self.last_checkpoint_error {
            tracing::error!(error, "checkpoint failed; retrying");
        }
        self.last_checkpoint_error = error;
    }

    fn make(&mut self, jobs: Vec<Job>) {
        let mut entries = Vec::new();
        for job in jobs {
            match job {
                Job::Commit(entry, done) => entries.push((entry, done)),
                Job::Adopt(repository, done) => {
                    done.send(self.adopt(&repository)).ok();
                }
                Job::RemoveContent(_, done) if self.shared.read_only.is_some() => {
                    done.send(Vec::new()).ok();
                }
                Job::RemoveContent(mut digests, done) => {
                    digests.retain(|digest| succeeded(self.remove_content(digest)));
                    succeeded(self.forget_unused(&digests));
                    // A client may push as soon as it knows of the removal.
                    self.renew_reserve();
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
                    done.send(succeeded(self.remove_if_empty(&repository, is_dry)))
                        .ok();
                }
                Job::Quarantine(condemned, done) => {
                    done.send(self.quarantine(&condemned)).ok();
                }
            }
        }
        if !entries.is_empty() {
            self.commit(entries);
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
fn succeeded(result: Result<bool>) -> bool {
    result.unwrap_or_else(|error| {
        let error = model::error::chain(&error);
        tracing::error!(error, "garbage stays");
        false
    })
}
