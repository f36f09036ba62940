//! Statements about the content of the registry of the site.

use model::time::Timestamp;
use registry_content::RegistryContent;
use sqlx::PgConnection;

use super::Error;

/// The last reading.
#[derive(Debug, Clone)]
pub(crate) struct StoredContent {
    /// `HOST[:PORT][/NAMESPACE]` that was read.
    pub(crate) registry: String,
    pub(crate) content: RegistryContent,
    /// Time of the last reading that succeeded; none before the first.
    pub(crate) read_at: Option<Timestamp>,
    /// Why the last reading failed, if it did.
    pub(crate) failure: Option<String>,
}

/// The last reading; none before the first. One of a newer server in another form is none.
pub(crate) async fn find(connection: &mut PgConnection) -> Result<Option<StoredContent>, Error> {
    let row = sqlx::query!("select registry, content, read_at, failure from registry_content")
        .fetch_optional(connection)
        .await?;
    Ok(row.and_then(|row| {
        Some(StoredContent {
            registry: row.registry,
            content: serde_json::from_value(row.content).ok()?,
            read_at: row.read_at,
            failure: row.failure,
        })
    }))
}

/// The last reading of `registry` and its time; none if it is the one of the time `known`: content is long, and replicas ask
/// every few seconds. One of a newer server in another form is none.
pub(crate) async fn find_other(
    connection: &mut PgConnection,
    registry: &str,
    known: Option<Timestamp>,
) -> Result<Option<(RegistryContent, Timestamp)>, Error> {
    let row = sqlx::query!(
        r#"select content, read_at as "read_at!" from registry_content
        where registry = $1 and read_at is not null and read_at is distinct from $2"#,
        registry,
        known
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.and_then(|row| Some((serde_json::from_value(row.content).ok()?, row.read_at))))
}

/// Stores a reading.
pub(crate) async fn put(
    connection: &mut PgConnection,
    registry: &str,
    content: &RegistryContent,
    now: Timestamp,
) -> Result<(), Error> {
    let json = serde_json::to_value(content).map_err(|source| Error::Record {
        what: format!("content of registry {registry}"),
        source,
    })?;
    sqlx::query!(
        "insert into registry_content (registry, content, read_at)
        values ($1, $2, $3)
        on conflict (is_only) do update
        set registry = excluded.registry, content = excluded.content, read_at = excluded.read_at, failure = null",
        registry,
        json,
        now
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Records that a reading failed; the last content of that registry stays.
pub(crate) async fn set_failure(
    connection: &mut PgConnection,
    registry: &str,
    reason: &str,
) -> Result<(), Error> {
    sqlx::query!(
        "insert into registry_content (registry, failure) values ($1, $2)
        on conflict (is_only) do update
        set registry = excluded.registry, failure = excluded.failure,
            content = case when registry_content.registry = $1 then registry_content.content else '{}' end,
            read_at = case when registry_content.registry = $1 then registry_content.read_at end",
        registry,
        reason
    )
    .execute(connection)
    .await?;
    Ok(())
}
