//! Statements about release images that were added to those of the settings.

use model::time::Timestamp;
use model::versions::ReleaseImage;
use sqlx::PgConnection;

use super::Error;

/// An added release image.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AddedRelease {
    pub(crate) image: ReleaseImage,
    /// Name of the user.
    pub(crate) added_by: String,
    pub(crate) added_at: Timestamp,
}

/// All, by version and architecture. A record that a newer server wrote in another form is left out.
pub(crate) async fn list(connection: &mut PgConnection) -> Result<Vec<AddedRelease>, Error> {
    let rows = sqlx::query!(
        "select record, added_by, added_at from release_images order by version, cpu_architecture"
    )
    .fetch_all(connection)
    .await?;
    let added = rows.into_iter().filter_map(|row| {
        Some(AddedRelease {
            image: serde_json::from_value(row.record).ok()?,
            added_by: row.added_by,
            added_at: row.added_at,
        })
    });
    Ok(added.collect())
}

/// Adds one, or replaces that of its version and architecture, unless there are `limit`; false if there are. The default of
/// the others ends with a new one.
pub(crate) async fn put(
    connection: &mut PgConnection,
    added: &AddedRelease,
    limit: i64,
) -> Result<bool, Error> {
    let image = &added.image;
    if image.default {
        sqlx::query!("update release_images set record = record - 'default'")
            .execute(&mut *connection)
            .await?;
    }
    let done = sqlx::query!(
        "insert into release_images (version, cpu_architecture, record, added_by, added_at)
        select $1, $2, $3, $4, $5
        where (select count(*) from release_images) < $6
            or exists (select from release_images where version = $1 and cpu_architecture = $2)
        on conflict (version, cpu_architecture) do update
        set record = excluded.record, added_by = excluded.added_by, added_at = excluded.added_at",
        image.version,
        image.cpu_architecture.as_str(),
        serde_json::to_value(image).unwrap_or_default(),
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
    version: &str,
    cpu_architecture: &str,
) -> Result<bool, Error> {
    let done = sqlx::query!(
        "delete from release_images where version = $1 and cpu_architecture = $2",
        version,
        cpu_architecture
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected() == 1)
}
