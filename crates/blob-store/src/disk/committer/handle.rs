//! Handle of the committing thread: starts it, sends it jobs, stops it.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use tokio::sync::oneshot;

use super::commit_loop::{CommitLoop, RETRY};
use super::errors::{DOING, ended};
use super::shared::{Job, SharedState};
use crate::disk::adoption;
use crate::disk::change::JournalEntry;
use crate::disk::examine::DamagedContent;
use crate::disk::writable::Writable;
use crate::{Result, StoreError};
use oci::{Digest, Repository};

/// The committing thread, which stops when this value is dropped.
#[derive(Debug)]
pub(in crate::disk) struct Committer {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    /// Runs adoption, which may take long in a large folder.
    adopting: Option<JoinHandle<()>>,
    shared: Arc<SharedState>,
}

impl Committer {
    /// Recovers the folder and starts the thread. A folder that cannot be changed yet is recovered later, with retries.
    ///
    /// Errors: Damaged – another process has the folder open.
    pub(in crate::disk) fn start(
        shared: Arc<SharedState>,
        writable: Result<Writable>,
    ) -> Result<Self> {
        let mut work = CommitLoop {
            shared,
            journal: None,
            exclusive: None,
            old: Vec::new(),
            checkpoint_sync: None,
            needs_replay: false,
            must_rewrite: false,
            must_apply_notes: false,
            retry: RETRY.0,
            last_checkpoint_error: String::new(),
            reserve_tried_at: Instant::now(),
        };
        if work.shared.read_only.is_none() {
            let started = writable
                .map(|writable| work.take_over(writable))
                .and_then(|()| work.recover());
            match started {
                // Reads are served meanwhile; the thread retries the recovery.
                Err(error) if error.is_full() => work.shared.write_side.note(&Err(error)),
                started => started?,
            }
        }
        let shared = Arc::clone(&work.shared);
        let (jobs, queue) = channel();
        let thread = std::thread::Builder::new()
            .name("store-commit".to_owned())
            .spawn(move || work.run(&queue))
            .map_err(StoreError::io(DOING))?;
        let adopting = (!shared.adoption.is_done())
            .then(|| {
                let (shared, jobs) = (Arc::clone(&shared), jobs.clone());
                std::thread::Builder::new()
                    .name("store-adopt".to_owned())
                    .spawn(move || adoption::run(&shared, &jobs))
            })
            .transpose()
            .map_err(StoreError::io(DOING))?;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
            adopting,
            shared,
        })
    }

    /// Commits a change, which is visible and durable on return.
    pub(in crate::disk) async fn commit(&self, entry: JournalEntry) -> Result<()> {
        let (done, answer) = oneshot::channel();
        self.send(Job::Commit(entry, done))?;
        answer.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Commits changes in batches, each with its own result. Blocks.
    pub(in crate::disk) fn commit_all(
        &self,
        entries: impl Iterator<Item = JournalEntry>,
    ) -> Result<Vec<Result<()>>> {
        let mut answers = Vec::new();
        for entry in entries {
            let (done, answer) = oneshot::channel();
            self.send(Job::Commit(entry, done))?;
            answers.push(answer);
        }
        let answer =
            |answer: oneshot::Receiver<_>| answer.blocking_recv().unwrap_or_else(|_| Err(ended()));
        Ok(answers.into_iter().map(answer).collect())
    }

    /// Removes content that no repository has. Returns the removed digests. Blocks.
    pub(in crate::disk) fn remove_content(&self, digests: Vec<Digest>) -> Result<Vec<Digest>> {
        let (done, answer) = oneshot::channel();
        self.send(Job::RemoveContent(digests, done))?;
        answer.blocking_recv().map_err(|_| ended())
    }

    /// Removes a repository without content. Returns whether it was removed. Blocks.
    pub(in crate::disk) fn remove_if_empty(
        &self,
        repository: Repository,
        is_dry: bool,
    ) -> Result<bool> {
        let (done, answer) = oneshot::channel();
        self.send(Job::RemoveIfEmpty {
            repository,
            is_dry,
            done,
        })?;
        answer.blocking_recv().map_err(|_| ended())
    }

    /// Quarantines damaged content. Returns false if its file was replaced since the examination. Blocks.
    pub(in crate::disk) fn quarantine(&self, condemned: DamagedContent) -> Result<bool> {
        let (done, answer) = oneshot::channel();
        self.send(Job::Quarantine(condemned, done))?;
        answer.blocking_recv().unwrap_or_else(|_| Err(ended()))
    }

    /// Adopts a repository, unless it is adopted already. Returns whether it differed. Blocks.
    pub(in crate::disk) fn ensure_adopted(&self, repository: &Repository) -> Result<bool> {
        adoption::ensure_adopted(&self.shared, self.jobs()?, repository)
    }

    /// Compares a repository with the folder in any case. Returns whether it differed. Blocks.
    pub(in crate::disk) fn refresh(&self, repository: &Repository) -> Result<bool> {
        adoption::refresh(&self.shared, self.jobs()?, repository)
    }

    fn jobs(&self) -> Result<&Sender<Job>> {
        self.jobs.as_ref().ok_or_else(ended)
    }

    fn send(&self, job: Job) -> Result<()> {
        self.jobs()?.send(job).map_err(|_| ended())
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.shared.adoption.stop();
        self.jobs = None;
        // The panic hook has printed the message of a panic.
        for thread in [self.adopting.take(), self.thread.take()] {
            thread.map(JoinHandle::join);
        }
    }
}
