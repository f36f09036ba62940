//! Statements about OS images that were added to those of the settings.

use model::time::Timestamp;
use model::versions::AddedOsImage;
use sqlx::PgConnection;

use super::Error;

/// An added OS image, with its user and time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OsImageRow {
    pub(crate) image: AddedOsImage,
    /// Name of the user.
    pub(crate) added_by: String,
    pub(crate) added_at: Timestamp,
}

/// All, by version and architecture. A record that a newer server wrote in another form is left out.
pub(crate) async fn list(connection: &mut PgConnection) -> Result<Vec<OsImageRow>, Error> {
    let rows = sqlx::query!(
        "select record, added_by, added_at from os_images order by openshift_version, cpu_architecture"
    )
    .fetch_all(connection)
    .await?;
    let added = rows.into_iter().filter_map(|row| {
        Some(OsImageRow {
            image: serde_json::from_value(row.record).ok()?,
            added_by: row.added_by,
            added_at: row.added_at,
        })
    });
    Ok(added.collect())
}

/// Adds one, or replaces that of its version and architecture, unless there are `limit`; false if there are.
pub(crate) async fn put(
    connection: &mut PgConnection,
    added: &OsImageRow,
    limit: i64,
) -> Result<bool, Error> {
    let image = &added.image.image;
    let done = sqlx::query!(
        "insert into os_images (openshift_version, cpu_architecture, record, added_by, added_at)
        select $1, $2, $3, $4, $5
        where (select count(*) from os_images) < $6
            or exists (select from os_images where openshift_version = $1 and cpu_architecture = $2)
        on conflict (openshift_version, cpu_architecture) do update
        set record = excluded.record, added_by = excluded.added_by, added_at = excluded.added_at",
        image.openshift_version,
        image.cpu_architecture.as_str(),
        serde_json::to_value(&added.image).unwrap_or_default(),
        added.added_by,
        added.added_at,
        limit
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Removes one; false if there is none.
pub(crate) async fn delete(
    connection: &mut PgConnection,
    openshift_version: &str,
    cpu_architecture: &str,
) -> Result<bool, Error> {
    let done = sqlx::query!(
        "delete from os_images where openshift_version = $1 and cpu_architecture = $2",
        openshift_version,
        cpu_architecture
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected() == 1)
}
