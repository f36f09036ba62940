//! `/api` goes to the installer API: path, query, method, Host and bodies as they came, both ways streamed,
//! protocol upgrades passed through.
//!
//! Nothing is buffered, merged or redirected here: the UI relies on `//` inside paths.

use std::error::Error as _;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, Uri, Version, header};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use service::CancellationToken;

use crate::forwarded;
use crate::upstream::{ApiClient, Upstream};

/// How long the API may think before its answer begins: building log archives takes minutes.
const ANSWER_TIMEOUT: Duration = Duration::from_hours(1);
/// Units: seconds. When a browser should ask again while the API starts.
const RETRY_AFTER: &str = "2";

/// What the proxy needs for a request.
#[derive(Debug, Clone)]
pub(crate) struct Proxy {
    pub(crate) client: ApiClient,
    pub(crate) upstream: Upstream,
    pub(crate) shutdown: CancellationToken,
}

/// Passes one request on.
pub(crate) async fn handle(
    State(proxy): State<Proxy>,
    ConnectInfo(client): ConnectInfo<SocketAddr>,
    mut request: Request,
) -> Response {
    let upgrade = forwarded::upgrade_of(request.version(), request.headers());
    let from_client = upgrade.is_some().then(|| hyper::upgrade::on(&mut request));
    let sent = match prepare(&proxy.upstream, client, upgrade.as_ref(), request) {
        Ok(request) => request,
        Err(error) => return failure(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    match tokio::time::timeout(ANSWER_TIMEOUT, proxy.client.request(sent)).await {
        Ok(Ok(response)) => answer(response.map(Body::new), from_client, proxy.shutdown),
        Ok(Err(error)) => unreachable_api(&error),
        Err(_) => failure(
            StatusCode::GATEWAY_TIMEOUT,
            "the installer API did not answer in time",
        ),
    }
}

fn prepare(
    upstream: &Upstream,
    client: SocketAddr,
    upgrade: Option<&HeaderValue>,
    request: Request,
) -> Result<Request, http::Error> {
    let (mut parts, body) = request.into_parts();
    let authority = parts.uri.authority().map(ToString::to_string);
    let uri: Uri = upstream.uri(parts.uri.path_and_query())?;
    parts.uri = uri;
    parts.version = Version::HTTP_11;
    parts.extensions.clear();
    forwarded::strip_hop_by_hop(&mut parts.headers);
    if let Some(authority) = authority {
        // HTTP/2 and absolute-form requests name their host in the target.
        if let Ok(value) = HeaderValue::from_str(&authority) {
            parts.headers.entry(header::HOST).or_insert(value);
        }
    }
    forwarded::add(&mut parts.headers, client.ip());
    if let Some(protocol) = upgrade {
        set_upgrade(&mut parts.headers, protocol.clone());
    }
    Ok(Request::from_parts(parts, body))
}

fn answer(
    mut response: Response,
    from_client: Option<OnUpgrade>,
    shutdown: CancellationToken,
) -> Response {
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        forwarded::strip_hop_by_hop(response.headers_mut());
        return response;
    }
    let protocol = response.headers().get(header::UPGRADE).cloned();
    let (Some(from_client), Some(protocol)) = (from_client, protocol) else {
        tracing::warn!("the installer API switched protocols without being asked");
        return failure(
            StatusCode::BAD_GATEWAY,
            "the installer API sent an answer that was not asked for",
        );
    };
    let from_api = hyper::upgrade::on(&mut response);
    tokio::spawn(shutdown.run_until_cancelled_owned(tunnel(from_client, from_api)));
    forwarded::strip_hop_by_hop(response.headers_mut());
    set_upgrade(response.headers_mut(), protocol);
    response
}

fn set_upgrade(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, protocol);
}

/// Carries bytes both ways until either side ends.
async fn tunnel(from_client: OnUpgrade, from_api: OnUpgrade) {
    match tokio::try_join!(from_client, from_api) {
        Ok((client, api)) => {
            let (mut client, mut api) = (TokioIo::new(client), TokioIo::new(api));
            // Either side may go without a goodbye: that is the ordinary end of a tunnel.
            if let Err(error) = tokio::io::copy_bidirectional(&mut client, &mut api).await {
                tracing::debug!(%error, "an upgraded connection ended");
            }
        }
        Err(error) => tracing::debug!(%error, "an upgrade was not completed"),
    }
}

fn unreachable_api(error: &hyper_util::client::legacy::Error) -> Response {
    tracing::warn!(error = chain(error), "the installer API could not be asked");
    if error.is_connect() {
        return failure(
            StatusCode::SERVICE_UNAVAILABLE,
            "the installer API cannot be reached: it may be starting",
        );
    }
    failure(
        StatusCode::BAD_GATEWAY,
        "the installer API broke off before its answer",
    )
}

fn chain(error: &hyper_util::client::legacy::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(io) = cause.downcast_ref::<std::io::Error>()
            && io.kind() == ErrorKind::ConnectionRefused
        {
            text.push_str(": connection refused");
            break;
        }
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// An error in the shape that the API's own gateway layers use.
fn failure(status: StatusCode, message: &str) -> Response {
    let body = serde_json::json!({ "code": status.as_u16(), "message": message });
    let mut response = (status, axum::Json(body)).into_response();
    if status == StatusCode::SERVICE_UNAVAILABLE {
        let value = HeaderValue::from_static(RETRY_AFTER);
        response.headers_mut().insert(header::RETRY_AFTER, value);
    }
    response
}
