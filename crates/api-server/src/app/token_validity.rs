//! Validity of the tokens of infra-envs: their generation, which a withdrawal raises, and their end.

use std::time::{Duration, Instant};

use chrono::TimeDelta;
use concurrency::BoundedCache;
use model::Error;
use model::ids::InfraEnvId;
use model::infra_env::InfraEnv;
use model::time::Timestamp;

use super::ApiServer;
use crate::auth::{AgentToken, Caller, OwnedResource, TokenValidity, unauthenticated};
use crate::db::{infra_envs, tx};

/// Age of a remembered generation: a withdrawal takes effect within it, whichever replica does it. Polls of agents read no
/// row for it.
const MAX_AGE: Duration = Duration::from_secs(5);
/// Capacity of the remembered generations. Units: bytes.
const CACHE_BYTES: usize = 1 << 20;
/// Size of a remembered generation. Units: bytes.
const ENTRY_BYTES: usize = 128;

/// Generations of infra-envs, and the time of their reading.
#[derive(Debug)]
pub(super) struct TokenGenerations(BoundedCache<InfraEnvId, (i64, Instant)>);

impl Default for TokenGenerations {
    fn default() -> Self {
        Self(BoundedCache::new(CACHE_BYTES))
    }
}

impl TokenGenerations {
    /// Reads the generation again at the next token.
    pub(super) fn forget(&self, id: InfraEnvId) {
        self.0.remove(id);
    }
}

impl ApiServer {
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
        let known = self.token_generations.0.get(id);
        if known.is_some_and(|(least, read)| token.generation >= least && read.elapsed() < MAX_AGE)
        {
            return Ok(caller);
        }
        let read = Instant::now();
        match self.token_generation(id).await {
            Ok(least) => {
                self.token_generations.0.put(id, (least, read), ENTRY_BYTES);
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
    pub(super) async fn token_validity(
        &self,
        infra_env: &InfraEnv,
    ) -> Result<TokenValidity, Error> {
        let lifetime = TimeDelta::from_std(self.settings.agent_token_lifetime);
        let lifetime = lifetime.unwrap_or(TimeDelta::MAX);
        let now = service::clock::now();
        let created = infra_env.created_at.0.unwrap_or(Timestamp::UNIX_EPOCH);
        Ok(TokenValidity {
            generation: self.token_generation(infra_env.id).await?,
            expires_s: expiry(created.timestamp(), now.timestamp(), lifetime.num_seconds()),
        })
    }

    async fn token_generation(&self, id: InfraEnvId) -> Result<i64, Error> {
        let found = tx("read generation of tokens", async || {
            let mut connection = self.pool()?.acquire().await?;
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
