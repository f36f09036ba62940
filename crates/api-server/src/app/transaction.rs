//! One transaction per change: lock, load, decide, save what differs, record events.
//!
//! The one invariant: what a decision changed, its events and the new revision are visible together or not at all.

use std::sync::Arc;

use model::Error;
use model::cluster::Cluster;
use model::ids::{ClusterId, HostId, InfraEnvId};
use model::time::Timestamp;
use rules::{HostState, NewEvent, Policy, Snapshot};
use sqlx::PgConnection;
use uuid::Uuid;

use super::refresh::Awaited;
use super::{App, Stored};
use crate::blocking;
use crate::db::{self, tx};
use crate::db::{clusters, hosts, locks};

/// Changes that wait for one cluster at most: each keeps the body of its request in memory.
pub(crate) const WAITING: usize = 1024;
/// Hosts above which a refresh takes longer than others' polls should wait.
const LARGE_CLUSTER: usize = 16;

/// What a change is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scope {
    /// A cluster and its hosts.
    Cluster(ClusterId),
    /// The cluster of that host, or the host alone when it is in the pool.
    Host(InfraEnvId, HostId),
    /// A host of the pool that may be new.
    Pool(InfraEnvId, HostId),
}

/// How much of its cluster a change looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The cluster and all its hosts. What the change makes necessary is computed with it.
    Whole,
    /// One host. What follows for the cluster is marked as due and computed by [`App::refresh`], once for many changes:
    /// the cost of such a change does not grow with the cluster.
    Host(HostId),
}

/// What became of the computation of validations and statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refresh {
    /// Not asked for.
    None,
    /// To be computed apart from this change.
    Due,
    /// Computed.
    Done,
}

/// What a change begins with.
pub(super) struct Before {
    pub(super) stored: Arc<Stored>,
    /// Validations and statuses are older than the records.
    pub(super) refresh_due: bool,
}

/// A change that is stored.
#[derive(Debug)]
pub(crate) struct Changed<T> {
    pub(crate) answer: T,
    pub(crate) stored: Arc<Stored>,
    /// The refresh of the cluster that the change made necessary.
    pub(super) refresh: Option<Awaited>,
}

/// A change that is being decided.
#[derive(Debug)]
pub(crate) struct Work {
    /// The cluster and its hosts; a host of the pool stands alone with an empty cluster.
    pub(crate) snapshot: Snapshot,
    /// What to record beside the change.
    pub(crate) events: Vec<NewEvent>,
    /// The moment of the change.
    pub(crate) now: Timestamp,
    /// What to store beside the records.
    pub(crate) beside: Beside,
    pub(super) refresh: Refresh,
    extent: Extent,
    is_bound: bool,
}

/// What is stored beside the records.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    /// A new pull secret of the cluster.
    pub(crate) pull_secret: Option<String>,
    /// What the release image told.
    pub(crate) release_info: Option<serde_json::Value>,
    /// Secrets of a host's ignition endpoint.
    pub(crate) endpoint: Option<(InfraEnvId, HostId, hosts::EndpointSecrets)>,
    /// The cluster goes; its hosts have left the snapshot already.
    pub(crate) delete_cluster: bool,
}

impl Work {
    /// The cluster; none for a host of the pool.
    pub(crate) fn cluster(&self) -> Option<&Cluster> {
        self.is_bound.then_some(&self.snapshot.cluster)
    }

    /// A host to be changed, and its cluster.
    ///
    /// Errors: NotFound.
    pub(crate) fn host(&mut self, id: HostId) -> Result<(&mut HostState, Option<&Cluster>), Error> {
        let cluster = self.is_bound.then_some(&self.snapshot.cluster);
        let host = self.snapshot.hosts.by_id_mut(id);
        host.map(|host| (host, cluster))
            .ok_or_else(|| Error::not_found("host", id))
    }

    /// Recomputes what follows from the records, or marks it as due when the change is about one host.
    pub(crate) fn refresh(&mut self, policy: &Policy) {
        if self.is_bound {
            if self.extent != Extent::Whole {
                self.refresh = Refresh::Due;
                return;
            }
            self.refresh = Refresh::Done;
            self.events.extend(rules::refresh::cluster(
                &mut self.snapshot,
                policy,
                self.now,
            ));
        } else {
            for host in &mut self.snapshot.hosts {
                self.events
                    .extend(rules::refresh::unbound_host(host, policy, self.now));
            }
        }
    }
}

/// Whom a change locks: resolved before the lock is held, checked after.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    Cluster(ClusterId),
    Pool(InfraEnvId, HostId),
}

impl Place {
    fn lock_id(self) -> Uuid {
        match self {
            Self::Cluster(id) => id.0,
            Self::Pool(_, id) => id.0,
        }
    }
}

impl App {
    /// Changes a cluster or a host of the pool: `decide` sees the newest state and may be asked again.
    ///
    /// Errors: NotFound; whatever `decide` refuses with, in which case nothing is stored; Unavailable.
    pub(crate) async fn change<T>(
        &self,
        name: &'static str,
        scope: Scope,
        decide: impl Fn(&mut Work) -> Result<T, Error>,
    ) -> Result<(T, Arc<Stored>), Error> {
        let changed = self
            .transact(name, scope, Extent::Whole, true, decide)
            .await?;
        let changed =
            changed.ok_or_else(|| Error::conflict("somebody else is changing the cluster"))?;
        Ok((changed.answer, changed.stored))
    }

    /// Like [`App::change`], but of one host, at a cost that does not grow with its cluster: what follows for the
    /// cluster is marked as due in the same transaction and computed soon, once for many such changes.
    ///
    /// Gives the answer of `decide`, the host's cluster before that computation, and what to wait for.
    pub(crate) async fn change_one<T>(
        &self,
        name: &'static str,
        scope: Scope,
        host: HostId,
        decide: impl Fn(&mut Work) -> Result<T, Error>,
    ) -> Result<Changed<T>, Error> {
        let changed = self
            .transact(name, scope, Extent::Host(host), true, decide)
            .await?;
        changed.ok_or_else(|| Error::conflict("somebody else is changing the cluster"))
    }

    /// Like [`App::change`], but leaves a cluster alone that somebody else is changing.
    pub(crate) async fn change_if_free(
        &self,
        name: &'static str,
        scope: Scope,
        decide: impl Fn(&mut Work) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.transact(name, scope, Extent::Whole, false, decide)
            .await
            .map(drop)
    }

    async fn transact<T>(
        &self,
        name: &'static str,
        scope: Scope,
        extent: Extent,
        wait: bool,
        decide: impl Fn(&mut Work) -> Result<T, Error>,
    ) -> Result<Option<Changed<T>>, Error> {
        tx(name, async || {
            let place = self.place(scope).await?;
            // Both before a connection is taken: whoever waits for a cluster must not keep others from the database.
            let guard = self.changing.lock_within(&place.lock_id(), WAITING).await;
            let _guard = guard.ok_or(Error::Unavailable {
                what: "a cluster that very many hosts report to",
                source: None,
            })?;
            let _permit = self.changes.acquire().await;
            self.attempt(scope, place, extent, wait, &decide).await
        })
        .await
    }

    async fn place(&self, scope: Scope) -> Result<Place, db::Error> {
        match scope {
            Scope::Cluster(id) => Ok(Place::Cluster(id)),
            Scope::Pool(infra_env, id) => Ok(Place::Pool(infra_env, id)),
            Scope::Host(infra_env, id) => {
                let mut connection = self.pool()?.acquire().await?;
                let place = hosts::place(&mut connection, infra_env, id).await?;
                let place = place.ok_or_else(|| Error::not_found("host", id))?;
                Ok(match place.cluster {
                    Some((cluster, _)) => Place::Cluster(cluster),
                    None => Place::Pool(infra_env, id),
                })
            }
        }
    }

    async fn attempt<T>(
        &self,
        scope: Scope,
        place: Place,
        extent: Extent,
        wait: bool,
        decide: &impl Fn(&mut Work) -> Result<T, Error>,
    ) -> Result<Option<Changed<T>>, db::Error> {
        let mut tx = self.pool()?.begin().await?;
        if wait {
            locks::lock(&mut tx, place.lock_id()).await?;
        } else if !locks::try_lock(&mut tx, place.lock_id()).await? {
            return Ok(None);
        }
        let before = self.load(&mut tx, place).await?;
        let mut work = Work {
            snapshot: before.stored.snapshot.clone(),
            events: Vec::new(),
            now: service::clock::now(),
            beside: Beside::default(),
            refresh: Refresh::None,
            extent,
            is_bound: matches!(place, Place::Cluster(_)),
        };
        if let Scope::Host(infra_env, id) = scope
            && work.snapshot.hosts.position(infra_env, id).is_none()
        {
            return Err(db::Error::Moved);
        }
        match (place, extent) {
            (Place::Cluster(id), Extent::Whole) => {
                self.overlay(&mut tx, id, &mut work.snapshot).await?;
            }
            (_, Extent::Host(id)) => self.apply_check_ins(&mut work.snapshot, Some(id)),
            (Place::Pool(..), Extent::Whole) => self.apply_check_ins(&mut work.snapshot, None),
        }
        let long = extent == Extent::Whole && work.snapshot.hosts.len() > LARGE_CLUSTER;
        let answer = blocking::unless_short(long, || {
            self.note_hearing(&mut work);
            if before.refresh_due {
                work.refresh(&self.policy);
            }
            decide(&mut work)
        })?;
        let due = work.refresh == Refresh::Due;
        let stored = self.save(&mut tx, place, &before, work).await?;
        tx.commit().await?;
        let mut refresh = None;
        if let Place::Cluster(id) = place {
            self.cache.put(id, Arc::clone(&stored));
            refresh = due.then(|| self.refresh_soon(id));
            if clusters::is_preparation_due(&stored.snapshot.cluster)
                && !clusters::is_preparation_due(&before.stored.snapshot.cluster)
            {
                self.preparation.notify_one();
            }
        }
        Ok(Some(Changed {
            answer,
            stored,
            refresh,
        }))
    }

    fn apply_check_ins(&self, snapshot: &mut Snapshot, only: Option<HostId>) {
        for at in 0..snapshot.hosts.len() {
            if only.is_none_or(|id| snapshot.hosts[at].record.id == id) {
                self.check_ins.apply(&mut snapshot.hosts[at].record);
            }
        }
    }

    /// Only where it changed: a host that is written stops being shared with other copies of the snapshot.
    fn note_hearing(&self, work: &mut Work) {
        let heard_since = Some(self.hearing.since(work.now));
        for at in 0..work.snapshot.hosts.len() {
            let is_meant = match work.extent {
                Extent::Whole => true,
                Extent::Host(id) => work.snapshot.hosts[at].record.id == id,
            };
            if is_meant && work.snapshot.hosts[at].heard_since != heard_since {
                work.snapshot.hosts[at].heard_since = heard_since;
            }
        }
    }

    async fn load(&self, connection: &mut PgConnection, place: Place) -> Result<Before, db::Error> {
        match place {
            Place::Cluster(id) => match self.load_cluster(connection, id).await? {
                Some(loaded) => Ok(Before {
                    stored: loaded.stored,
                    refresh_due: loaded.refresh_due,
                }),
                None => Err(Error::not_found("cluster", id).into()),
            },
            Place::Pool(infra_env, id) => {
                let mut stored = Stored::default();
                if let Some(row) = hosts::find(connection, infra_env, id).await? {
                    if row.record.cluster_id.is_some() {
                        return Err(db::Error::Moved);
                    }
                    stored.snapshot.hosts.push(HostState::new(row.record));
                }
                Ok(Before {
                    stored: Arc::new(stored),
                    refresh_due: false,
                })
            }
        }
    }
}
