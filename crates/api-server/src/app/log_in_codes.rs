//! Use case of log-in links: a code is exchanged for a token of its user, once.

use std::sync::Arc;

use chrono::TimeDelta;
use model::Error;

use crate::auth::{self, Authentication};
use crate::db::{Database, log_in_codes, tx};

/// Validity of the token for a code: that of `atoll token user`. Units: days.
const TOKEN_DAYS: i64 = 30;

/// Links that log users in.
#[derive(Debug)]
pub(crate) struct LogInLinks {
    db: Database,
    auth: Arc<Authentication>,
}

impl LogInLinks {
    /// Links with codes and for tokens of `auth`.
    pub(super) fn new(db: Database, auth: Arc<Authentication>) -> Self {
        Self { db, auth }
    }

    /// The token of the user that `code` is for.
    ///
    /// Errors: Unauthenticated – forged, expired or used; those of the database.
    pub(crate) async fn redeem(&self, code: &str) -> Result<String, Error> {
        let now = service::clock::now();
        let code = self.auth.log_in_code(code, now.timestamp())?;
        let is_first = tx("use log-in code", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            log_in_codes::record_use(&mut connection, code.id, code.expires_at, now).await
        })
        .await?;
        if !is_first {
            let reason = "the code of the link was used: `atoll token link` prints a new one";
            return Err(auth::unauthenticated(reason));
        }
        let expires = now + TimeDelta::days(TOKEN_DAYS);
        let token = self.auth.user_token(&code.user, expires.timestamp())?;
        tracing::info!(user = code.user, "log-in link used");
        Ok(token)
    }
}
