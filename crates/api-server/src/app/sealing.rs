//! Sealing of secrets that are stored plain, or with an older key. Idempotent: a pass that was killed starts again, and
//! skips finished values.

use model::Error;
use uuid::Uuid;

use super::ApiServer;
use crate::db::{sealing, secret_keys, tx};
use crate::secrets::SecretTable;

impl ApiServer {
    /// Seals every stored secret with the first key of the key file, unless that is done; whether there was anything to
    /// do.
    ///
    /// Errors: the database or the disk; a secret that does not open.
    pub(crate) async fn seal_secrets(&self) -> Result<bool, Error> {
        let keys = self.keys().await;
        let Some(id) = keys.active_id().map(|id| id.to_string()) else {
            return Ok(false);
        };
        let is_due = tx("read secret keys", async || {
            let mut connection = self.pool()?.acquire().await?;
            secret_keys::is_pass_due(&mut connection, &id).await
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
                    let mut tx = self.pool()?.begin().await?;
                    let next = sealing::batch(&mut tx, &keys, table, after).await?;
                    tx.commit().await?;
                    Ok(next)
                })
                .await?;
            }
        }
        self.store.seal_all(&keys).await?;
        // Only now: until then a start without an older key is refused.
        tx("complete secret key", async || {
            let mut tx = self.pool()?.begin().await?;
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
}
