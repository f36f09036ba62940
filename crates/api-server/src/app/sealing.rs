//! Sealing of secrets that are stored plain, or with an older key. Idempotent: a pass that was killed starts again, and
//! skips finished values.

use ::sealing::{KeySet, SecretTable};
use cluster_files::FileStore;
use model::Error;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::db::{self, Database, sealing, secret_keys, tx};

/// Seals every stored secret with the first key of the key file, unless that is done; whether there was anything to
/// do.
///
/// Errors: the database or the disk; a key in use is not in the key file any more.
pub(crate) async fn seal_secrets(db: &Database, files: &FileStore) -> Result<bool, Error> {
    let keys = db.keys().await;
    let Some(id) = keys.active_id().map(|id| id.to_string()) else {
        return Ok(false);
    };
    let is_due = tx("read secret keys", async || {
        let mut connection = db.pool()?.acquire().await?;
        let is_due = secret_keys::is_pass_due(&mut connection, &id).await?;
        if is_due {
            check_keys(&mut connection, &keys).await?;
        }
        Ok(is_due)
    })
    .await?;
    if !is_due {
        return Ok(false);
    }
    for table in [
        SecretTable::Clusters,
        SecretTable::InfraEnvs,
        SecretTable::Hosts,
    ] {
        let mut cursor = Some((Uuid::nil(), Uuid::nil()));
        while let Some(after) = cursor {
            cursor = tx("seal secrets", async || {
                let mut tx = db.pool()?.begin().await?;
                let next = sealing::batch(&mut tx, &keys, table, after).await?;
                tx.commit().await?;
                Ok(next)
            })
            .await?;
        }
    }
    files.seal_all(&keys).await?;
    // Only now: until then a start without an older key is refused.
    tx("complete secret key", async || {
        let mut tx = db.pool()?.begin().await?;
        check_keys(&mut tx, &keys).await?;
        secret_keys::complete(&mut tx, &id).await?;
        tx.commit().await?;
        Ok(())
    })
    .await?;
    tracing::info!(
        key = id,
        "secrets sealed; older keys of SECRETS_KEY_FILE are no longer needed"
    );
    Ok(true)
}

/// Checks that every key in use is at hand: only then is a value that does not open damaged or planted, and no key
/// would help.
///
/// Errors: Conflict – one was removed from the key file, or another replica has a newer file.
async fn check_keys(connection: &mut PgConnection, keys: &KeySet) -> Result<(), db::Error> {
    match secret_keys::missing(connection, keys).await? {
        Some(id) => Err(Error::conflict(format!(
            "secrets are sealed with the key {id}, which this server does not have: add it to SECRETS_KEY_FILE"
        ))
        .into()),
        None => Ok(()),
    }
}
