//! The registry's API below `/services/registry/v2/`, for the UI's pages of repositories.
//!
//! The person's own login at the registry passes; the registry decides on it. Pushed content comes from this
//! server's origin then: responses are sandboxed, so that no browser shows one as a page.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use axum::{Extension, Json, Router};
use concurrency::{BoxError, WatchedFile};
use futures_util::StreamExt as _;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyDataStream, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use net::resolve::Resolver;
use rustls::ClientConfig;
use serde_json::json;
use service::limits::{Bound, Limit, Share};
use service::server::{ClientAddress, ClientQuota, Permit};
use service::{Error, ResultExt as _};
use tokio::task::AbortHandle;
use url::{Position, Url};

use crate::connector::{self, Connector};

/// Concurrent requests.
const REQUESTS: usize = 64;
/// Of one client: a browser sends at most six.
const REQUESTS_OF_CLIENT: usize = 16;
/// Timeout from the resolution of the name to the head of the response.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest silence within a response. A garbage collection sends a byte every ten seconds.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);
/// Time after which a refused client tries again. Units: seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("2");
/// Prefix of this server's paths.
const PREFIX: &str = "/registry";
/// Methods of the pages: they push nothing.
const METHODS: [Method; 4] = [Method::GET, Method::HEAD, Method::DELETE, Method::POST];
/// Headers of requests that pass.
const TO_REGISTRY: [HeaderName; 2] = [header::ACCEPT, header::AUTHORIZATION];
/// Headers of responses that pass. `WWW-Authenticate` does not: browsers would ask for a password by themselves.
const FROM_REGISTRY: [HeaderName; 7] = [
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::ETAG,
    header::LINK,
    header::RETRY_AFTER,
    HeaderName::from_static("docker-content-digest"),
    HeaderName::from_static("oci-filters-applied"),
];

/// The registry. Clones share it.
#[derive(Clone)]
pub(crate) struct RegistryApi(Arc<Inner>);

struct Inner {
    url: Url,
    names: Resolver,
    tls: RegistryTls,
    quota: ClientQuota,
}

enum RegistryTls {
    /// By the file of its certificates, which changes when they are renewed.
    Watched(WatchedFile<Arc<ClientConfig>>),
    /// By the system's authorities.
    System(Arc<ClientConfig>),
}

/// Ends the connection, and lets another request begin, when it is dropped.
struct OpenConnection {
    task: AbortHandle,
    _permit: Permit,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl RegistryApi {
    /// The registry at `url`, whose certificates are verified by those in the file `ca`.
    ///
    /// Errors: the file has no certificate.
    pub(crate) async fn open(url: Url, ca: Option<&Path>, names: Resolver) -> Result<Self, Error> {
        let tls = match ca {
            Some(path) if url.scheme() == "https" => {
                let opened = WatchedFile::open(path, client_config).await;
                let watched = opened.doing("reading REGISTRY_CA_FILE")?;
                RegistryTls::Watched(watched)
            }
            _ => {
                let config = net::trust::client_config(None, false);
                let config = config.doing("preparing TLS")?;
                RegistryTls::System(connector::http1(config))
            }
        };
        Ok(Self(Arc::new(Inner {
            url,
            names,
            tls,
            quota: ClientQuota::new(REQUESTS, REQUESTS_OF_CLIENT),
        })))
    }

    async fn connector(&self) -> Connector {
        let tls = match &self.0.tls {
            RegistryTls::Watched(file) => Arc::clone(&*file.get().await),
            RegistryTls::System(tls) => Arc::clone(tls),
        };
        Connector::new(tls, self.0.names.clone())
    }

    /// Sends a request that has `permit`. The connection ends with the future, as when the client leaves or no response comes.
    async fn send(
        &self,
        request: Request,
        permit: Permit,
    ) -> Result<(http::Response<Incoming>, OpenConnection), BoxError> {
        let (parts, _body) = request.into_parts();
        let target = parts.uri.path_and_query().map_or("/", |it| it.as_str());
        let target = target.strip_prefix(PREFIX).unwrap_or(target);
        let host = &self.0.url[Position::BeforeHost..Position::AfterPort];
        let mut forwarded = http::Request::builder()
            .method(parts.method)
            .uri(target)
            .header(header::HOST, host)
            .body(Empty::<Bytes>::new())?;
        copy(&TO_REGISTRY, &parts.headers, forwarded.headers_mut());
        let stream = self.connector().await.open(&self.0.url).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let open = OpenConnection {
            task: tokio::spawn(connection).abort_handle(),
            _permit: permit,
        };
        Ok((sender.send_request(forwarded).await?, open))
    }

    async fn respond(&self, client: ClientAddress, request: Request) -> Response {
        let method = request.method();
        if !METHODS.contains(method) {
            return StatusCode::METHOD_NOT_ALLOWED.into_response();
        }
        let Ok(permit) = self.0.quota.acquire_for(client) else {
            let message = "Too many requests to the registry at once.";
            return refused(StatusCode::SERVICE_UNAVAILABLE, message);
        };
        match tokio::time::timeout(HEAD_TIMEOUT, self.send(request, permit)).await {
            Ok(Ok((response, open))) => passed(response, open),
            Ok(Err(error)) => {
                let reason = model::error::chain(&*error);
                tracing::warn!(registry = %self.0.url, reason, "registry unavailable");
                let message = format!("The registry cannot be reached: {reason}.");
                refused(StatusCode::BAD_GATEWAY, &message)
            }
            Err(_) => refused(
                StatusCode::GATEWAY_TIMEOUT,
                "The registry did not respond in time.",
            ),
        }
    }
}

/// Routes below `/services`.
pub(crate) fn routes(registry: RegistryApi) -> Router {
    let respond =
        async |State(registry): State<RegistryApi>,
               Extension(client): Extension<ClientAddress>,
               request: Request| { registry.respond(client, request).await };
    Router::new()
        .route(&format!("{PREFIX}/v2/"), any(respond))
        .route(&format!("{PREFIX}/v2/{{*path}}"), any(respond))
        .with_state(registry)
}

/// Limits of clients.
pub(crate) fn limits() -> [Limit; 3] {
    [
        Limit::fixed(
            "requests of a client to the registry in flight",
            Bound::Count(REQUESTS_OF_CLIENT as u64, "requests"),
            "client address",
            "503 with Retry-After",
        ),
        Limit::fixed(
            "requests to the registry in flight",
            Bound::Count(REQUESTS as u64, "requests"),
            "server",
            "503 with Retry-After",
        )
        .shared(Share::of(
            "client address",
            Bound::Count(REQUESTS_OF_CLIENT as u64, "requests"),
            "503 with Retry-After",
        )),
        Limit::fixed(
            "time for the registry's response",
            Bound::Time(HEAD_TIMEOUT),
            "request",
            "504",
        ),
    ]
}

fn client_config(pem: &[u8]) -> Result<Arc<ClientConfig>, BoxError> {
    Ok(connector::http1(net::trust::client_config(
        Some(pem),
        false,
    )?))
}

fn copy(names: &[HeaderName], from: &HeaderMap, to: &mut HeaderMap) {
    for name in names {
        for value in from.get_all(name) {
            to.append(name, value.clone());
        }
    }
}

/// The registry's response, while `open` is kept until its end.
fn passed(response: http::Response<Incoming>, open: OpenConnection) -> Response {
    let (parts, body) = response.into_parts();
    let frames = BodyDataStream::new(body);
    let body = futures_util::stream::unfold(Some((frames, open)), |state| async {
        let (mut frames, open) = state?;
        match tokio::time::timeout(IDLE_TIMEOUT, frames.next()).await {
            Ok(Some(Ok(bytes))) => Some((Ok::<_, BoxError>(bytes), Some((frames, open)))),
            Ok(Some(Err(error))) => Some((Err(error.into()), None)),
            Ok(None) => None,
            Err(silent) => Some((Err(silent.into()), None)),
        }
    });
    let mut response = Response::new(Body::from_stream(body));
    *response.status_mut() = parts.status;
    let headers = response.headers_mut();
    copy(&FROM_REGISTRY, &parts.headers, headers);
    for (name, value) in [
        (
            header::CONTENT_SECURITY_POLICY,
            "sandbox; default-src 'none'",
        ),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_DISPOSITION, "attachment"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn refused(status: StatusCode, message: &str) -> Response {
    let body = Json(json!({ "code": status.as_u16(), "message": message }));
    let mut response = (status, body).into_response();
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, RETRY_AFTER);
    }
    response
}
