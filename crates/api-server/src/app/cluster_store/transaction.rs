//! Cluster transactions: lock, load, decide, save the differences, record events.
//!
//! Invariant: changed rows, their events and the new revision become visible together or not at all.

use std::sync::Arc;

use model::Error;
use model::cluster::Cluster;
use model::ids::{ClusterId, HostId, InfraEnvId};
use model::time::Timestamp;
use rules::HostState;
use rules::InstallationPolicy;
use rules::NewEvent;
use rules::Snapshot;
use sqlx::PgConnection;
use uuid::Uuid;

use super::load::LoadedSnapshot;
use super::measured;
use super::pending_refresh::RefreshHandle;
use super::{ClusterStore, StoredSnapshot};
use crate::app::known_release::KnownRelease;
use crate::app::request;
use crate::blocking;
use crate::db::hosts::{HostKey, HostLookup};
use crate::db::{self, tx};
use crate::db::{clusters, hosts, infra_envs, locks};
use crate::measurements::Measurement;

/// Longest queue of changes for one cluster: each holds its request's body in memory.
pub(crate) const MAX_WAITING: usize = 1024;
/// Hosts above which a refresh leaves the runtime, at about ten milliseconds: it would delay other requests' polls. A
/// thread beside the runtime's keeps memory of its own.
pub(crate) const LARGE_CLUSTER: usize = 128;

/// Subject of a change.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scope {
    /// A cluster and its hosts.
    Cluster(ClusterId),
    /// The cluster of that host, or the host alone if it is in the pool.
    Host(InfraEnvId, HostId),
    /// A pool host, known or new.
    Pool(InfraEnvId, HostId),
    /// A cluster, and a pool host that joins it.
    Binding(ClusterId, InfraEnvId, HostId),
}

/// Part of its cluster that a change reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// The cluster and all its hosts. The refresh runs within the change.
    Whole,
    /// Some hosts, one after the other. The refresh of the cluster is marked as due and coalesced over many changes, so
    /// that the cost of a change does not grow with the cluster.
    Hosts,
}

/// State of the refresh, which computes validations and statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refresh {
    /// Not requested.
    None,
    /// To be computed after this change.
    Due,
    /// Computed.
    Done,
}

/// A committed change, or the one that a dry run would commit.
#[derive(Debug)]
pub(crate) struct CommittedChange<T> {
    pub(crate) value: T,
    pub(crate) stored: Arc<StoredSnapshot>,
    /// The refresh of the cluster, if it is due.
    pub(crate) refresh: Option<RefreshHandle>,
}

/// A change in progress: the snapshot, and the writes beside it.
#[derive(Debug)]
pub(crate) struct ClusterTransaction {
    /// The cluster and its hosts; a pool host is alone, with an empty cluster.
    pub(crate) snapshot: Snapshot,
    /// Events to record.
    pub(crate) events: Vec<NewEvent>,
    /// Time of the change.
    pub(crate) now: Timestamp,
    /// Writes beside the records.
    pub(crate) side_writes: SideWrites,
    pub(super) refresh: Refresh,
    /// The pool host that joins the cluster; it is in the snapshot, too.
    pub(super) joining: Option<(InfraEnvId, HostId)>,
    /// Hosts that left the snapshot for the pool.
    pub(super) unbound: Vec<HostState>,
    /// The host whose change runs; none for a change of the whole cluster.
    pub(super) current: Option<HostId>,
    extent: Extent,
    is_bound: bool,
    /// Parameters of the rules.
    policy: Arc<InstallationPolicy>,
}

/// Writes of a transaction beside the records of its snapshot.
#[derive(Debug, Default)]
pub(crate) struct SideWrites {
    /// New pull secret of the cluster.
    pub(crate) pull_secret: Option<String>,
    /// Metadata of the release.
    pub(crate) release: Option<KnownRelease>,
    /// Secrets of a host's ignition endpoint.
    pub(crate) endpoint: Option<(InfraEnvId, HostId, hosts::EndpointSecrets)>,
    /// Delete the cluster; its hosts have been removed from the snapshot.
    pub(crate) delete_cluster: bool,
}

impl ClusterTransaction {
    /// The cluster; none for a pool host.
    pub(crate) fn cluster(&self) -> Option<&Cluster> {
        self.is_bound.then_some(&self.snapshot.cluster)
    }

    /// Checks that the host of the scope is in the snapshot.
    ///
    /// Errors: Moved – it was bound or unbound between lookup and lock.
    pub(super) fn find(&self, scope: Scope) -> Result<(), db::Error> {
        match scope {
            Scope::Host(infra_env, id) if self.snapshot.hosts.position(infra_env, id).is_none() => {
                Err(db::Error::Moved)
            }
            _ => Ok(()),
        }
    }

    /// A mutable host, and its cluster.
    ///
    /// Errors: NotFound.
    pub(crate) fn host(&mut self, id: HostId) -> Result<(&mut HostState, Option<&Cluster>), Error> {
        let cluster = self.is_bound.then_some(&self.snapshot.cluster);
        let host = self.snapshot.hosts.by_id_mut(id);
        host.map(|host| (host, cluster))
            .ok_or_else(|| Error::not_found("host", id))
    }

    /// Moves a host whose record has no cluster any more from the snapshot to the pool.
    pub(crate) fn release(&mut self, id: HostId) {
        if let Some(mut host) = self.snapshot.hosts.remove(id) {
            host.record.updated_at = self.now.into();
            self.unbound.push(host);
        }
    }

    /// Adds a pool host to the snapshot.
    ///
    /// Errors: Conflict – the cluster has a host with its id.
    fn join(&mut self, host: HostState) -> Result<(), Error> {
        let (infra_env, id) = (host.record.infra_env_id, host.record.id);
        if self.snapshot.host(id).is_some() {
            return Err(Error::conflict(format!(
                "cluster {} has a host {id} already, of another infra-env",
                self.snapshot.cluster.id
            )));
        }
        self.joining = Some((infra_env, id));
        self.snapshot.hosts.push(host);
        Ok(())
    }

    /// Refreshes validations and statuses, or marks the refresh as due if the change reads one host.
    pub(crate) fn refresh(&mut self) {
        let policy = &self.policy;
        if self.is_bound && self.extent == Extent::Hosts {
            self.refresh = Refresh::Due;
            return;
        }
        if self.is_bound {
            self.refresh = Refresh::Done;
            let new = rules::cluster::refresh::cluster(&mut self.snapshot, policy, self.now);
            self.events.extend(new);
            return;
        }
        let Snapshot {
            hosts, components, ..
        } = &mut self.snapshot;
        let refresh = |host: &mut HostState| {
            let agent = &components.agent;
            let new = rules::cluster::refresh::unbound_host(host, agent, policy, self.now);
            self.events.extend(new);
        };
        match self.current {
            Some(id) => hosts.by_id_mut(id).into_iter().for_each(refresh),
            None => hosts.iter_mut().for_each(refresh),
        }
    }
}

/// Rows that a change locks: resolved before the lock is taken, checked after.
#[derive(Debug, Clone)]
pub(super) enum LockScope {
    Cluster(ClusterId),
    Pool(InfraEnvId, Vec<HostId>),
}

impl LockScope {
    fn lock_ids(&self) -> Vec<Uuid> {
        match self {
            Self::Cluster(id) => vec![id.0],
            Self::Pool(_, ids) => ids.iter().map(|id| id.0).collect(),
        }
    }

    /// Key of the mutex within this process.
    fn mutex_id(&self) -> Uuid {
        match self {
            Self::Cluster(id) => id.0,
            Self::Pool(infra_env, ids) => ids.first().map_or(infra_env.0, |id| id.0),
        }
    }
}

impl ClusterStore {
    /// Changes a cluster or a pool host: `decide` sees the newest state and may run again.
    ///
    /// Errors: NotFound; Unavailable; those of `decide`, which roll the transaction back.
    pub(crate) async fn change<T>(
        self: &Arc<Self>,
        name: &'static str,
        scope: Scope,
        decide: impl Fn(&mut ClusterTransaction) -> Result<T, Error>,
    ) -> Result<(T, Arc<StoredSnapshot>), Error> {
        let changed = self.transact(name, scope, true, decide).await?;
        let changed =
            changed.ok_or_else(|| Error::conflict("another request is changing the cluster"))?;
        Ok((changed.value, changed.stored))
    }

    /// Like [`ClusterStore::change`], but skips a cluster whose lock is held.
    pub(crate) async fn change_if_free(
        self: &Arc<Self>,
        name: &'static str,
        scope: Scope,
        decide: impl Fn(&mut ClusterTransaction) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.transact(name, scope, false, decide).await.map(drop)
    }

    async fn transact<T>(
        self: &Arc<Self>,
        name: &'static str,
        scope: Scope,
        wait: bool,
        decide: impl Fn(&mut ClusterTransaction) -> Result<T, Error>,
    ) -> Result<Option<CommittedChange<T>>, Error> {
        let decide = |change: &mut ClusterTransaction| {
            change.find(scope)?;
            Ok(decide(change)?)
        };
        let joining = match scope {
            Scope::Binding(_, infra_env, id) => Some((infra_env, id)),
            _ => None,
        };
        tx(name, async || {
            let lock_scope = self.lock_scope(scope).await?;
            self.attempt(joining, &lock_scope, Extent::Whole, wait, &decide)
                .await
        })
        .await
    }

    pub(super) async fn lock_scope(&self, scope: Scope) -> Result<LockScope, db::Error> {
        match scope {
            Scope::Cluster(id) | Scope::Binding(id, ..) => Ok(LockScope::Cluster(id)),
            Scope::Pool(infra_env, id) => Ok(LockScope::Pool(infra_env, vec![id])),
            Scope::Host(infra_env, id) => {
                let binding = self.look_up((infra_env, id)).await?;
                let binding = binding.and_then(|lookup| lookup.binding);
                let binding = binding.ok_or_else(|| Error::not_found("host", id))?;
                Ok(match binding.cluster {
                    Some((cluster, _)) => LockScope::Cluster(cluster),
                    None => LockScope::Pool(infra_env, vec![id]),
                })
            }
        }
    }

    /// Looks a host up; none for an unknown infra-env.
    pub(crate) async fn look_up(&self, host: HostKey) -> Result<Option<HostLookup>, db::Error> {
        let query = |hosts: Vec<HostKey>| async move {
            let mut connection = self.db.pool()?.acquire().await?;
            hosts::look_up(&mut connection, &hosts).await
        };
        self.host_lookups.load(host, query).await
    }

    /// One attempt of a transaction, which the pool host `joining` joins; none if it does not wait and the lock is held.
    pub(super) async fn attempt<T>(
        self: &Arc<Self>,
        joining: Option<(InfraEnvId, HostId)>,
        lock_scope: &LockScope,
        extent: Extent,
        wait: bool,
        decide: &impl Fn(&mut ClusterTransaction) -> Result<T, db::Error>,
    ) -> Result<Option<CommittedChange<T>>, db::Error> {
        // Mutex and semaphore before a connection is taken: waiting changes must not exhaust the pool.
        let guard = self
            .changing
            .lock_within(&lock_scope.mutex_id(), MAX_WAITING)
            .await;
        let _guard = guard.ok_or(Error::Unavailable {
            what: "a cluster with too many waiting changes",
            source: None,
        })?;
        let _permit = self.changes.acquire().await;
        let mut tx = self.db.pool()?.begin().await?;
        let ids = lock_scope.lock_ids();
        if wait {
            locks::lock(&mut tx, &ids).await?;
        } else if !locks::try_lock(&mut tx, &ids).await? {
            return Ok(None);
        }
        let (before, mut change, joining) = self.open(&mut tx, joining, lock_scope, extent).await?;
        let is_joined = joining.is_some();
        let long = extent == Extent::Whole && change.snapshot.hosts.len() > LARGE_CLUSTER;
        let value = blocking::unless_short(long, || {
            if extent == Extent::Whole {
                self.heartbeats.observe(&mut change.snapshot, change.now);
            }
            if before.refresh_due {
                change.refresh();
            }
            if let Some(host) = joining {
                change.join(host)?;
            }
            decide(&mut change)
        })?;
        let due = change.refresh == Refresh::Due;
        let measured = measured::of_change(&before.stored, &change);
        let stored = self.save(&mut tx, lock_scope, &before, change).await?;
        if !request::commit(tx).await? {
            return Ok(Some(CommittedChange {
                value,
                stored,
                refresh: None,
            }));
        }
        measured.iter().for_each(Measurement::record);
        let mut refresh = None;
        // After the commit: the cache must not get ahead of the database.
        if let LockScope::Cluster(id) = lock_scope {
            self.publish(*id, &before.stored, &stored, is_joined);
            refresh = due.then(|| self.request_refresh(*id));
        }
        Ok(Some(CommittedChange {
            value,
            stored,
            refresh,
        }))
    }

    /// Reads the snapshot of a transaction, and the pool host that joins it, under their locks.
    async fn open(
        &self,
        connection: &mut PgConnection,
        joining: Option<(InfraEnvId, HostId)>,
        lock_scope: &LockScope,
        extent: Extent,
    ) -> Result<(LoadedSnapshot, ClusterTransaction, Option<HostState>), db::Error> {
        let before = self.load(connection, lock_scope).await?;
        let joining = match joining {
            Some((infra_env, id)) => Some(self.pool_host(connection, infra_env, id).await?),
            None => None,
        };
        let mut change = ClusterTransaction {
            snapshot: before.stored.snapshot.clone(),
            events: Vec::new(),
            now: service::clock::now(),
            side_writes: SideWrites::default(),
            refresh: Refresh::None,
            joining: None,
            unbound: Vec::new(),
            current: None,
            extent,
            is_bound: matches!(lock_scope, LockScope::Cluster(_)),
            policy: Arc::clone(&self.policy),
        };
        match (extent, lock_scope) {
            // Each host's own change applies its heartbeats.
            (Extent::Hosts, _) => {}
            (Extent::Whole, LockScope::Cluster(id)) => {
                let snapshot = &mut change.snapshot;
                self.heartbeats.overlay(connection, *id, snapshot).await?;
            }
            (Extent::Whole, LockScope::Pool(..)) => {
                for host in &mut change.snapshot.hosts {
                    self.heartbeats.apply(&mut host.record);
                }
            }
        }
        Ok((before, change, joining))
    }

    /// Shows a committed change to readers of the cache, and to the task of preparations.
    fn publish(
        &self,
        id: ClusterId,
        before: &StoredSnapshot,
        stored: &Arc<StoredSnapshot>,
        is_joined: bool,
    ) {
        if is_joined {
            // The next read orders the new host by its registration.
            self.snapshots.remove(id);
        } else {
            self.snapshots.put(id, stored);
        }
        if clusters::is_preparation_due(&stored.snapshot.cluster)
            && !clusters::is_preparation_due(&before.snapshot.cluster)
        {
            self.preparation_due.notify_one();
        }
    }

    /// Locks and reads a pool host that joins a cluster. The cluster is locked first; changes of a pool host lock no
    /// cluster.
    ///
    /// Errors: NotFound; Conflict – it has a cluster.
    async fn pool_host(
        &self,
        connection: &mut PgConnection,
        infra_env: InfraEnvId,
        id: HostId,
    ) -> Result<HostState, db::Error> {
        locks::lock(connection, &[id.0]).await?;
        let row = hosts::find(connection, &self.db.keys().await, infra_env, id).await?;
        let mut row = row.ok_or_else(|| Error::not_found("host", id))?;
        if let Some(cluster) = row.record.cluster_id {
            return Err(Error::conflict(format!("host {id} is bound to cluster {cluster}")).into());
        }
        self.heartbeats.apply(&mut row.record);
        let mut host = row.into_state();
        host.observed = self.heartbeats.observed(service::clock::now());
        Ok(host)
    }

    async fn load(
        &self,
        connection: &mut PgConnection,
        lock_scope: &LockScope,
    ) -> Result<LoadedSnapshot, db::Error> {
        match lock_scope {
            LockScope::Cluster(id) => {
                let loaded = self.snapshots.load(connection, *id).await?;
                loaded.ok_or_else(|| Error::not_found("cluster", id).into())
            }
            LockScope::Pool(infra_env, ids) => {
                let mut stored = StoredSnapshot::default();
                let known = infra_envs::components(connection, *infra_env).await?;
                stored.snapshot.components = self.components.or(&known);
                for row in
                    hosts::find_all(connection, &self.db.keys().await, *infra_env, ids).await?
                {
                    if row.record.cluster_id.is_some() {
                        return Err(db::Error::Moved);
                    }
                    stored.snapshot.hosts.push(row.into_state());
                }
                Ok(LoadedSnapshot {
                    stored: Arc::new(stored),
                    refresh_due: false,
                })
            }
        }
    }
}
