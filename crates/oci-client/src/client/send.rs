//! Requests to a registry, with retries and rate limits.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use model::Error;
use net::redirect;
use oci::is_docker_hub;
use reqwest::header::{AUTHORIZATION, RETRY_AFTER};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};

use super::access;
use super::addresses::Scope;
use super::{Client, error};

/// Backoff after the first failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// Longest wait of a retry; a longer `Retry-After` is returned to the caller.
const PAUSE_LIMIT: Duration = Duration::from_secs(10);
/// Upper bound of `Retry-After`.
const REST_LIMIT: Duration = Duration::from_hours(1);

/// Backoff before the attempt after `failures`.
pub(super) fn pause(failures: u32) -> Duration {
    FIRST_PAUSE
        .saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1)))
        .min(PAUSE_LIMIT)
}

impl Client {
    /// Sends the request of `prepare`, answers challenges, and retries transient failures. The response may be
    /// an error.
    pub(super) async fn send(
        &self,
        scope: &Scope,
        method: Method,
        path: &str,
        prepare: impl Fn(RequestBuilder) -> RequestBuilder,
    ) -> Result<Response, Error> {
        let url = self.url(&scope.registry, path).await?;
        let is_own = self.is_own(&scope.registry, &url).await?;
        let mut access = self.access(scope).filter(|_| is_own);
        let (mut failures, mut logins) = (0, 0);
        loop {
            let mut request = prepare(self.0.http.request(method.clone(), url.clone()));
            if let Some(access) = &access {
                request = request.header(AUTHORIZATION, access);
            }
            let answer = match request.build() {
                Ok(request) => redirect::send(&self.0.http, request).await,
                Err(failure) => Err(failure),
            };
            let is_foreign = answer.as_ref().is_ok_and(|it| it.is_foreign) || !is_own;
            let wait = match answer.map(|it| it.response) {
                Ok(response) if response.status() == StatusCode::UNAUTHORIZED => {
                    if is_foreign {
                        return Err(access::elsewhere(scope, &response));
                    }
                    // Once for an expired token, once for the new one.
                    if logins > 0 {
                        let found = self.secret(scope).await;
                        return Err(access::denied(scope, &found));
                    }
                    logins += 1;
                    access = Some(self.log_in(scope, &response).await?);
                    continue;
                }
                Ok(response) if may_pass(response.status()) => {
                    let asked = asked_pause(&response);
                    if let Some(asked) = asked {
                        self.let_rest(&scope.registry, asked);
                    }
                    let wait = asked.unwrap_or_else(|| pause(failures + 1));
                    if failures + 1 >= self.0.attempts || wait > PAUSE_LIMIT {
                        return Ok(response);
                    }
                    wait
                }
                Ok(response) => return Ok(response),
                Err(failure)
                    if failures + 1 < self.0.attempts
                        && !failure.is_builder()
                        && !error::is_plain_http(&failure) =>
                {
                    // URLs of blobs may contain credentials.
                    let error = model::error::chain(&failure.without_url());
                    tracing::debug!(registry = scope.registry, error, "retrying a request");
                    pause(failures + 1)
                }
                Err(failure) => return Err(self.unreachable(&scope.place(), failure)),
            };
            failures += 1;
            tokio::time::sleep(wait).await;
        }
    }

    /// The remaining time of the registry's `Retry-After`.
    pub fn rest(&self, registry: &str) -> Option<Duration> {
        let rests = self.0.rests.lock().unwrap_or_else(PoisonError::into_inner);
        let left = rests
            .get(registry)?
            .checked_duration_since(Instant::now())?;
        (!left.is_zero()).then_some(left)
    }

    fn let_rest(&self, registry: &str, length: Duration) {
        let mut rests = self.0.rests.lock().unwrap_or_else(PoisonError::into_inner);
        rests.insert(registry.to_owned(), Instant::now() + length);
    }

    /// Whether `url` has the registry's own origin, the only one that gets its login.
    async fn is_own(&self, registry: &str, url: &Url) -> Result<bool, Error> {
        Ok(self.url(registry, "/v2/").await?.origin() == url.origin())
    }

    /// As [`Self::url`]; `None` when `path` has another origin than the registry's.
    pub(super) async fn own_url(&self, registry: &str, path: &str) -> Result<Option<Url>, Error> {
        let url = self.url(registry, path).await?;
        Ok(self.is_own(registry, &url).await?.then_some(url))
    }

    /// The URL of `path` at `registry`; a `path` that is a URL is not changed.
    async fn url(&self, registry: &str, path: &str) -> Result<Url, Error> {
        let parsed = |text: &str| {
            Url::parse(text)
                .map_err(|e| error::protocol_error(registry, format!("its address: {e}")))
        };
        if path.starts_with("http://") || path.starts_with("https://") {
            return parsed(path);
        }
        let scheme = self.scheme(registry).await?;
        let host = if is_docker_hub(registry) {
            "registry-1.docker.io"
        } else {
            registry
        };
        parsed(&format!("{scheme}://{host}{path}"))
    }

    async fn scheme(&self, registry: &str) -> Result<&'static str, Error> {
        if self.0.plain_http {
            return Ok("http");
        }
        if !self.may_be_plain(registry) {
            return Ok("https");
        }
        let known = |client: &Self| {
            let schemes = client
                .0
                .schemes
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            schemes.get(registry).copied()
        };
        if let Some(scheme) = known(self) {
            return Ok(scheme);
        }
        let mut first = None;
        for scheme in ["https", "http"] {
            match self
                .0
                .http
                .get(format!("{scheme}://{registry}/v2/"))
                .send()
                .await
            {
                Ok(_) => {
                    let mut schemes = self
                        .0
                        .schemes
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner);
                    schemes.insert(registry.to_owned(), scheme);
                    return Ok(scheme);
                }
                Err(failure) => first = first.or(Some(failure)),
            }
        }
        Err(first.map_or_else(
            || error::protocol_error(registry, "no scheme was tried"),
            |failure| self.unreachable(registry, failure),
        ))
    }

    /// The error of a failed request, with a remedy for a registry without TLS.
    pub(super) fn unreachable(&self, place: &str, failure: reqwest::Error) -> Error {
        if error::is_plain_http(&failure) {
            error::plain_http(place, self.0.plain_http_remedy)
        } else {
            error::unavailable(place, &failure.without_url())
        }
    }
}

fn may_pass(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::INTERNAL_SERVER_ERROR
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

fn asked_pause(response: &Response) -> Option<Duration> {
    let seconds = response
        .headers()
        .get(RETRY_AFTER)?
        .to_str()
        .ok()?
        .parse()
        .ok()?;
    Some(Duration::from_secs(seconds).min(REST_LIMIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound() {
        assert_eq!(pause(1), FIRST_PAUSE);
        assert_eq!(pause(3), 4 * FIRST_PAUSE);
        assert_eq!(pause(u32::MAX), PAUSE_LIMIT);
    }
}
