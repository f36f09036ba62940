//! A client of the installer API, for the operations that every server of the protocol has.

use std::fs;
use std::sync::Arc;

use host_sim::Connections;
use reqwest::Method;
use serde_json::Value;
use service::Error;

use super::{DOING, RehearseArgs};

/// Base path of the installer API.
const BASE: &str = "/api/assisted-install";
/// Longest text of a refusal. Units: characters.
const TEXT_LIMIT: usize = 2000;
/// Attempts of a request that the server could not answer.
const ATTEMPTS: u32 = 5;
const PAUSE: std::time::Duration = std::time::Duration::from_secs(2);
/// Requests at a time, of hosts and of the rehearsal together: each has a connection, which is two files with a server in
/// the same process. 256 of the usual limit of 1024 files leave room for the database and the server's own files.
const REQUESTS: usize = 128;

/// The API of a server.
#[derive(Debug, Clone)]
pub(super) struct InstallerApi {
    client: reqwest::Client,
    url: String,
    token: Option<String>,
    connections: Arc<Connections>,
}

/// A response without success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestRefusal {
    /// HTTP status.
    pub(super) status: u16,
    /// The reason in the body.
    pub(super) reason: String,
}

impl InstallerApi {
    /// The API of the arguments.
    ///
    /// Errors: no server, an unreadable file.
    pub(super) fn of(arguments: &RehearseArgs) -> Result<Self, Error> {
        let read = |path: &std::path::PathBuf| {
            fs::read_to_string(path)
                .map_err(|e| Error::new(format!("reading {}", path.display()), e))
        };
        let url = arguments.server.as_deref().unwrap_or_default();
        let token = arguments.token_file.as_ref().map(read).transpose()?;
        let ca = arguments.ca.as_ref().map(read).transpose()?;
        Self::new(url, token, ca.as_deref())
    }

    /// The API at a base address; trusts the system's certificates and those of `ca`.
    ///
    /// Errors: unusable certificates.
    pub(super) fn new(url: &str, token: Option<String>, ca: Option<&str>) -> Result<Self, Error> {
        Ok(Self {
            client: service::http_client(ca.map(str::as_bytes), false)?,
            url: format!("{}{BASE}", url.trim_end_matches('/')),
            token: token.map(|token| token.trim().to_owned()),
            connections: Arc::new(Connections::new(REQUESTS)),
        })
    }

    /// Connections of the simulated hosts; requests of this client wait for their turn there, too.
    pub(super) fn connections(&self) -> Arc<Connections> {
        Arc::clone(&self.connections)
    }

    pub(super) async fn get(&self, path: &str) -> Result<Result<Value, RequestRefusal>, Error> {
        self.send(Method::GET, path, None).await
    }

    /// Sends a request; the body of the response, null if it is not JSON.
    ///
    /// Errors: no response, or none but those of an overloaded server.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Result<Value, RequestRefusal>, Error> {
        let mut attempt = 1;
        loop {
            let answer = self.once(method.clone(), path, body).await;
            let is_transient = match &answer {
                Ok(Err(refusal)) => matches!(refusal.status, 429 | 502..=504),
                // A repeated creation could create twice.
                Err(_) => method != Method::POST,
                Ok(Ok(_)) => false,
            };
            if !is_transient || attempt == ATTEMPTS {
                return answer;
            }
            attempt += 1;
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn once(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Result<Value, RequestRefusal>, Error> {
        let doing = || format!("{DOING}: {method} {}{path}", self.url);
        let _permit = self.connections.permit().await;
        let mut request = self
            .client
            .request(method.clone(), format!("{}{path}", self.url));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request
                .header("content-type", "application/json")
                .body(body.to_string());
        }
        let response = request
            .send()
            .await
            .map_err(|e| Error::new(doing(), chain(&e.without_url())))?;
        let status = response.status();
        let text = response.text().await.map_err(|e| Error::new(doing(), e))?;
        let json: Value = serde_json::from_str(&text).unwrap_or_default();
        if status.is_success() {
            return Ok(Ok(json));
        }
        let reason = json["reason"].as_str().or(json["message"].as_str());
        let reason = reason.unwrap_or(text.trim());
        Ok(Err(RequestRefusal {
            status: status.as_u16(),
            reason: reason.chars().take(TEXT_LIMIT).collect(),
        }))
    }
}

/// The text of an error with all its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
