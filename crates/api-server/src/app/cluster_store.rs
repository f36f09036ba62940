//! Clusters with their hosts: cached snapshots, transactions, coalesced refreshes.
//!
//! Invariant: the locks and caches of clusters are private to this module. Use cases read snapshots, and decide within
//! transactions.

mod cache;
mod host_changes;
mod load;
mod measured;
mod pending_refresh;
mod refresh;
mod save;
mod transaction;

use std::sync::Arc;

use concurrency::{BatchLoader, KeyedMutex};
use model::Error;
use model::ids::ClusterId;
use model::release_payload::ComponentImages;
use rules::InstallationPolicy;
use tokio::sync::{Notify, Semaphore};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

pub(crate) use self::cache::{SNAPSHOTS_BYTES, StoredSnapshot};
use self::host_changes::HostChanges;
use self::load::Snapshots;
use self::pending_refresh::Refreshes;
pub(crate) use self::transaction::{ClusterTransaction, LARGE_CLUSTER, MAX_WAITING, Scope};
use super::events::Events;
use super::heartbeats::Heartbeats;
use crate::db::hosts::{HostKey, HostLookup};
use crate::db::{self, Database, clusters, tx};
use crate::settings::Settings;

/// Clusters with their hosts, and pool hosts.
#[derive(Debug)]
pub(crate) struct ClusterStore {
    db: Database,
    /// Parameters of the rules.
    pub(crate) policy: Arc<InstallationPolicy>,
    limits: HostLimits,
    /// Images of the settings that hosts run.
    pub(crate) components: ComponentImages,
    events: Arc<Events>,
    heartbeats: Arc<Heartbeats>,
    snapshots: Snapshots,
    /// Look-ups of hosts: those that arrive together share a query.
    host_lookups: BatchLoader<HostKey, HostLookup>,
    /// Mutex of each cluster or pool host: one change at a time in this process.
    changing: KeyedMutex<Uuid>,
    /// Concurrency limit of changes: it leaves connections of the pool to polls.
    changes: Semaphore,
    /// Changes of single hosts, which share transactions.
    host_changes: HostChanges,
    refreshes: Refreshes,
    /// In-flight requests, and the tasks that they leave behind.
    requests: TaskTracker,
    /// Wakes the preparation task.
    pub(crate) preparation_due: Notify,
}

/// Bounds of hosts.
#[derive(Debug, Clone, Copy)]
struct HostLimits {
    per_cluster: u32,
    per_infra_env: u32,
}

impl ClusterStore {
    /// The clusters of the database. `requests` are drained before its pool closes.
    pub(super) fn new(
        db: Database,
        settings: &Settings,
        events: Arc<Events>,
        heartbeats: Arc<Heartbeats>,
        requests: TaskTracker,
    ) -> Self {
        // At least one, and never all: settings have at least 4 connections.
        let components = settings.components();
        let changes = usize::try_from(settings.db_max_open_connections / 2).unwrap_or(1);
        Self {
            policy: Arc::new(settings.policy()),
            limits: HostLimits {
                per_cluster: settings.max_hosts_per_cluster,
                per_infra_env: settings.max_hosts_per_infra_env,
            },
            events,
            heartbeats,
            snapshots: Snapshots::new(db.clone(), components.clone()),
            components,
            host_lookups: BatchLoader::default(),
            changing: KeyedMutex::default(),
            changes: Semaphore::new(changes),
            host_changes: HostChanges::default(),
            refreshes: Refreshes::default(),
            requests,
            preparation_due: Notify::new(),
            db,
        }
    }

    /// The current snapshot of a cluster.
    ///
    /// Errors: NotFound.
    pub(crate) async fn stored(&self, id: ClusterId) -> Result<Arc<StoredSnapshot>, Error> {
        tx("read cluster", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            let head = clusters::revisions(&mut connection, id).await?;
            let head = head.ok_or_else(|| Error::not_found("cluster", id))?;
            drop(connection);
            let stored = self.at_least(id, head.revision).await?;
            let mut stored = stored.ok_or_else(|| Error::not_found("cluster", id))?;
            if !stored.snapshot.hosts.is_empty() {
                let mut connection = self.db.pool()?.acquire().await?;
                let fresh = &mut Arc::make_mut(&mut stored).snapshot;
                self.heartbeats.overlay(&mut connection, id, fresh).await?;
            }
            Ok(stored)
        })
        .await
    }

    /// A cluster and its hosts, at that revision or a later one, without the last heartbeats.
    pub(crate) async fn at_least(
        &self,
        id: ClusterId,
        revision: i64,
    ) -> Result<Option<Arc<StoredSnapshot>>, db::Error> {
        self.snapshots.at_least(id, revision).await
    }

    /// Evicts a deleted cluster.
    pub(crate) fn evict(&self, id: ClusterId) {
        self.snapshots.remove(id);
    }
}
