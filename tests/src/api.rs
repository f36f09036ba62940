//! A client of the public HTTP API that returns every response as it is.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use reqwest::{Method, StatusCode, header::HeaderMap};
use serde_json::Value;

use crate::until;

const BASE_PATH: &str = "/api/assisted-install";
/// A slower response counts as none.
const TIMEOUT: Duration = Duration::from_mins(1);
/// Transient statuses: "not now", and those of a proxy without a backend.
pub(crate) const PASSING: [StatusCode; 3] = [
    StatusCode::SERVICE_UNAVAILABLE,
    StatusCode::BAD_GATEWAY,
    StatusCode::GATEWAY_TIMEOUT,
];
/// Retries while a service restarts.
const PATIENCE: Duration = Duration::from_mins(2);

/// A client of the installer API.
#[derive(Debug, Clone)]
pub struct ApiClient {
    http: reqwest::Client,
    origin: String,
}

/// A response, successful or not.
#[derive(Debug)]
pub struct ApiResponse {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Vec<u8>,
}

impl ApiResponse {
    /// The body as JSON.
    ///
    /// Errors: it is not JSON.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body).with_context(|| format!("no JSON: {}", self.text()))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl ApiClient {
    /// A client of the API at `origin`, such as http://127.0.0.1:8090.
    ///
    /// Errors: the client cannot be made.
    pub fn new(origin: &str) -> Result<Self> {
        Ok(Self {
            http: client(None)?,
            origin: origin.to_owned(),
        })
    }

    /// Sends one request for `path` below the API's base path; an error status is a response, too.
    ///
    /// Errors: no connection, or one that broke.
    pub async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<ApiResponse> {
        self.ask_url(method, &format!("{}{BASE_PATH}{path}", self.origin), body)
            .await
    }

    /// Sends one GET for a path outside the API, such as /ready.
    ///
    /// Errors: as [`ApiClient::ask`].
    pub async fn probe(&self, path: &str) -> Result<ApiResponse> {
        self.ask_url(Method::GET, &format!("{}{path}", self.origin), None)
            .await
    }

    /// Body of a successful GET; retries while the service restarts.
    ///
    /// Errors: any other response, with the body; no response until the deadline.
    pub async fn get(&self, path: &str) -> Result<Value> {
        let answer = until(&format!("GET {path} is answered"), PATIENCE, async || {
            let answer = self.ask(Method::GET, path, None).await.ok();
            Ok(answer.filter(|answer| !PASSING.contains(&answer.status)))
        })
        .await?;
        succeeded(&answer).with_context(|| format!("GET {path}"))
    }

    /// Body of a request that is sent once and has to succeed.
    ///
    /// Errors: as [`ApiClient::ask`], and any other status, with the body.
    pub async fn succeed(&self, method: Method, path: &str, body: &Value) -> Result<Value> {
        let answer = self.ask(method.clone(), path, Some(body)).await?;
        succeeded(&answer).with_context(|| format!("{method} {path}"))
    }

    async fn ask_url(
        &self,
        method: Method,
        url: &str,
        body: Option<&Value>,
    ) -> Result<ApiResponse> {
        let mut request = self.http.request(method.clone(), url);
        if let Some(body) = body {
            request = request.json(body);
        }
        send(request)
            .await
            .with_context(|| format!("{method} {url}"))
    }
}

/// Sends one GET; any status is a response.
pub(crate) async fn ask(client: &reqwest::Client, url: &str) -> Result<ApiResponse> {
    send(client.get(url))
        .await
        .with_context(|| format!("GET {url}"))
}

async fn send(request: reqwest::RequestBuilder) -> Result<ApiResponse> {
    let response = request.timeout(TIMEOUT).send().await?;
    let status = response.status();
    let headers = response.headers().clone();
    let body = response.bytes().await;
    let body = body.with_context(|| format!("{status}, and it broke off"))?;
    Ok(ApiResponse {
        status,
        headers,
        body: body.to_vec(),
    })
}

fn succeeded(answer: &ApiResponse) -> Result<Value> {
    let status = answer.status;
    ensure!(status.is_success(), "{status} {}", answer.text());
    answer.json()
}

/// A client that trusts the certificate in `authority` alone; without one, plain HTTP.
///
/// Errors: the file cannot be read, or holds no certificate.
pub fn client(authority: Option<&Path>) -> Result<reqwest::Client> {
    // Another test of this program may have installed the same provider already.
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
