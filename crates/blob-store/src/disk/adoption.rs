//! Adoption: the folder compared with the index after each start, while requests are answered.
//!
//! The folder is the truth, and others may have changed it while it was not open here. Until all repositories are
//! compared, one that a request names is compared first; afterwards that costs one atomic load.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use super::committer::{self, Job, Shared};
use super::inner::Inner;
use super::{adopt, compare};
use crate::{Result, StoreError};
use oci::Repository;

/// Repositories that are compared at a time: a cold medium answers several reads sooner than one after the other.
const WORKERS: usize = 4;
/// Repositories that an unclean end may make read again.
const SYNC_EVERY: usize = 2000;
/// Repositories that are logged together.
const LOG_EVERY: usize = 1000;
/// A list of all repositories waits this long for the walk through the folder.
const WALK_LIMIT: Duration = Duration::from_secs(10);

/// How far the comparison of the folder with the index is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct AdoptionProgress {
    /// Nothing is left to compare.
    pub is_finished: bool,
    /// Repositories in the folder; 0 until they are counted.
    pub repositories: u64,
    /// Of these, compared with the index.
    pub compared: u64,
    /// Of these, and of those that are not in the folder any more, read into the index because they differed.
    pub adopted: u64,
    /// Repositories that could not be read: nothing is taken for garbage then.
    pub failed: u64,
}

/// The state of the comparison that follows a start.
#[derive(Debug)]
pub(super) struct Adoption {
    /// Every repository is compared; the state below is empty then.
    is_done: AtomicBool,
    is_stopped: AtomicBool,
    state: Mutex<State>,
    progress: watch::Sender<AdoptionProgress>,
}

#[derive(Debug, Default)]
struct State {
    /// All repositories in the folder, sorted, once the walk through it has ended.
    names: Option<Arc<[Repository]>>,
    /// Only those that the folder or the index has, which bounds it.
    settled: HashSet<Repository>,
}

impl Adoption {
    /// A comparison that is to begin, or with `is_done` one that is not wanted.
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

    /// Whether the index has what the folder has of a repository.
    pub(super) fn is_settled(&self, repository: &Repository) -> bool {
        self.is_done() || self.lock().settled.contains(repository)
    }

    pub(super) fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
    }

    /// Ends it where it is; the next start resumes it.
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

    /// All repositories in the folder; nothing when the comparison has ended.
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins another comparison; whether none is under way.
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
        *self.lock() = State::default();
        self.progress.send_modify(|now| now.is_finished = true);
    }
}

/// Makes the index agree with the folder about a repository, unless it does already; whether it did not.
///
/// Errors: the folder cannot be read, or the store is closing. Blocks.
pub(super) fn settle(shared: &Shared, jobs: &Sender<Job>, repository: &Repository) -> Result<bool> {
    let adoption = &shared.adoption;
    if adoption.is_settled(repository) {
        return Ok(false);
    }
    let adopted = refresh(shared, jobs, repository)?;
    let is_known = adopted || shared.index.snapshot()?.has(repository)?;
    let mut state = adoption.lock();
    // A name that nobody has ever pushed to would only take memory.
    if is_known && !adoption.is_done() {
        state.settled.insert(repository.clone());
    }
    Ok(adopted)
}

/// Compares a repository with the index and reads it where they differ; whether they did. Blocks.
pub(super) fn refresh(
    shared: &Shared,
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

/// Repositories that the index has and the folder does not, to `visit`.
pub(super) fn vanished(
    shared: &Shared,
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

/// Up to `limit` repositories after `after` that have or had a manifest, sorted: by the folder, and those that were
/// made since it was walked through.
pub(super) fn listed(
    shared: &Shared,
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

/// Compares everything after a start; ends early when the store closes.
pub(super) fn run(shared: &Shared, jobs: &Sender<Job>) {
    all(shared, |name| settle(shared, jobs, name));
}

/// Compares everything once more, after [`Adoption::begin_again`]. Requests are answered from the index meanwhile.
pub(super) fn run_again(store: &Weak<Inner>, shared: &Shared) {
    all(shared, |name| match store.upgrade() {
        Some(inner) => inner.committer.refresh(name),
        None => Err(compare::closing()),
    });
}

/// Compares every repository by `one`, which answers whether it differed.
fn all(shared: &Shared, one: impl Fn(&Repository) -> Result<bool> + Sync) {
    let adoption = &shared.adoption;
    let result = try_all(shared, one);
    if adoption.is_stopped() {
        tracing::info!("adoption of the storage folder is interrupted; the next start resumes it");
        return;
    }
    let failed = adoption.progress().failed;
    if let Err(error) = result {
        unsure(shared, &error);
    } else if failed == 0 {
        shared.is_unsure.store(false, Ordering::Release);
    }
    adoption.finish();
}

fn try_all(shared: &Shared, one: impl Fn(&Repository) -> Result<bool> + Sync) -> Result<()> {
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
    vanished(shared, &names, |name| {
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

fn note(shared: &Shared, repository: &Repository, adopted: Result<bool>) {
    let adoption = &shared.adoption;
    let is_failed = adopted.is_err();
    let adopted = adopted.unwrap_or_else(|error| {
        if !adoption.is_stopped() {
            tracing::error!(repo.name = %repository, "a repository is not compared with the index");
            unsure(shared, &error);
        }
        false
    });
    let mut state = AdoptionProgress::default();
    adoption.progress.send_modify(|now| {
        // Those that vanished are not counted.
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
            "the index is not synced, so a crash makes it read more again"
        );
    }
}

/// Nothing may be taken for garbage from now on.
fn unsure(shared: &Shared, error: &StoreError) {
    shared.is_unsure.store(true, Ordering::Release);
    let error = model::error::chain(error);
    tracing::error!(
        error,
        "the storage folder is not known completely, so no garbage is collected"
    );
}
