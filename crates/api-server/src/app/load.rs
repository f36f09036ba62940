//! Loading of snapshots: cached in memory, and updated with the rows that changed since.

use std::collections::HashMap;
use std::sync::Arc;

use model::host::Host;
use model::ids::{ClusterId, HostId, InfraEnvId};
use rules::ObservedTime;
use rules::Snapshot;
use sqlx::PgConnection;

use super::{ApiServer, StoredSnapshot};
use crate::db::check_ins as check_in_rows;
use crate::db::{self, CheckIn, clusters, hosts};
use crate::secrets::KeySet;

/// A snapshot, and whether its refresh is due: validations and statuses are older than the records.
pub(super) struct LoadedSnapshot {
    pub(super) stored: Arc<StoredSnapshot>,
    pub(super) refresh_due: bool,
}

impl ApiServer {
    /// A cluster and its hosts, at that revision or a later one.
    ///
    /// Concurrent reads are coalesced (single-flight); callers wait without a connection.
    pub(super) async fn at_least(
        &self,
        id: ClusterId,
        revision: i64,
    ) -> Result<Option<Arc<StoredSnapshot>>, db::Error> {
        if let Some(stored) = self.cache.at_least(id, revision) {
            return Ok(Some(stored));
        }
        let _guard = self.loads.lock(&id.0).await;
        if let Some(stored) = self.cache.at_least(id, revision) {
            return Ok(Some(stored));
        }
        let mut connection = self.pool()?.acquire().await?;
        let loaded = self.load_cluster(&mut connection, id).await?;
        Ok(loaded.map(|loaded| loaded.stored))
    }

    /// A cluster and its hosts at the database's revision.
    pub(super) async fn load_cluster(
        &self,
        connection: &mut PgConnection,
        id: ClusterId,
    ) -> Result<Option<LoadedSnapshot>, db::Error> {
        let Some(head) = clusters::revisions(connection, id).await? else {
            self.cache.remove(id);
            return Ok(None);
        };
        let known = self.cache.newest(id);
        if known
            .as_ref()
            .is_some_and(|known| known.revision > head.revision)
        {
            // The cache is ahead of the database: an older state of it was restored.
            self.cache.remove(id);
        }
        let stored = match known.filter(|known| known.revision <= head.revision) {
            Some(known) if known.revision == head.revision => Some(known),
            // Deleted rows are not in the difference: it is complete only if no host left since.
            Some(known) if head.left_revision <= known.revision => {
                update(connection, &self.keys().await, id, head, &known).await?
            }
            _ => read(connection, &self.keys().await, id).await?,
        };
        Ok(stored.map(|stored| {
            self.cache.put(id, Arc::clone(&stored));
            LoadedSnapshot {
                stored,
                refresh_due: head.refresh_due,
            }
        }))
    }

    /// Applies the last heartbeats, as any replica received them.
    pub(super) async fn overlay(
        &self,
        connection: &mut PgConnection,
        id: ClusterId,
        snapshot: &mut Snapshot,
    ) -> Result<(), db::Error> {
        // Before the query: a flush in between would hide them from both.
        let buffered: Vec<Vec<CheckIn>> = snapshot
            .hosts
            .iter()
            .map(|host| {
                let known = self
                    .check_ins
                    .known(host.record.infra_env_id, host.record.id);
                known.collect()
            })
            .collect();
        let flushed = by_host(check_in_rows::of_cluster(connection, id).await?);
        let now = service::clock::now();
        for (at, buffered) in buffered.into_iter().enumerate() {
            let record = &snapshot.hosts[at].record;
            let flushed = flushed.get(&(record.infra_env_id, record.id)).copied();
            for check_in in flushed.into_iter().chain(buffered) {
                // Copy on write: an unchanged host stays shared with other copies of the snapshot.
                let record = &snapshot.hosts[at].record;
                if rules::host::heartbeat::is_newer(record, check_in.checked_in_at, now) {
                    super::check_ins::apply(&check_in, &mut snapshot.hosts[at].record, now);
                }
            }
        }
        Ok(())
    }

    /// Records that hold the last heartbeats of a snapshot's hosts and nothing else, in its order.
    pub(super) fn heartbeats(
        &self,
        snapshot: &Snapshot,
        flushed: Vec<CheckIn>,
    ) -> impl Iterator<Item = Host> {
        let flushed = by_host(flushed);
        let now = service::clock::now();
        snapshot.hosts.iter().map(move |host| {
            let record = &host.record;
            let mut heartbeat = Host {
                infra_env_id: record.infra_env_id,
                id: record.id,
                checked_in_at: record.checked_in_at,
                timestamp: record.timestamp,
                ..Host::default()
            };
            if let Some(check_in) = flushed.get(&(record.infra_env_id, record.id)) {
                super::check_ins::apply(check_in, &mut heartbeat, now);
            }
            self.check_ins.apply(&mut heartbeat);
            heartbeat
        })
    }
}

/// Heartbeats by their hosts.
fn by_host(check_ins: Vec<CheckIn>) -> HashMap<(InfraEnvId, HostId), CheckIn> {
    let keyed = check_ins
        .into_iter()
        .map(|check_in| ((check_in.infra_env_id, check_in.host_id), check_in));
    keyed.collect()
}

/// All rows of a cluster.
async fn read(
    connection: &mut PgConnection,
    keys: &KeySet,
    id: ClusterId,
) -> Result<Option<Arc<StoredSnapshot>>, db::Error> {
    // The cluster first: hosts newer than the cached revision are harmless, the next difference reads them again.
    // A host that left in between raises `left_revision`, so that all is read again.
    let Some(row) = clusters::find(connection, keys, id).await? else {
        return Ok(None);
    };
    let rows = hosts::of_cluster(connection, keys, id).await?;
    Ok(Some(Arc::new(StoredSnapshot {
        revision: row.revision,
        snapshot: Snapshot {
            cluster: row.record,
            hosts: rows.into_iter().map(hosts::HostRow::into_state).collect(),
            files: row.files,
            vip_leases: row.vip_leases,
            observed: ObservedTime::default(),
        },
        release_info: row.release_info,
    })))
}

/// Applies the rows that changed since `known`.
async fn update(
    connection: &mut PgConnection,
    keys: &KeySet,
    id: ClusterId,
    head: clusters::ClusterRevisions,
    known: &StoredSnapshot,
) -> Result<Option<Arc<StoredSnapshot>>, db::Error> {
    let mut stored = known.clone();
    stored.revision = head.revision;
    if head.record_revision > known.revision {
        let Some(row) = clusters::find(connection, keys, id).await? else {
            return Ok(None);
        };
        stored.snapshot.cluster = row.record;
        stored.snapshot.files = row.files;
        stored.snapshot.vip_leases = row.vip_leases;
        stored.release_info = row.release_info;
    }
    let rows = hosts::changed_since(connection, keys, id, known.revision).await?;
    if rows.is_empty() {
        return Ok(Some(Arc::new(stored)));
    }
    for row in rows {
        let (infra_env, id) = (row.record.infra_env_id, row.record.id);
        let host = row.into_state();
        match stored.snapshot.hosts.position(infra_env, id) {
            Some(at) => stored.snapshot.hosts.set(at, host),
            None => stored.snapshot.hosts.push(host),
        }
    }
    Ok(Some(Arc::new(stored)))
}
