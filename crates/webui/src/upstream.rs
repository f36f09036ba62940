//! Where the installer API is, and the client that speaks to it.

use std::fmt;
use std::time::Duration;

use axum::body::Body;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

/// A live neighbour accepts within a round trip; a dead address must not hold a browser for long.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Shorter than the API's own idle limit, so that a pooled connection is seldom closed under a request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);
/// Units: connections. More are opened under load; these stay.
const IDLE_CONNECTIONS: usize = 8;

/// The client of the proxy.
pub(crate) type ApiClient = Client<HttpConnector, Body>;

/// Origin of the installer API, plain HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream(Authority);

/// Why a text is no origin of an installer API.
#[derive(Debug, thiserror::Error)]
pub enum NotAnOrigin {
    /// Another scheme, or none, or no host.
    #[error("give it as http://HOST:PORT, the API is reached without TLS")]
    NotHttp,
    /// Something after the port.
    #[error("a path is not possible here, requests keep the path that they came with")]
    HasPath,
}

impl Upstream {
    /// Reads `http://HOST:PORT`.
    ///
    /// Errors: another scheme, no host, or a path.
    pub fn parse(text: &str) -> Result<Self, NotAnOrigin> {
        let uri: Uri = text.trim().parse().map_err(|_| NotAnOrigin::NotHttp)?;
        if uri.scheme() != Some(&Scheme::HTTP) {
            return Err(NotAnOrigin::NotHttp);
        }
        if uri.path_and_query().is_some_and(|path| path != "/") {
            return Err(NotAnOrigin::HasPath);
        }
        uri.authority()
            .filter(|authority| !authority.host().is_empty())
            .cloned()
            .map(Self)
            .ok_or(NotAnOrigin::NotHttp)
    }

    /// The address of `path` there, byte for byte.
    pub(crate) fn uri(&self, path: Option<&PathAndQuery>) -> Result<Uri, http::Error> {
        Uri::builder()
            .scheme(Scheme::HTTP)
            .authority(self.0.clone())
            .path_and_query(path.map_or("/", PathAndQuery::as_str))
            .build()
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.0)
    }
}

/// A client with few idle connections.
pub(crate) fn client() -> ApiClient {
    let mut connector = HttpConnector::new();
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector.set_nodelay(true);
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .build(connector)
}

/// Whether the API says that it is ready; the reason, in words for an operator, when not.
pub(crate) async fn is_ready(client: &ApiClient, upstream: &Upstream) -> Result<(), String> {
    let uri = upstream
        .uri(Some(&PathAndQuery::from_static("/ready")))
        .map_err(|error| error.to_string())?;
    let response = tokio::time::timeout(CONNECT_TIMEOUT, client.get(uri))
        .await
        .map_err(|_| "the API does not answer".to_owned())?
        .map_err(|_| "the API cannot be reached".to_owned())?;
    match response.status() {
        StatusCode::OK => Ok(()),
        status => Err(format!("the API answers {}", status.as_u16())),
    }
}
