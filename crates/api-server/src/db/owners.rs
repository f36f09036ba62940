//! Statements about the owners of clusters.

use model::ids::ClusterId;
use sqlx::PgConnection;

use super::Error;

/// Numbers of stored records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordCounts {
    /// Of all owners.
    pub(crate) all: i64,
    /// Of one owner.
    pub(crate) own: i64,
}

/// Facts about a new record beside its members.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnedSecret<'a> {
    /// Empty: none.
    pub(crate) owner: &'a str,
    pub(crate) pull_secret: &'a str,
}

/// The owner of a cluster, and all clusters of that owner, deleted ones included; none for a cluster without an owner.
pub(crate) async fn of_cluster(
    connection: &mut PgConnection,
    id: ClusterId,
) -> Result<Option<(String, Vec<ClusterId>)>, Error> {
    let row = sqlx::query!(
        r#"select owner, array_agg(id) as "ids!"
        from clusters
        where owner <> '' and owner = (select owner from clusters where id = $1)
        group by owner"#,
        id.0
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| (row.owner, row.ids.into_iter().map(ClusterId).collect())))
}
