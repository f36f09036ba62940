//! Progress of an adoption, for the requests that wait for it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::{Result, StoreError};
use oci::Repository;

/// Timeout of a repository list during the walk through the folder.
const WALK_LIMIT: Duration = Duration::from_secs(10);

/// Progress of adoption.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct AdoptionProgress {
    /// All repositories are compared.
    pub is_finished: bool,
    /// Repositories in the folder; 0 until the walk has ended.
    pub repositories: u64,
    /// Repositories compared with the index.
    pub compared: u64,
    /// Repositories that differed and were read into the index, including deleted ones.
    pub adopted: u64,
    /// Repositories that could not be read; if any, no garbage is collected.
    pub failed: u64,
}

/// State of the comparison that follows a start.
#[derive(Debug)]
pub(super) struct Adoption {
    /// All repositories are compared; the state below is empty then.
    is_done: AtomicBool,
    is_stopped: AtomicBool,
    state: Mutex<AdoptionState>,
    progress: watch::Sender<AdoptionProgress>,
}

#[derive(Debug, Default)]
struct AdoptionState {
    /// All repositories in the folder, sorted, once the walk has ended.
    names: Option<Arc<[Repository]>>,
    /// Repositories of the folder or the index only, which bounds the set.
    adopted_names: HashSet<Repository>,
}

impl Adoption {
    /// A pending comparison, or a finished one with `is_done`.
    pub(super) fn new(is_done: bool) -> Self {
        let progress = AdoptionProgress {
            is_finished: is_done,
            ..AdoptionProgress::default()
        };
        Self {
            is_done: AtomicBool::new(is_done),
            is_stopped: AtomicBool::new(false),
            state: Mutex::default(),
            progress: watch::Sender::new(progress),
        }
    }

    /// Whether the index agrees with the folder about a repository.
    pub(super) fn is_adopted(&self, repository: &Repository) -> bool {
        self.is_done() || self.lock().adopted_names.contains(repository)
    }

    pub(super) fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
    }

    /// Stops the comparison; the next start resumes it.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    pub(super) fn progress(&self) -> AdoptionProgress {
        *self.progress.borrow()
    }

    /// Waits until every repository is compared.
    pub(super) async fn finished(&self) {
        let mut progress = self.progress.subscribe();
        // The sender lives as long as `self`.
        progress.wait_for(|now| now.is_finished).await.ok();
    }

    /// All repositories in the folder; `None` after the comparison.
    ///
    /// Errors: Unavailable – the walk through the folder takes too long.
    pub(super) async fn names(&self) -> Result<Option<Arc<[Repository]>>> {
        let mut progress = self.progress.subscribe();
        let walked = progress
            .wait_for(|now| now.is_finished || self.is_done() || self.lock().names.is_some());
        if tokio::time::timeout(WALK_LIMIT, walked).await.is_err() {
            let reason = "the repositories are still being counted after the start; retry";
            return Err(StoreError::Unavailable {
                doing: "listing repositories",
                source: reason.into(),
            });
        }
        Ok(self.lock().names.clone())
    }

    fn lock(&self) -> MutexGuard<'_, AdoptionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an adopted repository, until all are compared.
    pub(super) fn remember(&self, repository: &Repository) {
        let mut state = self.lock();
        if !self.is_done() {
            state.adopted_names.insert(repository.clone());
        }
    }

    /// Starts another comparison, unless one is in progress. Returns whether it started.
    pub(super) fn begin_again(&self) -> bool {
        self.progress.send_if_modified(|now| {
            let is_idle = now.is_finished;
            if is_idle {
                *now = AdoptionProgress::default();
            }
            is_idle
        })
    }

    /// Sets the repositories in the folder, once the walk has ended.
    pub(super) fn walked(&self, names: Arc<[Repository]>) {
        let count = names.len() as u64;
        if !self.is_done() {
            self.lock().names = Some(names);
        }
        self.progress.send_modify(|now| now.repositories = count);
    }

    /// Counts a compared repository.
    pub(super) fn count(&self, adopted: bool, is_failed: bool) -> AdoptionProgress {
        let mut state = AdoptionProgress::default();
        self.progress.send_modify(|now| {
            // Deleted repositories are not counted.
            now.compared = now.repositories.min(now.compared + 1);
            now.adopted += u64::from(adopted);
            now.failed += u64::from(is_failed);
            state = *now;
        });
        state
    }

    pub(super) fn finish(&self) {
        self.is_done.store(true, Ordering::Release);
        *self.lock() = AdoptionState::default();
        self.progress.send_modify(|now| now.is_finished = true);
    }
}
