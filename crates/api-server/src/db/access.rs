//! Statements about the access of callers to clusters and infra-envs.

use model::ids::{ClusterId, InfraEnvId};
use sealing::{KeySet, SecretTable};
use sqlx::PgConnection;

use super::Error;

/// Whether the infra-env belongs to the cluster, or one of its hosts does.
pub(crate) async fn shares_hosts(
    connection: &mut PgConnection,
    infra_env: InfraEnvId,
    cluster: ClusterId,
) -> Result<bool, Error> {
    Ok(sqlx::query_scalar!(
        r#"select exists (
            select 1
            from infra_envs
            where id = $1 and cluster_id = $2
            union all
            select 1
            from hosts
            where infra_env_id = $1 and cluster_id = $2
        ) as "exists!""#,
        infra_env.0,
        cluster.0
    )
    .fetch_one(connection)
    .await?)
}

/// Owner of a cluster or infra-env; empty for records that were created without authentication.
#[derive(Debug, Clone)]
pub(crate) struct RecordOwner {
    /// Unique name.
    pub(crate) user_name: String,
    /// Organisation.
    pub(crate) org_id: String,
}

/// The owner of a cluster, also of a deleted one.
pub(crate) async fn owner_of_cluster(
    connection: &mut PgConnection,
    id: ClusterId,
) -> Result<Option<RecordOwner>, Error> {
    Ok(sqlx::query_as!(
        RecordOwner,
        r#"select coalesce(record->>'user_name', '') as "user_name!", coalesce(record->>'org_id', '') as "org_id!"
        from clusters
        where id = $1"#,
        id.0
    )
    .fetch_optional(connection)
    .await?)
}

/// The owner of an infra-env.
pub(crate) async fn owner_of_infra_env(
    connection: &mut PgConnection,
    id: InfraEnvId,
) -> Result<Option<RecordOwner>, Error> {
    Ok(sqlx::query_as!(
        RecordOwner,
        r#"select coalesce(record->>'user_name', '') as "user_name!", coalesce(record->>'org_id', '') as "org_id!"
        from infra_envs
        where id = $1"#,
        id.0
    )
    .fetch_optional(connection)
    .await?)
}

/// Pull secrets of a cluster, of its infra-envs, and of those of its hosts.
pub(crate) async fn pull_secrets_of_cluster(
    connection: &mut PgConnection,
    keys: &KeySet,
    id: ClusterId,
) -> Result<Vec<String>, Error> {
    let rows = sqlx::query!(
        r#"select distinct on (pull_secret) id as "id!", is_cluster as "is_cluster!", pull_secret as "pull_secret!"
        from (
            select id, true as is_cluster, pull_secret
            from clusters
            where id = $1 and deleted_at is null
            union all
            select id, false, pull_secret
            from infra_envs
            where cluster_id = $1 or id in (select infra_env_id from hosts where cluster_id = $1)
        ) as stored"#,
        id.0
    )
    .fetch_all(connection)
    .await?;
    let opened = rows.into_iter().map(|row| {
        let table = if row.is_cluster {
            SecretTable::Clusters
        } else {
            SecretTable::InfraEnvs
        };
        let place = table.place("pull_secret", row.id);
        Ok(keys.open_text(&place, row.pull_secret)?)
    });
    opened.collect()
}

/// The pull secret of an infra-env.
pub(crate) async fn pull_secret_of_infra_env(
    connection: &mut PgConnection,
    keys: &KeySet,
    id: InfraEnvId,
) -> Result<Option<String>, Error> {
    let stored = sqlx::query_scalar!("select pull_secret from infra_envs where id = $1", id.0)
        .fetch_optional(connection)
        .await?;
    let place = SecretTable::InfraEnvs.place("pull_secret", id);
    Ok(stored
        .map(|stored| keys.open_text(&place, stored))
        .transpose()?)
}
