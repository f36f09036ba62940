//! Adoption: each start compares the folder with the index, while requests are served.
//!
//! The folder is the truth, and other programs may have changed it since the last run. Until all repositories are
//! compared, a request waits for its own repository; afterwards the check costs one atomic load.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;

use tokio::sync::oneshot;

use super::adoption_progress::AdoptionProgress;
use super::committer::{self, Job, SharedState};
use super::{compare, scan};
use crate::{Result, StoreError};
use oci::Repository;

/// Concurrent comparisons: a cold medium serves several reads faster than one after the other.
const WORKERS: usize = 4;
/// Repositories that a crash may make the next start read again.
const SYNC_EVERY: usize = 2000;
/// Repositories per log message.
const LOG_EVERY: usize = 1000;
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
    // Names without content are not remembered: clients may ask for any number of them.
    if adopted || shared.index.snapshot()?.has(repository)? {
        adoption.remember(repository);
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

/// Compares all repositories again, after [`super::adoption_progress::Adoption::begin_again`]. Requests are served from the index meanwhile.
pub(super) fn run_again(
    shared: &SharedState,
    refresh: impl Fn(&Repository) -> Result<bool> + Sync,
) {
    all(shared, refresh);
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
    let names: Arc<[Repository]> = scan::repositories(&shared.layout, is_open)?.into();
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
    let AdoptionProgress {
        repositories,
        compared,
        adopted: sum,
        ..
    } = adoption.count(adopted, is_failed);
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
