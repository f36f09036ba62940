//! Statements about clusters.

use model::cluster::{Cluster, ClusterStatus};
use model::ids::ClusterId;
use model::time::Timestamp;
use rules::Snapshot;
use rules::StoredFiles;
use rules::VipLeases;
use sealing::{KeySet, SecretTable};
use serde::Serialize;
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::check_ins::ExpiredHeartbeats;
use super::{Error, OwnedSecret, RecordCounts, RecordVersion, record};

const TABLE: SecretTable = SecretTable::Clusters;

/// A cluster as stored.
#[derive(Debug, Clone)]
pub(crate) struct ClusterRow {
    /// Raised with each change of the cluster or of its hosts.
    pub(crate) revision: i64,
    /// The wire record.
    pub(crate) record: Cluster,
    /// Metadata of the release image, as JSON.
    pub(crate) release_info: Option<serde_json::Value>,
    /// Its files in the file store.
    pub(crate) files: StoredFiles,
    /// Leases of its virtual addresses.
    pub(crate) vip_leases: VipLeases,
}

/// A cluster that is not deleted.
pub(crate) async fn find(
    connection: &mut PgConnection,
    keys: &KeySet,
    id: ClusterId,
) -> Result<Option<ClusterRow>, Error> {
    let row = sqlx::query!(
        r#"select revision, record::text as "record!", record -> 'vip_leases' as vip_leases, release_info,
            kubeconfig_stored, user_manifests_stored
        from clusters
        where id = $1 and deleted_at is null"#,
        id.0
    )
    .fetch_optional(connection)
    .await?;
    row.map(|row| {
        Ok(ClusterRow {
            revision: row.revision,
            record: record::parse(keys, TABLE, id, &row.record)?,
            release_info: row.release_info,
            files: StoredFiles {
                kubeconfig: row.kubeconfig_stored,
                user_manifests: row.user_manifests_stored,
            },
            vip_leases: row
                .vip_leases
                .map(|leases| parse_leases(id, leases))
                .transpose()?
                .unwrap_or_default(),
        })
    })
    .transpose()
}

fn parse_leases(id: ClusterId, leases: serde_json::Value) -> Result<VipLeases, Error> {
    serde_json::from_value(leases).map_err(|source| Error::Record {
        what: format!("leases of cluster {id}"),
        source,
    })
}

/// Member of the stored record beside those of the API. Clusters without DHCP have none.
fn print_leases(leases: &VipLeases) -> serde_json::Value {
    if *leases == VipLeases::default() {
        return json!({});
    }
    json!({ "vip_leases": leases })
}

/// Revisions of a cluster: enough to update a cached snapshot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClusterRevisions {
    /// Raised with each change of the cluster or of its hosts.
    pub(crate) revision: i64,
    /// Revision of the last change of the row itself.
    pub(crate) record_revision: i64,
    /// Revision of the last departure of a host.
    pub(crate) left_revision: i64,
    /// Validations and statuses are older than the records.
    pub(crate) refresh_due: bool,
}

/// Revisions of a cluster that is not deleted.
pub(crate) async fn revisions(
    connection: &mut PgConnection,
    id: ClusterId,
) -> Result<Option<ClusterRevisions>, Error> {
    Ok(sqlx::query_as!(
        ClusterRevisions,
        "select revision, record_revision, left_revision, refresh_due
        from clusters
        where id = $1 and deleted_at is null",
        id.0
    )
    .fetch_optional(connection)
    .await?)
}

/// Clusters whose refresh is due, of any replica.
pub(crate) async fn refresh_due(
    connection: &mut PgConnection,
    limit: i64,
) -> Result<Vec<ClusterId>, Error> {
    let ids = sqlx::query_scalar!(
        "select id from clusters where refresh_due and deleted_at is null order by id limit $1",
        limit
    )
    .fetch_all(connection)
    .await?;
    Ok(ids.into_iter().map(ClusterId).collect())
}

/// Filter of a listing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ClusterFilter {
    /// One cluster.
    pub(crate) id: Option<Uuid>,
    /// Id of the installed platform.
    pub(crate) openshift_cluster_id: Option<Uuid>,
    /// Include deleted clusters.
    pub(crate) with_deleted: bool,
}

/// A cluster of a listing, without its record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListedRow {
    /// The cluster.
    pub(crate) id: ClusterId,
    /// Version of its record.
    pub(crate) version: RecordVersion,
    /// Time of its deletion.
    pub(crate) deleted_at: Option<Timestamp>,
}

/// Clusters, oldest first.
pub(crate) async fn list(
    connection: &mut PgConnection,
    filter: ClusterFilter,
) -> Result<Vec<ListedRow>, Error> {
    let rows = sqlx::query!(
        "select id, record_revision, updated_at, deleted_at
        from clusters
        where (deleted_at is null or $2)
            and ($1::uuid is null or openshift_cluster_id = $1)
            and ($3::uuid is null or id = $3)
        order by created_at, id",
        filter.openshift_cluster_id,
        filter.with_deleted,
        filter.id
    )
    .fetch_all(connection)
    .await?;
    let listed = rows.into_iter().map(|row| ListedRow {
        id: ClusterId(row.id),
        version: RecordVersion {
            revision: row.record_revision,
            updated_at: row.updated_at,
        },
        deleted_at: row.deleted_at,
    });
    Ok(listed.collect())
}

/// Records of clusters, of deleted ones, too.
pub(crate) async fn records(
    connection: &mut PgConnection,
    keys: &KeySet,
    ids: &[ClusterId],
) -> Result<Vec<(Cluster, RecordVersion)>, Error> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let rows = sqlx::query!(
        r#"select id, record::text as "record!", record_revision, updated_at
        from clusters
        where id = any($1)"#,
        &ids
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter()
        .map(|row| {
            let version = RecordVersion {
                revision: row.record_revision,
                updated_at: row.updated_at,
            };
            Ok((record::parse(keys, TABLE, row.id, &row.record)?, version))
        })
        .collect()
}

/// Ids of clusters that are not deleted, in their order, after one of them.
pub(crate) async fn ids_after(
    connection: &mut PgConnection,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<ClusterId>, Error> {
    let ids = sqlx::query_scalar!(
        "select id
        from clusters
        where deleted_at is null and ($1::uuid is null or id > $1)
        order by id
        limit $2",
        after,
        limit
    )
    .fetch_all(connection)
    .await?;
    Ok(ids.into_iter().map(ClusterId).collect())
}

/// Ids of clusters of a name that are not deleted, in their order; at most 100.
pub(crate) async fn ids_of_name(
    connection: &mut PgConnection,
    name: &str,
) -> Result<Vec<ClusterId>, Error> {
    let ids = sqlx::query_scalar!(
        "select id
        from clusters
        where deleted_at is null and name = $1
        order by id
        limit 100",
        name
    )
    .fetch_all(connection)
    .await?;
    Ok(ids.into_iter().map(ClusterId).collect())
}

/// Numbers of clusters that are not deleted, in all and of an owner.
pub(crate) async fn count(
    connection: &mut PgConnection,
    owner: &str,
) -> Result<RecordCounts, Error> {
    let counts = sqlx::query_as!(
        RecordCounts,
        r#"select count(*) as "all!", count(*) filter (where owner = $1) as "own!"
        from clusters
        where deleted_at is null"#,
        owner
    );
    Ok(counts.fetch_one(connection).await?)
}

/// Adds the cluster of a snapshot.
pub(crate) async fn insert(
    connection: &mut PgConnection,
    keys: &KeySet,
    snapshot: &Snapshot,
    OwnedSecret { owner, pull_secret }: OwnedSecret<'_>,
    now: Timestamp,
) -> Result<(), Error> {
    let cluster = &snapshot.cluster;
    sqlx::query!(
        "insert into clusters (
            id, name, status, openshift_cluster_id, record, pull_secret, created_at, updated_at, owner
        )
        values ($1, $2, $3, $4, $5::text::jsonb || $8::jsonb, $6, $7, $7, $9)",
        cluster.id.0,
        cluster.name,
        cluster.status.as_str(),
        cluster.openshift_cluster_id,
        record::print(keys, TABLE, cluster.id, cluster)?,
        keys.seal_text(&TABLE.place("pull_secret", cluster.id), pull_secret)?,
        now,
        print_leases(&snapshot.vip_leases),
        owner
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Effects of a change on cached snapshots of the cluster.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RevisionBump {
    /// The row changed, not only a host.
    pub(crate) record: bool,
    /// A host left.
    pub(crate) left: bool,
    /// Validations and statuses are older than the records.
    pub(crate) refresh_due: bool,
}

/// Stores the changed cluster of a snapshot; returns its new revision.
pub(crate) async fn save(
    connection: &mut PgConnection,
    keys: &KeySet,
    snapshot: &Snapshot,
    bump: RevisionBump,
    now: Timestamp,
) -> Result<i64, Error> {
    let (cluster, files) = (&snapshot.cluster, snapshot.files);
    Ok(sqlx::query_scalar!(
        "update clusters
        set revision = revision + 1,
            name = $2,
            status = $3,
            openshift_cluster_id = $4,
            record = $5::text::jsonb || $12::jsonb,
            preparation_due = $6,
            kubeconfig_stored = $7,
            user_manifests_stored = $8,
            updated_at = $9,
            record_revision = revision + 1,
            left_revision = case when $10 then revision + 1 else left_revision end,
            refresh_due = $11
        where id = $1
        returning revision",
        cluster.id.0,
        cluster.name,
        cluster.status.as_str(),
        cluster.openshift_cluster_id,
        record::print(keys, TABLE, cluster.id, cluster)?,
        is_preparation_due(cluster),
        files.kubeconfig,
        files.user_manifests,
        now,
        bump.left,
        bump.refresh_due,
        print_leases(&snapshot.vip_leases)
    )
    .fetch_one(connection)
    .await?)
}

/// Raises the revision for a change beside the record; returns it.
pub(crate) async fn touch(
    connection: &mut PgConnection,
    id: ClusterId,
    bump: RevisionBump,
) -> Result<i64, Error> {
    Ok(sqlx::query_scalar!(
        "update clusters
        set revision = revision + 1,
            record_revision = case when $2 then revision + 1 else record_revision end,
            left_revision = case when $3 then revision + 1 else left_revision end,
            refresh_due = $4
        where id = $1
        returning revision",
        id.0,
        bump.record,
        bump.left,
        bump.refresh_due
    )
    .fetch_one(connection)
    .await?)
}

/// Clears the due mark after a refresh without changes.
pub(crate) async fn refreshed(connection: &mut PgConnection, id: ClusterId) -> Result<(), Error> {
    sqlx::query!(
        "update clusters set refresh_due = false where id = $1",
        id.0
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Marks a cluster as deleted.
pub(crate) async fn delete(
    connection: &mut PgConnection,
    id: ClusterId,
    now: Timestamp,
) -> Result<(), Error> {
    sqlx::query!(
        "update clusters
        set deleted_at = $2, revision = revision + 1, preparation_due = false, refresh_due = false
        where id = $1",
        id.0,
        now
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The pull secret of a cluster.
pub(crate) async fn pull_secret(
    connection: &mut PgConnection,
    keys: &KeySet,
    id: ClusterId,
) -> Result<Option<String>, Error> {
    let stored = sqlx::query_scalar!(
        "select pull_secret from clusters where id = $1 and deleted_at is null",
        id.0
    )
    .fetch_optional(connection)
    .await?;
    let place = TABLE.place("pull_secret", id);
    Ok(stored
        .map(|stored| keys.open_text(&place, stored))
        .transpose()?)
}

/// Replaces the pull secret of a cluster.
pub(crate) async fn set_pull_secret(
    connection: &mut PgConnection,
    keys: &KeySet,
    id: ClusterId,
    pull_secret: &str,
) -> Result<(), Error> {
    sqlx::query!(
        "update clusters set pull_secret = $2 where id = $1",
        id.0,
        keys.seal_text(&TABLE.place("pull_secret", id), pull_secret)?
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Stores the metadata of the release image.
pub(crate) async fn set_release_info(
    connection: &mut PgConnection,
    id: ClusterId,
    release: &impl Serialize,
) -> Result<(), Error> {
    let info = serde_json::to_value(release).map_err(|source| Error::Record {
        what: format!("release of cluster {id}"),
        source,
    })?;
    sqlx::query!(
        "update clusters set release_info = $2 where id = $1",
        id.0,
        info
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The web UI's settings of a cluster.
pub(crate) async fn ui_settings(
    connection: &mut PgConnection,
    id: ClusterId,
) -> Result<Option<String>, Error> {
    Ok(sqlx::query_scalar!(
        "select ui_settings from clusters where id = $1 and deleted_at is null",
        id.0
    )
    .fetch_optional(connection)
    .await?)
}

/// Replaces the web UI's settings of a cluster; false for an unknown cluster.
pub(crate) async fn set_ui_settings(
    connection: &mut PgConnection,
    id: ClusterId,
    text: &str,
) -> Result<bool, Error> {
    let done = sqlx::query!(
        "update clusters set ui_settings = $2 where id = $1 and deleted_at is null",
        id.0,
        text
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// The key of a cluster's signed links; `new` becomes it if there is none yet. None for an unknown cluster.
pub(crate) async fn signing_key(
    connection: &mut PgConnection,
    keys: &KeySet,
    id: ClusterId,
    new: &[u8],
) -> Result<Option<Vec<u8>>, Error> {
    let place = TABLE.place("signing_key", id);
    let stored = sqlx::query_scalar!(
        r#"update clusters
        set signing_key = coalesce(signing_key, $2)
        where id = $1 and deleted_at is null
        returning signing_key as "signing_key!""#,
        id.0,
        keys.seal(&place, new)?
    )
    .fetch_optional(connection)
    .await?;
    Ok(stored.map(|stored| keys.open(&place, stored)).transpose()?)
}

/// Clusters whose preparation is due.
pub(crate) async fn preparation_due(
    connection: &mut PgConnection,
    limit: i64,
) -> Result<Vec<ClusterId>, Error> {
    let ids = sqlx::query_scalar!(
        "select id from clusters where preparation_due order by id limit $1",
        limit
    )
    .fetch_all(connection)
    .await?;
    Ok(ids.into_iter().map(ClusterId).collect())
}

/// Clusters that change by time alone: those with running timeouts, of day-2 hosts, too, or with a host whose last
/// heartbeat is expired.
pub(crate) async fn to_monitor(
    connection: &mut PgConnection,
    expired: ExpiredHeartbeats,
    ended_after: Timestamp,
    limit: i64,
) -> Result<Vec<ClusterId>, Error> {
    let ids = sqlx::query_scalar!(
        r#"select id as "id!"
        from clusters
        where deleted_at is null
            and status in (
                'preparing-for-installation', 'installing', 'finalizing', 'installing-pending-user-action'
            )
        union
        select id
        from clusters
        where deleted_at is null and status in ('error', 'cancelled') and updated_at > $2
        union
        select hosts.cluster_id
        from host_check_ins
        join hosts on hosts.infra_env_id = host_check_ins.infra_env_id and hosts.id = host_check_ins.host_id
        where (host_check_ins.checked_in_at < $1 or host_check_ins.checked_in_at > $4::timestamptz)
            and hosts.cluster_id is not null
            and hosts.status in (
                'discovering', 'known', 'insufficient', 'pending-for-input', 'preparing-failed',
                'preparing-for-installation', 'preparing-successful'
            )
        union
        select hosts.cluster_id
        from hosts
        join clusters on clusters.id = hosts.cluster_id
        where hosts.cluster_id is not null
            and hosts.status in ('installing', 'installing-in-progress', 'installing-pending-user-action')
            and clusters.deleted_at is null
            and clusters.status = 'adding-hosts'
        limit $3"#,
        expired.before,
        ended_after,
        limit,
        expired.after
    )
    .fetch_all(connection)
    .await?;
    Ok(ids.into_iter().map(ClusterId).collect())
}

/// Notifies every replica of a due preparation.
pub(crate) async fn notify_preparation(connection: &mut PgConnection) -> Result<(), Error> {
    sqlx::query_scalar!("select pg_notify('atoll_preparation', '')")
        .fetch_one(connection)
        .await?;
    Ok(())
}

/// Whether the preparation of a cluster in this state is due.
pub(crate) fn is_preparation_due(cluster: &Cluster) -> bool {
    use model::cluster::PreparationStatus;
    cluster.status == ClusterStatus::PreparingForInstallation
        && !matches!(
            cluster.last_installation_preparation.status,
            Some(PreparationStatus::Success | PreparationStatus::Failed)
        )
}
