//! Statements that seal stored secrets again: batches in the order of the keys, each in a transaction of its own.
//!
//! The rows of a batch are locked, so that no change in between is overwritten. Revisions stay: the content does.
//! Values that do not open are logged by their place, and skipped.

use sealing::{KeySet, SealError, SecretTable};
use sqlx::PgConnection;
use uuid::Uuid;

use super::Error;
use super::hosts::RowName;

/// Rows of one batch.
const BATCH: i64 = 100;

/// Progress through a table: the key after which the next batch starts; none at its end.
pub(crate) type Cursor = Option<(Uuid, Uuid)>;

/// Seals the next batch of `table` after `cursor`.
pub(crate) async fn batch(
    connection: &mut PgConnection,
    keys: &KeySet,
    table: SecretTable,
    cursor: (Uuid, Uuid),
) -> Result<Cursor, Error> {
    match table {
        SecretTable::Clusters => clusters(connection, keys, cursor).await,
        SecretTable::InfraEnvs => infra_envs(connection, keys, cursor).await,
        SecretTable::Hosts => hosts(connection, keys, cursor).await,
    }
}

fn next(count: usize, last: Option<(Uuid, Uuid)>) -> Cursor {
    last.filter(|_| count == usize::try_from(BATCH).unwrap_or_default())
}

/// Secrets of a row.
struct RowSecrets<'a> {
    keys: &'a KeySet,
    table: SecretTable,
    row: String,
}

impl RowSecrets<'_> {
    fn record(&self, record: &mut serde_json::Value) -> Result<bool, Error> {
        let mut is_changed = false;
        for pointer in self.table.members() {
            if let Some(serde_json::Value::String(text)) = record.pointer_mut(pointer) {
                is_changed |= self.text(pointer, text)?;
            }
        }
        Ok(is_changed)
    }

    fn text(&self, column: &str, text: &mut String) -> Result<bool, Error> {
        if !self.keys.is_outdated_text(text) {
            return Ok(false);
        }
        let place = self.table.place(column, &self.row);
        match self.keys.open_text(&place, text.clone()) {
            Ok(plain) => *text = self.keys.seal_text(&place, &plain)?,
            Err(error) => return Ok(skip(&error)),
        }
        Ok(true)
    }

    fn bytes(&self, column: &str, bytes: &mut Vec<u8>) -> Result<bool, Error> {
        if !self.keys.is_outdated(bytes) {
            return Ok(false);
        }
        let place = self.table.place(column, &self.row);
        match self.keys.open(&place, bytes.clone()) {
            Ok(plain) => *bytes = self.keys.seal(&place, &plain)?,
            Err(error) => return Ok(skip(&error)),
        }
        Ok(true)
    }
}

/// A value that does not open stays as it is: one damaged or planted value must not keep the others plain. The error
/// names its place.
fn skip(error: &SealError) -> bool {
    tracing::error!(%error, "secret not sealed again");
    false
}

async fn clusters(
    connection: &mut PgConnection,
    keys: &KeySet,
    (after, _): (Uuid, Uuid),
) -> Result<Cursor, Error> {
    let rows = sqlx::query!(
        "select id, record, pull_secret, signing_key from clusters where id > $1 order by id limit $2 for update",
        after,
        BATCH
    )
    .fetch_all(&mut *connection)
    .await?;
    let cursor = next(rows.len(), rows.last().map(|row| (row.id, row.id)));
    for mut row in rows {
        let secrets = RowSecrets {
            keys,
            table: SecretTable::Clusters,
            row: row.id.to_string(),
        };
        let mut is_changed = secrets.record(&mut row.record)?;
        is_changed |= secrets.text("pull_secret", &mut row.pull_secret)?;
        if let Some(key) = &mut row.signing_key {
            is_changed |= secrets.bytes("signing_key", key)?;
        }
        if is_changed {
            sqlx::query!(
                "update clusters set record = $2, pull_secret = $3, signing_key = $4 where id = $1",
                row.id,
                row.record,
                row.pull_secret,
                row.signing_key
            )
            .execute(&mut *connection)
            .await?;
        }
    }
    Ok(cursor)
}

async fn infra_envs(
    connection: &mut PgConnection,
    keys: &KeySet,
    (after, _): (Uuid, Uuid),
) -> Result<Cursor, Error> {
    let rows = sqlx::query!(
        "select id, record, pull_secret, signing_key from infra_envs where id > $1 order by id limit $2 for update",
        after,
        BATCH
    )
    .fetch_all(&mut *connection)
    .await?;
    let cursor = next(rows.len(), rows.last().map(|row| (row.id, row.id)));
    for mut row in rows {
        let secrets = RowSecrets {
            keys,
            table: SecretTable::InfraEnvs,
            row: row.id.to_string(),
        };
        let mut is_changed = secrets.record(&mut row.record)?;
        is_changed |= secrets.text("pull_secret", &mut row.pull_secret)?;
        if let Some(key) = &mut row.signing_key {
            is_changed |= secrets.bytes("signing_key", key)?;
        }
        if is_changed {
            sqlx::query!(
                "update infra_envs set record = $2, pull_secret = $3, signing_key = $4 where id = $1",
                row.id,
                row.record,
                row.pull_secret,
                row.signing_key
            )
            .execute(&mut *connection)
            .await?;
        }
    }
    Ok(cursor)
}

async fn hosts(
    connection: &mut PgConnection,
    keys: &KeySet,
    (infra_env, host): (Uuid, Uuid),
) -> Result<Cursor, Error> {
    let rows = sqlx::query!(
        "select infra_env_id, id, record, ignition_endpoint_token, ignition_endpoint_http_headers
        from hosts
        where (infra_env_id, id) > ($1, $2)
        order by infra_env_id, id
        limit $3
        for update",
        infra_env,
        host,
        BATCH
    )
    .fetch_all(&mut *connection)
    .await?;
    let cursor = next(
        rows.len(),
        rows.last().map(|row| (row.infra_env_id, row.id)),
    );
    for mut row in rows {
        let secrets = RowSecrets {
            keys,
            table: SecretTable::Hosts,
            row: RowName {
                infra_env: row.infra_env_id,
                id: row.id,
            }
            .to_string(),
        };
        let mut is_changed = secrets.record(&mut row.record)?;
        if let Some(text) = &mut row.ignition_endpoint_token {
            is_changed |= secrets.text("ignition_endpoint_token", text)?;
        }
        if let Some(text) = &mut row.ignition_endpoint_http_headers {
            is_changed |= secrets.text("ignition_endpoint_http_headers", text)?;
        }
        if is_changed {
            sqlx::query!(
                "update hosts
                set record = $3, ignition_endpoint_token = $4, ignition_endpoint_http_headers = $5
                where infra_env_id = $1 and id = $2",
                row.infra_env_id,
                row.id,
                row.record,
                row.ignition_endpoint_token,
                row.ignition_endpoint_http_headers
            )
            .execute(&mut *connection)
            .await?;
        }
    }
    Ok(cursor)
}
