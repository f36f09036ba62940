//! HTTP client of the OpenID provider: small requests, one connection each.
//!
//! `net::web` and the crate `oauth2` would bring in more packages than this server may compile (`cargo xtask tidy`);
//! log-ins and refreshes are few, so that no pool of connections is needed.

use std::time::Duration;

use bytes::Bytes;
use concurrency::BoxError;
use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::sync::Semaphore;
use url::{Position, Url};

use super::failure::LogInFailure;
use crate::connector::{Connector, ServerStream};

/// Timeout of a request, from the resolution of the name to the last byte.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Largest response. Units: bytes. Key sets and tokens have a few thousand.
const RESPONSE_BYTES: usize = 256 << 10;
/// Concurrent requests: requests without a session cause them.
pub(super) const REQUESTS: usize = 32;

/// Sends requests to the provider.
pub(super) struct ProviderClient {
    connector: Connector,
    permits: Semaphore,
}

/// A response that was read to its end.
pub(super) struct ProviderResponse {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
}

impl ProviderClient {
    pub(super) fn new(connector: Connector) -> Self {
        Self {
            connector,
            permits: Semaphore::new(REQUESTS),
        }
    }

    /// Errors: Busy; ProviderAway – unreachable, or without a response in time.
    pub(super) async fn get(&self, url: &Url) -> Result<ProviderResponse, LogInFailure> {
        self.send(url, Request::builder().method(Method::GET), Bytes::new())
            .await
    }

    /// Sends a form; `authorization` is that of the client.
    ///
    /// Errors: as [`Self::get`].
    pub(super) async fn post(
        &self,
        url: &Url,
        form: String,
        authorization: Option<HeaderValue>,
    ) -> Result<ProviderResponse, LogInFailure> {
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        let mut request = Request::builder()
            .method(Method::POST)
            .header(header::CONTENT_TYPE, kind);
        if let Some(authorization) = authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        self.send(url, request, form.into()).await
    }

    async fn send(
        &self,
        url: &Url,
        request: http::request::Builder,
        body: Bytes,
    ) -> Result<ProviderResponse, LogInFailure> {
        let _permit = self.permits.try_acquire().map_err(|_| LogInFailure::Busy)?;
        let away = |reason: String| {
            tracing::warn!(host = url.host_str(), reason, "OpenID provider unavailable");
            LogInFailure::ProviderAway(reason)
        };
        let exchange = self.exchange(url, request, body);
        match tokio::time::timeout(TIMEOUT, exchange).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(away(model::error::chain(&*error))),
            Err(_) => Err(away(format!("no answer within {} s", TIMEOUT.as_secs()))),
        }
    }

    async fn exchange(
        &self,
        url: &Url,
        request: http::request::Builder,
        body: Bytes,
    ) -> Result<ProviderResponse, BoxError> {
        let request = request
            .uri(&url[Position::BeforePath..Position::AfterQuery])
            .header(
                header::HOST,
                &url[Position::BeforeHost..Position::AfterPort],
            )
            .header(header::ACCEPT, "application/json")
            .body(Full::new(body))?;
        response(self.connector.open(url).await?, request).await
    }
}

async fn response(
    stream: ServerStream,
    request: Request<Full<Bytes>>,
) -> Result<ProviderResponse, BoxError> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let received = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), RESPONSE_BYTES);
        let body = body.collect().await?.to_bytes();
        Ok(ProviderResponse { status, body })
    }
    .await;
    connection.abort();
    received
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;
    use net::resolve::Resolver;
    use tokio::net::TcpListener;

    use super::*;
    use crate::connector;

    // limit: requests to the OpenID provider in flight
    #[tokio::test]
    async fn further_requests_are_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let url: Url = url.parse().unwrap();
        let tls = net::trust::client_config(None, false).unwrap();
        let client = ProviderClient::new(Connector::new(connector::http1(tls), Resolver::system()));
        let silent = async {
            let mut open = Vec::new();
            while open.len() < REQUESTS {
                open.push(listener.accept().await.unwrap());
            }
            let further = client.get(&url).await.err();
            assert_eq!(further, Some(LogInFailure::Busy));
        };
        // Dropped with the connections: every one of the others fails as it should, without a permit left.
        let (results, ()) = tokio::join!(join_all((0..REQUESTS).map(|_| client.get(&url))), silent);
        for result in results {
            let failure = result.err().unwrap();
            assert!(
                matches!(failure, LogInFailure::ProviderAway(_)),
                "{failure:?}"
            );
        }
        assert_eq!(client.permits.available_permits(), REQUESTS);
    }
}
