//! Adoption: each start compares the folder with the index, while requests are served.
//!
//! The folder is the truth, and other programs may have changed it since the last run. Until all repositories are
//! compared, a request waits for its own repository; afterwards the check costs one atomic load.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use super::committer::{self, Job, SharedState};
use super::inner::DiskInner;
use super::{adopt, compare};
use crate::{Result, StoreError};
use oci::Repository;

/// Concurrent comparisons: a cold medium serves several reads faster than one after the other.
const WORKERS: usize = 4;
/// Repositories that a crash may make the next start read again.
const SYNC_EVERY: usize = 2000;
/// Repositories per log message.
const LOG_EVERY: usize = 1000;
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

    fn walked(&self, names: Arc<[Repository]>) {
        let count = names.len() as u64;
        if !self.is_done() {
            self.lock().names = Some(names);
        }
        self.progress.send_modify(|now| now.repositories = count);
    }

    fn finish(&self) {
        self.is_done.store(true, Ordering::Release);
        *self.lock() = AdoptionState::default();
        self.progress.send_modify(|now| now.is_finished = true);
    }
}

/// Adopts a repository unless it is adopted already. Returns whether it differed.
///
/// Errors: the folder cannot be read, or the store is closing. Blocks.
pub(super) fn ensure_adopted(
    shared: &SharedState,
    jobs: &Sender<Job>,
    repository: &Repository,
) -> Result<bool> {
    let adoption = &shared.adoption;
    if adoption.is_adopted(repository) {
        return Ok(false);
    }
    let adopted = refresh(shared, jobs, repository)?;
    let is_known = adopted || shared.index.snapshot()?.has(repository)?;
    let mut state = adoption.lock();
    // Names without content are not remembered: clients may ask for any number of them.
    if is_known && !adoption.is_done() {
        state.adopted_names.insert(repository.clone());
    }
    Ok(adopted)
}

/// Compares a repository with the index and reads it on a difference. Returns whether it differed. Blocks.
pub(super) fn refresh(
    shared: &SharedState,
    jobs: &Sender<Job>,
    repository: &Repository,
) -> Result<bool> {
    if !compare::differs(shared, repository)? {
        return Ok(false);
    }
    let (done, answer) = oneshot::channel();
    let sent = jobs.send(Job::Adopt(repository.clone(), done));
    sent.map_err(|_| committer::ended())?;
    answer.blocking_recv().map_err(|_| committer::ended())?
}

/// Calls `visit` for each repository of the index that the folder does not have.
pub(super) fn deleted_repositories(
    shared: &SharedState,
    names: &[Repository],
    mut visit: impl FnMut(&Repository) -> Result<()>,
) -> Result<()> {
    let snapshot = shared.index.snapshot()?;
    let mut after = String::new();
    while let Some(name) = snapshot.next_known(&after)? {
        if names.binary_search(&name).is_err() {
            visit(&name)?;
        }
        after = name.to_string();
    }
    Ok(())
}

/// Up to `limit` repositories after `after` that have or had a manifest, sorted: those of the folder, and those added
/// since the walk.
pub(super) fn list_repositories(
    shared: &SharedState,
    names: &[Repository],
    mut after: String,
    limit: usize,
) -> Result<Vec<Repository>> {
    let snapshot = shared.index.snapshot()?;
    let mut found = Vec::new();
    while found.len() < limit {
        let place = names.partition_point(|name| name.as_str() <= after.as_str());
        let in_index = snapshot.repositories(&after, 1)?;
        let Some(name) = names.get(place).into_iter().chain(&in_index).min() else {
            break;
        };
        after = name.to_string();
        if shared.layout.manifests(name).is_dir() {
            found.push(name.clone());
        }
    }
    Ok(found)
}

/// Compares all repositories after a start; stops early when the store is closed.
pub(super) fn run(shared: &SharedState, jobs: &Sender<Job>) {
    all(shared, |name| ensure_adopted(shared, jobs, name));
}

/// Compares all repositories again, after [`Adoption::begin_again`]. Requests are served from the index meanwhile.
pub(super) fn run_again(store: &Weak<DiskInner>, shared: &SharedState) {
    all(shared, |name| match store.upgrade() {
        Some(inner) => inner.committer.refresh(name),
        None => Err(compare::closing()),
    });
}

/// Runs `one`, which returns whether a repository differed, for all repositories.
fn all(shared: &SharedState, one: impl Fn(&Repository) -> Result<bool> + Sync) {
    let adoption = &shared.adoption;
    let result = try_all(shared, one);
    if adoption.is_stopped() {
        tracing::info!("adoption of the storage folder is interrupted; the next start resumes it");
        return;
    }
    let failed = adoption.progress().failed;
    if let Err(error) = result {
        disable_collection(shared, &error);
    } else if failed == 0 {
        shared.is_incomplete.store(false, Ordering::Release);
    }
    adoption.finish();
}

fn try_all(shared: &SharedState, one: impl Fn(&Repository) -> Result<bool> + Sync) -> Result<()> {
    let adoption = &shared.adoption;
    let is_open = || !adoption.is_stopped();
    let names: Arc<[Repository]> = adopt::repositories(&shared.layout, is_open)?.into();
    adoption.walked(Arc::clone(&names));
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
            if adoption.is_stopped() {
                break;
            }
            note(shared, name, one(name));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..WORKERS.min(names.len()) {
            scope.spawn(work);
        }
    });
    deleted_repositories(shared, &names, |name| {
        if is_open() {
            note(shared, name, one(name));
        }
        Ok(())
    })?;
    let AdoptionProgress { adopted, .. } = adoption.progress();
    if adopted > 0 {
        shared.sync_index()?;
        tracing::info!(
            repositories = names.len(),
            adopted,
            "storage folder adopted"
        );
    }
    Ok(())
}

fn note(shared: &SharedState, repository: &Repository, adopted: Result<bool>) {
    let adoption = &shared.adoption;
    let is_failed = adopted.is_err();
    let adopted = adopted.unwrap_or_else(|error| {
        if !adoption.is_stopped() {
            tracing::error!(repo.name = %repository, "a repository cannot be compared with the index");
            disable_collection(shared, &error);
        }
        false
    });
    let mut state = AdoptionProgress::default();
    adoption.progress.send_modify(|now| {
        // Deleted repositories are not counted.
        now.compared = now.repositories.min(now.compared + 1);
        now.adopted += u64::from(adopted);
        now.failed += u64::from(is_failed);
        state = *now;
    });
    let AdoptionProgress {
        repositories,
        compared,
        adopted: sum,
        ..
    } = state;
    if compared % LOG_EVERY as u64 == 0 {
        tracing::info!(
            compared,
            repositories,
            adopted = sum,
            "adopting the storage folder"
        );
    }
    if adopted
        && sum % SYNC_EVERY as u64 == 0
        && let Err(error) = shared.sync_index()
    {
        let error = model::error::chain(&error);
        tracing::warn!(
            error,
            "the index is not synced; after a crash, adoption reads more repositories again"
        );
    }
}

/// Disables garbage collection until the next complete comparison.
fn disable_collection(shared: &SharedState, error: &StoreError) {
    shared.is_incomplete.store(true, Ordering::Release);
    let error = model::error::chain(error);
    tracing::error!(
        error,
        "a part of the storage folder cannot be read, so no garbage is collected"
    );
}
