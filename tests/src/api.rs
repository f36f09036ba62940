//! The public HTTP operations, with every answer given as it is.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use reqwest::{Method, StatusCode, header::HeaderMap};
use serde_json::Value;

use crate::until;

const BASE_PATH: &str = "/api/assisted-install";
/// An answer that takes longer is none.
const TIMEOUT: Duration = Duration::from_mins(1);
/// "Not now", and a proxy's words for no answer.
pub(crate) const PASSING: [StatusCode; 3] = [
    StatusCode::SERVICE_UNAVAILABLE,
    StatusCode::BAD_GATEWAY,
    StatusCode::GATEWAY_TIMEOUT,
];
/// While a service is restarted.
const PATIENCE: Duration = Duration::from_mins(2);

/// A client of the installer API.
#[derive(Debug, Clone)]
pub struct Api {
    http: reqwest::Client,
    origin: String,
}

/// An answer, good or not.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as JSON.
    ///
    /// Errors: it is none.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body).with_context(|| format!("no JSON: {}", self.text()))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Api {
    /// A client of the API at `origin`, such as http://127.0.0.1:8090.
    ///
    /// Errors: the client cannot be made.
    pub fn new(origin: &str) -> Result<Self> {
        Ok(Self {
            http: client(None)?,
            origin: origin.to_owned(),
        })
    }

    /// Asks once for `path` below the API's base path; an error is no answer.
    ///
    /// Errors: no connection, or one that broke.
    pub async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Answer> {
        self.ask_url(method, &format!("{}{BASE_PATH}{path}", self.origin), body)
            .await
    }

    /// Asks once for a path beside the API, such as /ready.
    ///
    /// Errors: as [`Api::ask`].
    pub async fn probe(&self, path: &str) -> Result<Answer> {
        self.ask_url(Method::GET, &format!("{}{path}", self.origin), None)
            .await
    }

    /// The answer to a GET, which has to be a success; waits while the service is restarted.
    ///
    /// Errors: any other answer, with the body; no answer for long.
    pub async fn get(&self, path: &str) -> Result<Value> {
        let answer = until(&format!("GET {path} is answered"), PATIENCE, async || {
            let answer = self.ask(Method::GET, path, None).await.ok();
            Ok(answer.filter(|answer| !PASSING.contains(&answer.status)))
        })
        .await?;
        succeeded(&answer).with_context(|| format!("GET {path}"))
    }

    /// The answer to a request that is sent once and has to be a success.
    ///
    /// Errors: as [`Api::ask`], and any other status, with the body.
    pub async fn succeed(&self, method: Method, path: &str, body: &Value) -> Result<Value> {
        let answer = self.ask(method.clone(), path, Some(body)).await?;
        succeeded(&answer).with_context(|| format!("{method} {path}"))
    }

    async fn ask_url(&self, method: Method, url: &str, body: Option<&Value>) -> Result<Answer> {
        let mut request = self.http.request(method.clone(), url);
        if let Some(body) = body {
            request = request.json(body);
        }
        send(request)
            .await
            .with_context(|| format!("{method} {url}"))
    }
}

/// The answer to one GET, whatever it is.
pub(crate) async fn ask(client: &reqwest::Client, url: &str) -> Result<Answer> {
    send(client.get(url))
        .await
        .with_context(|| format!("GET {url}"))
}

async fn send(request: reqwest::RequestBuilder) -> Result<Answer> {
    let response = request.timeout(TIMEOUT).send().await?;
    let status = response.status();
    let headers = response.headers().clone();
    let body = response.bytes().await;
    let body = body.with_context(|| format!("{status}, and it broke off"))?;
    Ok(Answer {
        status,
        headers,
        body: body.to_vec(),
    })
}

fn succeeded(answer: &Answer) -> Result<Value> {
    let status = answer.status;
    ensure!(status.is_success(), "{status} {}", answer.text());
    answer.json()
}

/// A client that trusts the certificate in `authority` alone; without one, plain HTTP.
///
/// Errors: the file cannot be read, or is no certificate.
pub fn client(authority: Option<&Path>) -> Result<reqwest::Client> {
    // Another test of this program may have set the same provider already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder().connect_timeout(Duration::from_secs(5));
    let certificates = match authority {
        Some(path) => {
            let pem = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
            reqwest::Certificate::from_pem_bundle(&pem)?
        }
        None => Vec::new(),
    };
    builder
        .tls_certs_only(certificates)
        .build()
        .context("making an HTTP client")
}
