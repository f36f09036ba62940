//! The HTTP client of a machine, with the retry policies of the real programs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::RngExt as _;
use reqwest::{Method, StatusCode, header};
use serde_json::Value;

use crate::image::BootConfig;
use crate::{Connections, Error, Pace};

/// Base path of the installer API.
const BASE_PATH: &str = "/api/assisted-install";
/// Longest text of a response in an error. Units: characters.
const ERROR_TEXT_LIMIT: usize = 2000;

/// Retry policy of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryPolicy {
    /// The agent's: three retries after 503, 504 and timeouts. Source: assisted-installer-agent.
    Agent,
    /// The installer's and the controller's: about an hour after 408, 429, 5xx and timeouts; ten attempts after 404, 423
    /// and 425. Source: openshift/assisted-installer.
    Installer,
}

impl RetryPolicy {
    fn attempts(self, failure: &Error) -> u32 {
        let transient = match failure {
            Error::Unreachable { .. } => true,
            Error::Status { status, .. } => match self {
                Self::Agent => matches!(status, 503 | 504),
                Self::Installer => matches!(status, 408 | 429 | 500..=599),
            },
            _ => false,
        };
        match self {
            Self::Agent if transient => 4,
            Self::Installer if transient => 360,
            Self::Installer if matches!(failure.status(), Some(404 | 423 | 425)) => 10,
            _ => 1,
        }
    }

    fn pause(self, attempt: u32) -> Duration {
        let longest = match self {
            Self::Agent => rand::rng().random_range(2.0..10.0),
            Self::Installer => f64::from(attempt.min(10)),
        };
        Duration::from_secs_f64(longest)
    }
}

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct ApiCall {
    kind: &'static str,
    method: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    headers: Vec<(&'static str, String)>,
    content_type: &'static str,
    body: Option<Vec<u8>>,
}

impl ApiCall {
    /// A request without a body; `kind` names it in the statistics.
    pub(crate) fn new(kind: &'static str, method: Method, path: impl Into<String>) -> Self {
        let (query, headers) = (Vec::new(), Vec::new());
        Self {
            kind,
            method,
            path: path.into(),
            query,
            headers,
            content_type: "application/json",
            body: None,
        }
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn query(mut self, name: &'static str, value: &impl ToString) -> Self {
        self.query.push((name, value.to_string()));
        self
    }

    pub(crate) fn json(mut self, body: &Value) -> Self {
        self.body = Some(body.to_string().into_bytes());
        self
    }

    /// A multipart form with one file.
    pub(crate) fn upload(mut self, part: &str, file_name: &str, content: &[u8]) -> Self {
        let mut body = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{part}\"; filename=\"{file_name}\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        )
        .into_bytes();
        body.extend_from_slice(content);
        body.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
        self.body = Some(body);
        self.content_type = MULTIPART;
        self
    }
}

const BOUNDARY: &str = "----host-sim-7f3a9c51d2e84b06";
const MULTIPART: &str = "multipart/form-data; boundary=----host-sim-7f3a9c51d2e84b06";

/// A connection to the installer API as one machine has it.
#[derive(Debug, Clone)]
pub struct ApiClient {
    client: reqwest::Client,
    base: String,
    token: Option<String>,
    pace: Pace,
    connections: Arc<Connections>,
}

impl ApiClient {
    /// The client of a boot configuration, on shared connections.
    ///
    /// Errors: `Client` – the CA certificates cannot be used.
    pub fn new(
        boot: &BootConfig,
        pace: Pace,
        connections: Arc<Connections>,
    ) -> Result<Self, Error> {
        Ok(Self {
            client: connections.client(boot)?,
            base: format!("{}{BASE_PATH}", boot.url),
            token: boot.token.clone(),
            pace,
            connections,
        })
    }

    /// Sends a call with the retries of `policy`; returns the successful response.
    ///
    /// Errors: `Unreachable`, `Status` – the last failure.
    pub(crate) async fn send(
        &self,
        policy: RetryPolicy,
        call: ApiCall,
    ) -> Result<ApiResponse, Error> {
        let mut attempt = 1;
        loop {
            let failure = match self.once(&call).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            self.connections.stats.failed(&failure);
            if attempt >= policy.attempts(&failure) {
                return Err(failure);
            }
            tracing::debug!(attempt, error = failure.chain(), "trying again");
            self.pace.sleep(policy.pause(attempt)).await;
            attempt += 1;
        }
    }

    /// Downloads a file and discards it; returns its size.
    ///
    /// Errors: `Unreachable`, `Status`.
    pub(crate) async fn fetch(&self, url: url::Url) -> Result<u64, Error> {
        let unreachable = |source: reqwest::Error| Error::Unreachable {
            method: "GET",
            url: url.to_string(),
            source: source.without_url(),
        };
        let _permit = self.connections.permit().await;
        let mut response = self
            .client
            .get(url.clone())
            .send()
            .await
            .map_err(unreachable)?;
        if !response.status().is_success() {
            let status = response.status().as_u16();
            return Err(Error::Status {
                method: "GET",
                url: url.to_string(),
                status,
                body: String::new(),
            });
        }
        let mut size = 0;
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            size += chunk.len() as u64;
        }
        Ok(size)
    }

    async fn once(&self, call: &ApiCall) -> Result<ApiResponse, Error> {
        let _permit = self.connections.permit().await;
        let started = Instant::now();
        let mut request = self
            .client
            .request(call.method.clone(), format!("{}{}", self.base, call.path))
            .header("X-Secret-Key", self.token.as_deref().unwrap_or_default())
            .header(
                header::ACCEPT,
                "application/json, application/octet-stream, text/html",
            )
            .query(&call.query);
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        if let Some(body) = &call.body {
            request = request
                .header(header::CONTENT_TYPE, call.content_type)
                .body(body.clone());
        }
        let url = || format!("{}{}", self.base, call.path);
        let unreachable = |source: reqwest::Error| Error::Unreachable {
            method: name(&call.method),
            url: url(),
            source: source.without_url(),
        };
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        let body = response.bytes().await.map_err(unreachable)?.to_vec();
        let took = started.elapsed();
        self.connections.stats.answered(call.kind, took);
        if status.is_success() {
            return Ok(ApiResponse { status, body });
        }
        Err(Error::Status {
            method: name(&call.method),
            url: url(),
            status: status.as_u16(),
            body: reason(&body),
        })
    }
}

/// A successful response.
#[derive(Debug)]
pub(crate) struct ApiResponse {
    pub(crate) status: StatusCode,
    pub(crate) body: Vec<u8>,
}

impl ApiResponse {
    /// The body as JSON.
    pub(crate) fn json(&self, what: &str) -> Result<Value, Error> {
        serde_json::from_slice(&self.body)
            .map_err(|e| Error::invalid(what, format!("the answer is not JSON: {e}")))
    }
}

fn name(method: &Method) -> &'static str {
    match *method {
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        _ => "GET",
    }
}

/// Reason in the body of an error: both error shapes of the API, or its text.
fn reason(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let json: Value = serde_json::from_str(&text).unwrap_or_default();
    let said = json["reason"]
        .as_str()
        .or_else(|| json["message"].as_str())
        .unwrap_or(text.trim());
    said.chars().take(ERROR_TEXT_LIMIT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16) -> Error {
        Error::Status {
            method: "GET",
            url: String::new(),
            status,
            body: String::new(),
        }
    }

    #[test]
    fn the_agent_retries_the_statuses_of_the_real_agent() {
        assert_eq!(RetryPolicy::Agent.attempts(&answer(503)), 4);
        assert_eq!(RetryPolicy::Agent.attempts(&answer(500)), 1);
        assert_eq!(RetryPolicy::Agent.attempts(&answer(404)), 1);
    }

    #[test]
    fn the_installer_retries_unavailable_longer_than_not_found() {
        assert_eq!(RetryPolicy::Installer.attempts(&answer(500)), 360);
        assert_eq!(RetryPolicy::Installer.attempts(&answer(404)), 10);
        assert_eq!(RetryPolicy::Installer.attempts(&answer(409)), 1);
    }

    #[test]
    fn both_error_shapes_are_parsed() {
        assert_eq!(
            reason(br#"{"code":"409","reason":"not ready"}"#),
            "not ready"
        );
        assert_eq!(reason(br#"{"code":401,"message":"who?"}"#), "who?");
        assert_eq!(reason(b"<html>"), "<html>");
    }
}
