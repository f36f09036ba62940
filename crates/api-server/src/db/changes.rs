//! Statements about changes of records.

use model::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::Error;

/// A record that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangedRecord {
    /// The cluster itself, or that of a host.
    pub(crate) cluster_id: Option<Uuid>,
    /// The infra-env itself, or that of a host without cluster.
    pub(crate) infra_env_id: Option<Uuid>,
    pub(crate) updated_at: Timestamp,
}

/// Clusters and infra-envs that changed at `since` or later, with their hosts. Deletions have events.
pub(crate) async fn since(
    connection: &mut PgConnection,
    since: Timestamp,
) -> Result<Vec<ChangedRecord>, Error> {
    let records = sqlx::query_as!(
        ChangedRecord,
        r#"select id as cluster_id, null::uuid as infra_env_id, updated_at as "updated_at!"
        from clusters
        where updated_at >= $1
        union all
        select cluster_id, id, updated_at
        from infra_envs
        where updated_at >= $1
        union all
        select null, infra_env_id, max(updated_at)
        from hosts
        where cluster_id is null and updated_at >= $1
        group by infra_env_id"#,
        since
    );
    Ok(records.fetch_all(connection).await?)
}
