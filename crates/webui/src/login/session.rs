//! Sessions of people: their tokens, in sealed cookies.

use std::sync::Arc;
use std::time::Duration;

use concurrency::SingleFlight;
use futures_util::FutureExt as _;
use moka::sync::Cache;
use ring::digest;
use serde::{Deserialize, Serialize};

use super::failure::LogInFailure;
use super::provider::{IssuedTokens, Provider};

/// Time before the expiry of an access token at which it is refreshed: one that is on its way stays valid, and a failed
/// refresh can be tried again. Units: seconds.
const REFRESH_BEFORE_S: i64 = 60;
/// Refreshes that are remembered. Those of older ones fall back to the refresh token.
pub(super) const REFRESHES: u64 = 1024;
/// Time for which a refresh is remembered: requests that a page sent with the old cookie arrive within.
const REFRESH_MEMORY: Duration = Duration::from_mins(1);

type TokenDigest = [u8; 32];
type RefreshResult = Result<Arc<Session>, LogInFailure>;

/// The tokens of a person. Not printable, so that no log has one.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Session {
    /// Bearer token for the installer API.
    #[serde(rename = "a")]
    pub(super) token: String,
    #[serde(rename = "r", skip_serializing_if = "Option::is_none")]
    pub(super) refresh_token: Option<String>,
    /// Expiry of the bearer token. Units: seconds since 1970.
    #[serde(rename = "x")]
    pub(super) expires_s: i64,
    /// End of the session; refreshes do not move it. Units: seconds since 1970.
    #[serde(rename = "e")]
    pub(super) ends_s: i64,
    /// Name of the user, for pages alone.
    #[serde(rename = "n")]
    pub(super) name: String,
}

/// Refreshes sessions: concurrent requests of a page use a refresh token once, since providers may accept it once.
#[derive(Default)]
pub(super) struct Refreshes {
    calls: SingleFlight<TokenDigest, RefreshResult>,
    recent: RecentRefreshes,
}

#[derive(Clone)]
struct RecentRefreshes(Cache<TokenDigest, Arc<Session>>);

impl Default for RecentRefreshes {
    fn default() -> Self {
        Self(
            Cache::builder()
                .max_capacity(REFRESHES)
                .time_to_live(REFRESH_MEMORY)
                .build(),
        )
    }
}

impl Session {
    /// The session of issued tokens. Without a stated validity the token is used until the end of the session.
    pub(super) fn issued(tokens: IssuedTokens, name: String, now_s: i64, ends_s: i64) -> Self {
        let expires_in = tokens
            .expires_in
            .map(|seconds| now_s.saturating_add(seconds));
        Self {
            token: tokens.access_token,
            refresh_token: tokens.refresh_token,
            expires_s: expires_in.unwrap_or(ends_s),
            ends_s,
            name,
        }
    }

    /// Whether the bearer token can be used, without a refresh.
    pub(super) fn is_usable(&self, now_s: i64) -> bool {
        now_s < self.expires_s.min(self.ends_s)
    }

    fn needs_refresh(&self, now_s: i64) -> bool {
        self.refresh_token.is_some() && now_s >= self.expires_s.saturating_sub(REFRESH_BEFORE_S)
    }
}

impl Refreshes {
    /// The session with fresh tokens, if it needs any: none when it is as good as it is.
    ///
    /// Errors: the session has ended.
    pub(super) async fn refreshed(
        &self,
        session: &Session,
        provider: &Arc<Provider>,
        now_s: i64,
    ) -> Result<Option<Arc<Session>>, LogInFailure> {
        let Some(token) = session.refresh_token.as_deref() else {
            return Ok(None);
        };
        if !session.needs_refresh(now_s) {
            return Ok(None);
        }
        let hash = digest::digest(&digest::SHA256, token.as_bytes());
        let mut key = TokenDigest::default();
        key.copy_from_slice(hash.as_ref());
        if let Some(recent) = self.recent.0.get(&key)
            && recent.is_usable(now_s)
        {
            return Ok(Some(recent));
        }
        let (old, provider, recent) = (session.clone(), Arc::clone(provider), self.recent.clone());
        let work = move || {
            async move {
                let refresh_token = old.refresh_token.clone().unwrap_or_default();
                let mut tokens = provider.refresh(&refresh_token).await?;
                // Providers that do not rotate refresh tokens may leave them out.
                tokens.refresh_token.get_or_insert(refresh_token);
                let session = Arc::new(Session::issued(tokens, old.name, now_s, old.ends_s));
                recent.0.insert(key, Arc::clone(&session));
                Ok(session)
            }
            .boxed()
        };
        let result = self.calls.run(key, work).await;
        match result.unwrap_or(Err(LogInFailure::Busy)) {
            Ok(session) => Ok(Some(session)),
            // Another replica may have used the refresh token; its response carries the new one.
            Err(_) if session.is_usable(now_s) => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // limit: remembered refreshes of sessions
    #[test]
    fn older_refreshes_are_forgotten() {
        let recent = RecentRefreshes::default();
        let session = Arc::new(Session {
            token: String::new(),
            refresh_token: None,
            expires_s: 0,
            ends_s: 0,
            name: String::new(),
        });
        let fill = |count: u64| {
            for number in 0..count {
                let mut key = TokenDigest::default();
                key[..8].copy_from_slice(&number.to_be_bytes());
                recent.0.insert(key, Arc::clone(&session));
            }
            recent.0.run_pending_tasks();
            recent.0.entry_count()
        };
        assert_eq!(fill(REFRESHES), REFRESHES);
        assert_eq!(fill(REFRESHES + 1), REFRESHES);
    }
}
