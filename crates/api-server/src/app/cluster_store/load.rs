//! Loading of snapshots: cached in memory, and updated with the rows that changed since.

use std::sync::Arc;

use concurrency::KeyedMutex;
use model::ids::ClusterId;
use model::release_payload::ComponentImages;
use sqlx::PgConnection;
use uuid::Uuid;

use super::StoredSnapshot;
use super::cache::ClusterCache;
use crate::app::known_release::KnownRelease;
use crate::db::clusters::ClusterRow;
use crate::db::{self, Database, clusters, hosts};

/// A snapshot, and whether its refresh is due: validations and statuses are older than the records.
pub(super) struct LoadedSnapshot {
    pub(super) stored: Arc<StoredSnapshot>,
    pub(super) refresh_due: bool,
}

/// Snapshots of clusters, at the revisions of the database.
#[derive(Debug)]
pub(super) struct Snapshots {
    db: Database,
    /// Images of the settings, which replace those of releases.
    components: ComponentImages,
    cache: ClusterCache,
    /// Single-flight reads of whole clusters.
    loads: KeyedMutex<Uuid>,
}

impl Snapshots {
    /// Snapshots of the clusters in the database.
    pub(super) fn new(db: Database, components: ComponentImages) -> Self {
        Self {
            db,
            components,
            cache: ClusterCache::default(),
            loads: KeyedMutex::default(),
        }
    }

    /// Caches the snapshot of a committed change.
    pub(super) fn put(&self, id: ClusterId, stored: &Arc<StoredSnapshot>) {
        self.cache.put(id, Arc::clone(stored));
    }

    /// Evicts a cluster.
    pub(super) fn remove(&self, id: ClusterId) {
        self.cache.remove(id);
    }

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
        let mut connection = self.db.pool()?.acquire().await?;
        let loaded = self.load(&mut connection, id).await?;
        Ok(loaded.map(|loaded| loaded.stored))
    }

    /// A cluster and its hosts at the database's revision.
    pub(super) async fn load(
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
                self.update(connection, id, head, &known).await?
            }
            _ => self.read(connection, id).await?,
        };
        Ok(stored.map(|stored| {
            self.cache.put(id, Arc::clone(&stored));
            LoadedSnapshot {
                stored,
                refresh_due: head.refresh_due,
            }
        }))
    }

    /// All rows of a cluster.
    async fn read(
        &self,
        connection: &mut PgConnection,
        id: ClusterId,
    ) -> Result<Option<Arc<StoredSnapshot>>, db::Error> {
        let keys = &self.db.keys().await;
        // The cluster first: hosts newer than the cached revision are harmless, the next difference reads them again.
        // A host that left in between raises `left_revision`, so that all is read again.
        let Some(row) = clusters::find(connection, keys, id).await? else {
            return Ok(None);
        };
        let rows = hosts::of_cluster(connection, keys, id).await?;
        let hosts = rows.into_iter().map(hosts::HostRow::into_state).collect();
        let mut stored = StoredSnapshot {
            revision: row.revision,
            ..StoredSnapshot::default()
        };
        stored.snapshot.hosts = hosts;
        self.set_record(&mut stored, row);
        Ok(Some(Arc::new(stored)))
    }

    /// Replaces the parts of a snapshot that are in the cluster's own row.
    fn set_record(&self, stored: &mut StoredSnapshot, row: ClusterRow) {
        stored.release = KnownRelease::stored(row.release_info);
        let snapshot = &mut stored.snapshot;
        snapshot.cluster = row.record;
        snapshot.files = row.files;
        snapshot.vip_leases = row.vip_leases;
        snapshot.components = self.components.or(&stored.release.components);
    }

    /// Applies the rows that changed since `known`.
    async fn update(
        &self,
        connection: &mut PgConnection,
        id: ClusterId,
        head: clusters::ClusterRevisions,
        known: &StoredSnapshot,
    ) -> Result<Option<Arc<StoredSnapshot>>, db::Error> {
        let keys = &self.db.keys().await;
        let mut stored = known.clone();
        stored.revision = head.revision;
        if head.record_revision > known.revision {
            let Some(row) = clusters::find(connection, keys, id).await? else {
                return Ok(None);
            };
            self.set_record(&mut stored, row);
        }
        for row in hosts::changed_since(connection, keys, id, known.revision).await? {
            let (infra_env, id) = (row.record.infra_env_id, row.record.id);
            let host = row.into_state();
            match stored.snapshot.hosts.position(infra_env, id) {
                Some(at) => stored.snapshot.hosts.set(at, host),
                None => stored.snapshot.hosts.push(host),
            }
        }
        Ok(Some(Arc::new(stored)))
    }
}
