//! The public HTTP operations, every failure shown with the answer's body.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use reqwest::{Method, StatusCode};
use serde_json::Value;

const BASE_PATH: &str = "/api/assisted-install";
const TIMEOUT: Duration = Duration::from_mins(1);
/// Attempts after an answer that says "not now" or none at all: a service may be restarting.
const ATTEMPTS: u32 = 60;
const PAUSE: Duration = Duration::from_millis(500);

/// A client of the installer API.
#[derive(Debug, Clone)]
pub(super) struct DemoClient {
    http: reqwest::Client,
    base: String,
    token: Option<String>,
}

/// An answer, good or not.
#[derive(Debug)]
pub(super) struct DemoResponse {
    pub(super) status: StatusCode,
    pub(super) body: Vec<u8>,
}

impl DemoResponse {
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).trim().to_owned()
    }

    /// Reason in the body: both error shapes of the API, or its text.
    pub(super) fn reason(&self) -> String {
        let json: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let said = json["reason"].as_str().or_else(|| json["message"].as_str());
        said.map_or_else(|| self.text(), str::to_owned)
    }
}

impl DemoClient {
    /// A client of the API at `url`, plain or with any certificate: the demo runs on loopback.
    pub(super) fn new(url: &str, token: Option<String>) -> Result<Self> {
        // Another part of the program may have set the same provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(5))
            .tls_danger_accept_invalid_certs(true)
            .build()
            .context("cannot make an HTTP client")?;
        Ok(Self {
            http,
            base: format!("{}{BASE_PATH}", url.trim_end_matches('/')),
            token,
        })
    }

    /// The bare client, for addresses that the API hands out.
    pub(super) fn http(&self) -> &reqwest::Client {
        &self.http
    }

    /// Sends a request and returns any response; retries while the service is unavailable.
    pub(super) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<DemoResponse> {
        let url = format!("{}{path}", self.base);
        let mut attempt = 1;
        loop {
            let mut request = self.http.request(method.clone(), &url).timeout(TIMEOUT);
            if let Some(token) = &self.token {
                request = request.bearer_auth(token);
            }
            if let Some(body) = body {
                request = request.json(body);
            }
            let outcome = async {
                let response = request.send().await?;
                Ok::<_, reqwest::Error>(DemoResponse {
                    status: response.status(),
                    body: response.bytes().await?.to_vec(),
                })
            };
            let is_last = attempt >= ATTEMPTS;
            match outcome.await {
                Ok(answer) if is_last || !is_passing(&method, answer.status) => {
                    return Ok(answer);
                }
                // A creation is not idempotent: one that may have arrived must not be retried.
                Err(error) if is_last || (method != Method::GET && !error.is_connect()) => {
                    return Err(anyhow!(error)).with_context(|| format!("{method} {url}"));
                }
                _ => tokio::time::sleep(PAUSE).await,
            }
            attempt += 1;
        }
    }

    /// As [`DemoClient::call`], and anything but a success is an error with the body.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<DemoResponse> {
        let answer = self.call(method.clone(), path, body).await?;
        if !answer.status.is_success() {
            bail!(
                "{method} {}{path} answered {}: {}",
                self.base,
                answer.status,
                answer.text()
            );
        }
        Ok(answer)
    }

    pub(super) async fn get(&self, path: &str) -> Result<Value> {
        let answer = self.send(Method::GET, path, None).await?;
        serde_json::from_slice(&answer.body).with_context(|| {
            format!(
                "GET {}{path}: the answer is not JSON: {}",
                self.base,
                answer.text()
            )
        })
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let answer = self.send(Method::POST, path, Some(body)).await?;
        serde_json::from_slice(&answer.body).with_context(|| {
            format!(
                "POST {}{path}: the answer is not JSON: {}",
                self.base,
                answer.text()
            )
        })
    }
}

/// Whether a response is a transient failure. 502 and 504 of a proxy leave open whether the request arrived, so only a GET
/// is retried then.
fn is_passing(method: &Method, status: StatusCode) -> bool {
    match status {
        StatusCode::SERVICE_UNAVAILABLE => true,
        StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => method == Method::GET,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_idempotent_requests_are_retried_after_they_may_have_arrived() {
        assert!(is_passing(&Method::POST, StatusCode::SERVICE_UNAVAILABLE));
        assert!(is_passing(&Method::GET, StatusCode::BAD_GATEWAY));
        assert!(!is_passing(&Method::POST, StatusCode::BAD_GATEWAY));
        assert!(!is_passing(&Method::GET, StatusCode::INTERNAL_SERVER_ERROR));
    }
}
