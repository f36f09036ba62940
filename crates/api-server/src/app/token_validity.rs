//! Validity of the tokens of infra-envs: their generation, which a withdrawal raises, and their end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use concurrency::BoundedCache;
use model::Error;
use model::ids::InfraEnvId;
use model::infra_env::InfraEnv;
use model::time::Timestamp;

use super::links::new_key;
use crate::auth::{
    AgentToken, Authentication, Caller, OwnedResource, TokenValidity, unauthenticated,
};
use crate::db::{Database, infra_envs, tx};
use crate::settings::Settings;

/// Age of a remembered generation: a withdrawal takes effect within it, whichever replica does it. Polls of agents read no
/// row for it.
const MAX_AGE: Duration = Duration::from_secs(5);
/// Capacity of the remembered generations. Units: bytes.
const CACHE_BYTES: usize = 1 << 20;
/// Size of a remembered generation. Units: bytes.
const ENTRY_BYTES: usize = 128;

/// Generations of infra-envs, and the time of their reading.
#[derive(Debug)]
struct TokenGenerations(BoundedCache<InfraEnvId, (i64, Instant)>);

impl Default for TokenGenerations {
    fn default() -> Self {
        Self(BoundedCache::new(CACHE_BYTES))
    }
}

/// Tokens of infra-envs: those of agents, and those in the URLs of images and files.
#[derive(Debug)]
pub(crate) struct InfraEnvTokens {
    pub(super) db: Database,
    pub(super) auth: Arc<Authentication>,
    generations: TokenGenerations,
    /// Lifetime of the tokens that the local key signs.
    lifetime: Duration,
    /// Lifetime of the tokens that an infra-env's own key signs.
    pub(super) image_lifetime: Duration,
}

impl InfraEnvTokens {
    /// Tokens that `auth` signs, with the lifetimes of the settings.
    pub(super) fn new(db: Database, auth: Arc<Authentication>, settings: &Settings) -> Self {
        Self {
            db,
            auth,
            generations: TokenGenerations::default(),
            lifetime: settings.agent_token_lifetime,
            image_lifetime: settings.image_expiration_time,
        }
    }

    /// The caller by a token of a resource, unless the tokens of its generation are withdrawn.
    ///
    /// Errors: Unauthenticated.
    pub(super) async fn unless_withdrawn(&self, caller: Caller) -> Result<Caller, Error> {
        let (Caller::Url(token) | Caller::Agent(AgentToken::Of(token))) = caller else {
            return Ok(caller);
        };
        let OwnedResource::InfraEnv(id) = token.resource else {
            return Ok(caller);
        };
        let known = self.generations.0.get(id);
        if known.is_some_and(|(least, read)| token.generation >= least && read.elapsed() < MAX_AGE)
        {
            return Ok(caller);
        }
        let read = Instant::now();
        match self.generation(id).await {
            Ok(least) => {
                self.generations.0.put(id, (least, read), ENTRY_BYTES);
                // A larger one is that of a database before its restore.
                if token.generation >= least {
                    return Ok(caller);
                }
                Err(unauthenticated(
                    "the token was withdrawn with the signing key of its infra-env: boot a new image",
                ))
            }
            // Refused with the resource.
            Err(Error::NotFound { .. }) => Ok(caller),
            Err(error) => Err(error),
        }
    }

    /// Validity of new tokens of an infra-env. Tokens of one period are equal, so that parts of an image that are read one
    /// after the other fit together: their end moves by a quarter of the lifetime.
    ///
    /// Errors: NotFound.
    pub(super) async fn validity(&self, infra_env: &InfraEnv) -> Result<TokenValidity, Error> {
        let lifetime = TimeDelta::from_std(self.lifetime);
        let lifetime = lifetime.unwrap_or(TimeDelta::MAX);
        let now = service::clock::now();
        let created = infra_env.created_at.0.unwrap_or(Timestamp::UNIX_EPOCH);
        Ok(TokenValidity {
            generation: self.generation(infra_env.id).await?,
            expires_s: expiry(created.timestamp(), now.timestamp(), lifetime.num_seconds()),
        })
    }

    /// Withdraws the tokens of an infra-env: those of its images' URLs, and those of agents that the local key signed. In
    /// other replicas, those of agents are valid for some seconds more. Without authentication of callers links have no
    /// token, and remain valid.
    ///
    /// Errors: NotFound.
    pub(crate) async fn regenerate_signing_key(&self, id: InfraEnvId) -> Result<(), Error> {
        let new = new_key()?;
        let found = tx("replace signing key", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            infra_envs::set_signing_key(&mut connection, &self.db.keys().await, id, &new).await
        })
        .await?;
        self.generations.0.remove(id);
        if found {
            return Ok(());
        }
        Err(Error::not_found("infra-env", id))
    }

    async fn generation(&self, id: InfraEnvId) -> Result<i64, Error> {
        let found = tx("read generation of tokens", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            infra_envs::token_generation(&mut connection, id).await
        })
        .await?;
        found.ok_or_else(|| Error::not_found("infra-env", id))
    }
}

/// The end of tokens that are issued now, for an infra-env that was made at `created_s`. Units: seconds.
fn expiry(created_s: i64, now_s: i64, lifetime_s: i64) -> i64 {
    let period = (lifetime_s / 4).max(1);
    let begun = now_s.saturating_sub(created_s).div_euclid(period);
    let next = created_s.saturating_add(begun.saturating_add(1).saturating_mul(period));
    next.saturating_add(lifetime_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_a_period_are_equal_and_last_for_the_lifetime() {
        let created = 1_000;
        for (now, expected) in [
            (1_000, 1_500),
            (1_099, 1_500),
            (1_100, 1_600),
            (5_000, 5_500),
            // The clock was set back.
            (999, 1_400),
        ] {
            let found = expiry(created, now, 400);
            assert_eq!(found, expected, "{now}");
            assert!(found - now > 400 && found - now <= 500);
        }
        assert!(expiry(created, 1_000, i64::MAX) > 1_000);
        assert!(expiry(created, 1_000, 0) > 1_000);
    }
}
