//! A client of the installer API, for the operations that every server of the protocol has.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use host_sim::Connections;
use model::error::chain;
use net::resolve::Resolver;
use net::trust;
use reqwest::{Method, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use crate::error::{DOING, Error};

/// Base path of the installer API.
const BASE: &str = "/api/assisted-install";
/// Longest text of a refusal. Units: characters.
const TEXT_LIMIT: usize = 2000;
/// Longest start of a body that is no reason. Units: characters.
const DETAILS_LIMIT: usize = 200;
/// Attempts of a request that the server could not answer.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_secs(2);
/// Requests at a time, of hosts and of the rehearsal together: each has a connection, which is two files with a server in
/// the same process. 256 of the usual limit of 1024 files leave room for the database and the server's own files.
const REQUESTS: usize = 128;
/// Long enough for a busy server, short enough to notice a dead one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest silence of the server.
const READ_TIMEOUT: Duration = Duration::from_mins(1);

/// The API of a server. Clones share their connections.
#[derive(Debug, Clone)]
pub struct InstallerApi {
    client: reqwest::Client,
    url: String,
    token: Option<SecretString>,
    connections: Arc<Connections>,
}

/// A response without success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestRefusal {
    /// HTTP status.
    pub(crate) status: u16,
    /// The reason in the body, or the start of a body without one.
    pub(crate) reason: String,
    /// Whether the body has a reason.
    is_explained: bool,
}

impl RequestRefusal {
    fn new(status: StatusCode, body: &str) -> Self {
        let json: Value = serde_json::from_str(body).unwrap_or_default();
        let texts = ["reason", "message"].map(|member| json[member].as_str().unwrap_or_default());
        let given = texts.into_iter().find(|text| !text.trim().is_empty());
        let reason = match given {
            Some(text) => text.chars().take(TEXT_LIMIT).collect(),
            None => format!("it gave no reason, but {}", details(body)),
        };
        Self {
            status: status.as_u16(),
            reason,
            is_explained: given.is_some(),
        }
    }

    /// The reason; with the status, if it has none.
    pub(crate) fn observed(&self) -> String {
        if self.is_explained {
            self.reason.clone()
        } else {
            self.to_string()
        }
    }
}

impl fmt::Display for RequestRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, reason, .. } = self;
        write!(f, "the server answered {status}: {reason}")
    }
}

/// A body without a reason, in some words.
fn details(body: &str) -> String {
    let words: Vec<_> = body.split_whitespace().collect();
    let body = words.join(" ");
    match body.chars().next() {
        None => "an empty body".to_owned(),
        Some('<') => "a page for browsers, as a proxy before the API sends it".to_owned(),
        Some(_) if body.chars().count() > DETAILS_LIMIT => {
            format!("{}…", body.chars().take(DETAILS_LIMIT).collect::<String>())
        }
        Some(_) => body,
    }
}

impl InstallerApi {
    /// The API at a base address, without the API's own path. `token` is sent as bearer token; `ca`, PEM, is trusted besides
    /// the system's certificates.
    ///
    /// Errors: Internal – unusable certificates.
    pub fn new(url: &str, token: Option<SecretString>, ca: Option<&str>) -> Result<Self, Error> {
        let tls = trust::client_config(ca.map(str::as_bytes), false).map_err(|source| {
            Error::Internal {
                doing: "reading the trusted certificates".to_owned(),
                source: source.into(),
            }
        })?;
        let client = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT)
            .dns_resolver(Resolver::system())
            .tls_backend_preconfigured(tls)
            .build()
            .map_err(|source| Error::Internal {
                doing: "building the HTTP client".to_owned(),
                source: source.into(),
            })?;
        Ok(Self {
            client,
            url: format!("{}{BASE}", url.trim_end_matches('/')),
            token,
            connections: Arc::new(Connections::new(REQUESTS)),
        })
    }

    /// Connections of the simulated hosts; requests of this client wait for their turn there, too.
    pub(crate) fn connections(&self) -> Arc<Connections> {
        Arc::clone(&self.connections)
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Result<Value, RequestRefusal>, Error> {
        self.send(Method::GET, path, None).await
    }

    /// Sends a request; the body of the response, null if it is not JSON.
    ///
    /// Errors: Server – no response, or none but those of an overloaded server.
    pub(crate) async fn send(
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
        let failure = |source: Box<dyn std::error::Error + Send + Sync>| Error::Server {
            doing: format!("{DOING}: {method} {}{path}", self.url),
            source,
        };
        let _permit = self.connections.permit().await;
        let mut request = self
            .client
            .request(method.clone(), format!("{}{path}", self.url));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token.expose_secret());
        }
        if let Some(body) = body {
            request = request
                .header("content-type", "application/json")
                .body(body.to_string());
        }
        let response = request
            .send()
            .await
            .map_err(|e| failure(chain(&e.without_url()).into()))?;
        let status = response.status();
        let text = response.text().await.map_err(|e| failure(e.into()))?;
        if status.is_success() {
            return Ok(Ok(serde_json::from_str(&text).unwrap_or_default()));
        }
        Ok(Err(RequestRefusal::new(status, &text)))
    }
}

/// The body of a response that no site has to do with.
///
/// Errors: Server – it is a refusal.
pub(crate) fn accepted(answer: Result<Value, RequestRefusal>) -> Result<Value, Error> {
    answer.map_err(|refusal| Error::server(refusal.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_without_a_reason_is_one_sentence() {
        let refusal = |body: &str| RequestRefusal::new(StatusCode::BAD_GATEWAY, body);
        for (body, text) in [
            (
                r#"{"code":"400","reason":"a name is taken"}"#,
                "a name is taken",
            ),
            (r#"{"reason":"","message":"no token"}"#, "no token"),
        ] {
            let refusal = refusal(body);
            assert!(refusal.is_explained && refusal.reason == text, "{refusal}");
        }
        let start = "the server answered 502: it gave no reason, but ";
        for (body, details) in [
            ("", "an empty body"),
            (" \n", "an empty body"),
            (
                "<html>\n<h1>502</h1>",
                "a page for browsers, as a proxy before the API sends it",
            ),
            ("upstream\nunavailable", "upstream unavailable"),
            (
                r#"{"errors":[{"path":"x"}]}"#,
                r#"{"errors":[{"path":"x"}]}"#,
            ),
            (r#"["reason"]"#, r#"["reason"]"#),
        ] {
            let refusal = refusal(body);
            assert!(!refusal.is_explained);
            assert_eq!(refusal.to_string(), format!("{start}{details}"));
        }
        let long = refusal(&format!("{{\"fields\":[{}]}}", "1,".repeat(5000)));
        let long = long.to_string();
        assert!(long.ends_with('…') && long.chars().count() < 300, "{long}");
    }
}
