//! Statements about the keys that stored secrets are sealed with.

use sealing::KeySet;
use sqlx::PgConnection;

use super::{DatabaseUnavailable, Error};

/// Checks that every key in use is in the key file, and registers the one that seals.
///
/// Errors: Sealed – a key is missing.
pub(super) async fn check(
    connection: &mut PgConnection,
    keys: &KeySet,
) -> Result<(), DatabaseUnavailable> {
    if let Some(id) = missing(connection, keys).await? {
        return Err(DatabaseUnavailable::Sealed(id));
    }
    // Before the first secret is sealed with it.
    if let Some(active) = keys.active_id() {
        register(connection, &active.to_string()).await?;
    }
    Ok(())
}

/// Id of a key in use that is not in the key file.
pub(crate) async fn missing(
    connection: &mut PgConnection,
    keys: &KeySet,
) -> Result<Option<String>, sqlx::Error> {
    let used = sqlx::query_scalar!("select id from secret_keys order by id")
        .fetch_all(connection)
        .await?;
    let known: Vec<String> = keys.ids().map(|id| id.to_string()).collect();
    Ok(used.into_iter().find(|id| !known.contains(id)))
}

/// Registers a key.
async fn register(connection: &mut PgConnection, id: &str) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "insert into secret_keys (id) values ($1) on conflict (id) do nothing",
        id
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Registers the key that seals; whether secrets may still be plain or sealed with another one.
pub(crate) async fn is_pass_due(connection: &mut PgConnection, id: &str) -> Result<bool, Error> {
    register(connection, id).await?;
    let due = sqlx::query_scalar!(
        r#"select exists (select from secret_keys where id <> $1 or not complete) as "due!""#,
        id
    );
    Ok(due.fetch_one(connection).await?)
}

/// Records that every secret is sealed with this key: the others are no longer needed.
pub(crate) async fn complete(connection: &mut PgConnection, id: &str) -> Result<(), Error> {
    sqlx::query!("delete from secret_keys where id <> $1", id)
        .execute(&mut *connection)
        .await?;
    sqlx::query!("update secret_keys set complete = true where id = $1", id)
        .execute(connection)
        .await?;
    Ok(())
}
