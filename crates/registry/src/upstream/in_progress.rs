//! Lookups and fetches in progress: each once, however many wait for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use concurrency::SingleFlight;
use oci::{Digest, Manifest, Repository, Target};
use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::registry::Refusal;

/// Lookups that are under way.
pub(super) type Lookups = SingleFlight<(Repository, Target), Result<Fetched, Refusal>>;

/// A manifest of the upstream, stored locally.
#[derive(Debug, Clone)]
pub(super) struct Fetched {
    pub(super) digest: Digest,
    pub(super) manifest: Arc<Manifest>,
    pub(super) was_here: bool,
}

/// How far a blob has come.
#[derive(Debug, Clone)]
pub(super) enum Progress {
    /// The upstream has not answered yet.
    Asking,
    /// So much of it can be read.
    Coming {
        /// Units: bytes. Of the whole.
        size: u64,
        /// Units: bytes. Never the whole: that may still turn out to be wrong.
        written: u64,
        upload: Uuid,
    },
    /// It is a blob of the repository.
    Kept {
        /// Units: bytes.
        size: u64,
    },
    /// It does not come.
    Failed(Refusal),
}

pub(super) type Key = (Repository, Digest);
pub(super) type Running = Arc<Mutex<HashMap<Key, watch::Receiver<Progress>>>>;

/// Fetches in progress.
#[derive(Debug, Default)]
pub(super) struct Fetches {
    pub(super) running: Running,
    pub(super) tasks: Mutex<JoinSet<()>>,
}

impl Fetches {
    pub(super) fn under_way(
        &self,
        name: &Repository,
        digest: &Digest,
    ) -> Option<watch::Receiver<Progress>> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.get(&(name.clone(), digest.clone())).cloned()
    }

    /// Until all have ended, or `limit` is over.
    pub(super) async fn finish(&self, limit: Duration) {
        let mut tasks =
            std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        let ended = async { while tasks.join_next().await.is_some() {} };
        tokio::time::timeout(limit, ended).await.ok();
        tasks.shutdown().await;
    }
}

/// Removes the entry when the fetch ends, by a panic too.
pub(super) struct Landing {
    pub(super) running: Running,
    pub(super) key: Key,
}

impl Drop for Landing {
    fn drop(&mut self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.remove(&self.key);
    }
}
