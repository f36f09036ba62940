//! One transaction per change: lock, load, decide, save what differs, record events.
//!
//! The one invariant: what a decision changed, its events and the new revision are visible together or not at all.

use std::sync::Arc;

use model::Error;
use model::cluster::Cluster;
use model::host::Host;
use model::ids::{ClusterId, HostId, InfraEnvId};
use model::time::Timestamp;
use rules::{HostState, NewEvent, Policy, Snapshot};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{App, Stored, check_ins, events};
use crate::db::{self, tx};
use crate::db::{
    check_ins as check_in_rows, clusters, events as event_rows, hosts, infra_envs, locks,
};

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
        let host = self
            .snapshot
            .hosts
            .iter_mut()
            .find(|host| host.record.id == id);
        host.map(|host| (host, cluster))
            .ok_or_else(|| Error::not_found("host", id))
    }

    /// Recomputes what follows from the records.
    pub(crate) fn refresh(&mut self, policy: &Policy) {
        if self.is_bound {
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
enum Place {
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
        let outcome = tx(name, async || {
            let place = self.place(scope).await?;
            // The database's lock would do, but each waiting request would hold a connection meanwhile, and a
            // hundred hosts that answer at once would leave none for anybody else.
            let _guard = self.changing.lock(&place.lock_id()).await;
            self.attempt(scope, place, true, &decide).await
        })
        .await?;
        outcome.ok_or_else(|| Error::conflict("somebody else is changing the cluster"))
    }

    /// Like [`App::change`], but leaves a cluster alone that somebody else is changing.
    pub(crate) async fn change_if_free(
        &self,
        name: &'static str,
        scope: Scope,
        decide: impl Fn(&mut Work) -> Result<(), Error>,
    ) -> Result<(), Error> {
        tx(name, async || {
            let place = self.place(scope).await?;
            // The database's lock would do, but each waiting request would hold a connection meanwhile, and a
            // hundred hosts that answer at once would leave none for anybody else.
            let _guard = self.changing.lock(&place.lock_id()).await;
            self.attempt(scope, place, false, &decide).await.map(drop)
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
        wait: bool,
        decide: &impl Fn(&mut Work) -> Result<T, Error>,
    ) -> Result<Option<(T, Arc<Stored>)>, db::Error> {
        let mut tx = self.pool()?.begin().await?;
        if wait {
            locks::lock(&mut tx, place.lock_id()).await?;
        } else if !locks::try_lock(&mut tx, place.lock_id()).await? {
            return Ok(None);
        }
        let before = self.load(&mut tx, place).await?;
        if let Scope::Host(infra_env, id) = scope
            && !before
                .snapshot
                .hosts
                .iter()
                .any(|host| is_host(&host.record, infra_env, id))
        {
            return Err(db::Error::Moved);
        }
        let mut work = Work {
            snapshot: before.snapshot.clone(),
            events: Vec::new(),
            now: service::clock::now(),
            beside: Beside::default(),
            is_bound: matches!(place, Place::Cluster(_)),
        };
        if let Place::Cluster(id) = place {
            self.overlay(&mut tx, id, &mut work.snapshot).await?;
        } else {
            for host in &mut work.snapshot.hosts {
                self.check_ins.apply(&mut host.record);
            }
        }
        let heard_since = self.hearing.since(work.now);
        for host in &mut work.snapshot.hosts {
            host.heard_since = Some(heard_since);
        }
        let answer = decide(&mut work)?;
        let stored = self.save(&mut tx, place, &before, work).await?;
        tx.commit().await?;
        if let Place::Cluster(id) = place {
            self.cache.put(id, Arc::clone(&stored));
            if clusters::is_preparation_due(&stored.snapshot.cluster)
                && !clusters::is_preparation_due(&before.snapshot.cluster)
            {
                self.preparation.notify_one();
            }
        }
        Ok(Some((answer, stored)))
    }

    async fn load(
        &self,
        connection: &mut PgConnection,
        place: Place,
    ) -> Result<Arc<Stored>, db::Error> {
        match place {
            Place::Cluster(id) => match self.load_cluster(connection, id).await? {
                Some(stored) => Ok(stored),
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
                Ok(Arc::new(stored))
            }
        }
    }

    /// A cluster and its hosts, from memory when that is of the right revision.
    pub(super) async fn load_cluster(
        &self,
        connection: &mut PgConnection,
        id: ClusterId,
    ) -> Result<Option<Arc<Stored>>, db::Error> {
        let Some(revision) = clusters::revision(connection, id).await? else {
            self.cache.remove(id);
            return Ok(None);
        };
        self.load_revision(connection, id, revision).await
    }

    /// A cluster and its hosts, from memory when it holds that revision.
    pub(super) async fn load_revision(
        &self,
        connection: &mut PgConnection,
        id: ClusterId,
        revision: i64,
    ) -> Result<Option<Arc<Stored>>, db::Error> {
        if let Some(stored) = self.cache.get(id, revision) {
            return Ok(Some(stored));
        }
        // The cluster first: hosts that are newer than the revision they are kept under do no harm.
        let Some(row) = clusters::find(connection, id).await? else {
            return Ok(None);
        };
        let rows = hosts::of_cluster(connection, id).await?;
        let stored = Arc::new(Stored {
            revision: row.revision,
            snapshot: Snapshot {
                cluster: row.record,
                hosts: rows
                    .into_iter()
                    .map(|row| HostState::new(row.record))
                    .collect(),
                files: row.files,
            },
            release_info: row.release_info,
        });
        self.cache.put(id, Arc::clone(&stored));
        Ok(Some(stored))
    }

    /// Brings the hosts up to their last polls, of any replica.
    pub(super) async fn overlay(
        &self,
        connection: &mut PgConnection,
        id: ClusterId,
        snapshot: &mut Snapshot,
    ) -> Result<(), db::Error> {
        for check_in in check_in_rows::of_cluster(connection, id).await? {
            let host = snapshot
                .hosts
                .iter_mut()
                .find(|host| is_host(&host.record, check_in.infra_env_id, check_in.host_id));
            if let Some(host) = host {
                check_ins::apply(&check_in, &mut host.record);
            }
        }
        for host in &mut snapshot.hosts {
            self.check_ins.apply(&mut host.record);
        }
        Ok(())
    }

    async fn save(
        &self,
        connection: &mut PgConnection,
        place: Place,
        before: &Stored,
        mut work: Work,
    ) -> Result<Arc<Stored>, db::Error> {
        let now = work.now;
        let differences = Differences::find(&before.snapshot, &mut work.snapshot, now);
        for host in &differences.removed {
            hosts::delete(connection, host.0, host.1).await?;
        }
        for index in &differences.added {
            hosts::insert(connection, &work.snapshot.hosts[*index].record, now).await?;
        }
        let changed: Vec<&Host> = differences
            .changed
            .iter()
            .map(|index| &work.snapshot.hosts[*index].record)
            .collect();
        hosts::save(connection, &changed, now).await?;
        let mut release_info = before.release_info.clone();
        let mut revision = before.revision;
        if let Place::Cluster(id) = place {
            if let Some(text) = &work.beside.pull_secret {
                clusters::set_pull_secret(connection, id, text).await?;
            }
            if let Some(info) = work.beside.release_info {
                clusters::set_release_info(connection, id, &info).await?;
                release_info = Some(info);
            }
            if differences.cluster || work.snapshot.files != before.snapshot.files {
                work.snapshot.cluster.updated_at = now.into();
                let (cluster, files) = (&work.snapshot.cluster, work.snapshot.files);
                revision = clusters::save(connection, cluster, files, now).await?;
                if clusters::is_preparation_due(cluster) {
                    clusters::notify_preparation(connection).await?;
                }
            } else if differences.any_host() || release_info != before.release_info {
                revision = clusters::touch(connection, id).await?;
            }
            if work.beside.delete_cluster {
                infra_envs::leave_cluster(connection, id).await?;
                clusters::delete(connection, id, now).await?;
            }
        }
        if let Some((infra_env, host, secrets)) = &work.beside.endpoint {
            hosts::set_endpoint_secrets(connection, *infra_env, *host, secrets).await?;
        }
        event_rows::insert(connection, &events::to_record(&work.events, now), now).await?;
        Ok(Arc::new(Stored {
            revision,
            snapshot: work.snapshot,
            release_info,
        }))
    }
}

/// What differs between two snapshots.
#[derive(Debug, Default)]
struct Differences {
    cluster: bool,
    removed: Vec<(InfraEnvId, HostId)>,
    /// Positions in the newer one.
    added: Vec<usize>,
    /// Positions in the newer one.
    changed: Vec<usize>,
}

impl Differences {
    /// Compares, and stamps the changed hosts. Times of polls do not count: they are stored elsewhere.
    fn find(before: &Snapshot, after: &mut Snapshot, now: Timestamp) -> Self {
        let mut found = Self {
            cluster: before.cluster != after.cluster,
            ..Self::default()
        };
        for host in &before.hosts {
            let (infra_env, id) = (host.record.infra_env_id, host.record.id);
            if !after
                .hosts
                .iter()
                .any(|other| is_host(&other.record, infra_env, id))
            {
                found.removed.push((infra_env, id));
            }
        }
        for (index, host) in after.hosts.iter_mut().enumerate() {
            let record = &mut host.record;
            let old = before
                .hosts
                .iter()
                .find(|old| is_host(&old.record, record.infra_env_id, record.id));
            match old {
                None => found.added.push(index),
                Some(old) if is_changed(&old.record, record) => {
                    record.updated_at = now.into();
                    found.changed.push(index);
                }
                Some(_) => {}
            }
        }
        found
    }

    fn any_host(&self) -> bool {
        !(self.removed.is_empty() && self.added.is_empty() && self.changed.is_empty())
    }
}

fn is_host(record: &Host, infra_env: InfraEnvId, id: HostId) -> bool {
    record.id == id && record.infra_env_id == infra_env
}

fn is_changed(before: &Host, after: &mut Host) -> bool {
    let polled = (after.checked_in_at, after.timestamp);
    (after.checked_in_at, after.timestamp) = (before.checked_in_at, before.timestamp);
    let changed = before != after;
    (after.checked_in_at, after.timestamp) = polled;
    changed
}
