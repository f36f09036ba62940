//! What happens to one request: headers, the way to a replica, the answer's way back.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, Version, header};
use hyper::body::{Body as _, Bytes, Frame, Incoming, SizeHint};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use super::body::Source;
use super::headers::{self, Origin};
use super::inner::{Forward, Inner};
use super::pool::Connection;
use super::replica::Replica;
use super::send::{Failure, Sending};
use super::slots::Slot;

/// Units: seconds. When a client should ask again while replicas start.
const RETRY_AFTER: &str = "2";

impl Forward {
    /// Passes one request of `client` on and gives the answer, or an error in JSON when there is none.
    pub(super) async fn answer(&self, from: Origin, mut request: Request) -> Response {
        let inner = &self.inner;
        inner.metrics.requests.increment(1);
        if request.method() == Method::CONNECT {
            let text = "this forwards to one service, it opens no tunnels";
            return failure(StatusCode::METHOD_NOT_ALLOWED, text);
        }
        let upgrade = headers::upgrade_of(request.version(), request.headers());
        let from_client = upgrade.is_some().then(|| hyper::upgrade::on(&mut request));
        let (mut parts, body) = request.into_parts();
        let source = Source::new(body);
        let Some(permit) = self.admit(from.client.ip, &parts, &source).await else {
            inner.metrics.failures.increment(1);
            let text = format!("{} has too many requests at a time", inner.upstream.name());
            return failure(StatusCode::SERVICE_UNAVAILABLE, &text);
        };
        if source.has_failed() {
            return failed(inner, &Failure::Client);
        }
        prepare(inner, from, upgrade, &mut parts);
        let is_head = parts.method == Method::HEAD;
        match Sending::new(inner, parts, source).run().await {
            Ok((response, lease)) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                lease.become_tunnel();
                switched(inner, response.map(Body::new), from_client, permit)
            }
            Ok((response, lease)) => returned(response, is_head, lease, permit),
            Err(why) => failed(inner, &why),
        }
    }
}

fn prepare(inner: &Inner, from: Origin, upgrade: Option<HeaderValue>, parts: &mut Parts) {
    let authority = parts.uri.authority().map(|authority| {
        let text = authority.as_str();
        text.rsplit_once('@')
            .map_or(text, |(_user, host)| host)
            .to_owned()
    });
    let path = parts.uri.path_and_query().cloned();
    parts.uri = path.map_or_else(|| Uri::from_static("/"), Uri::from);
    parts.version = Version::HTTP_11;
    parts.extensions.clear();
    let is_chunked = parts.headers.contains_key(header::TRANSFER_ENCODING);
    headers::strip_hop_by_hop(&mut parts.headers);
    if is_chunked {
        // Otherwise the body of a GET would be left out.
        let chunked = HeaderValue::from_static("chunked");
        parts.headers.insert(header::TRANSFER_ENCODING, chunked);
    }
    // HTTP/2 and absolute-form requests name their host in the target, HTTP/1.0 may name none.
    let host = authority.or_else(|| {
        let is_missing = !parts.headers.contains_key(header::HOST);
        is_missing.then(|| inner.upstream.authority().to_owned())
    });
    if let Some(host) = host.and_then(|host| HeaderValue::from_str(&host).ok()) {
        parts.headers.insert(header::HOST, host);
    }
    headers::add(&mut parts.headers, from);
    if let Some(protocol) = upgrade {
        set_upgrade(&mut parts.headers, protocol);
    }
}

fn returned(
    response: http::Response<Incoming>,
    is_head: bool,
    lease: Lease,
    permit: Slot,
) -> Response {
    let (mut parts, body) = response.into_parts();
    parts.version = Version::HTTP_11;
    headers::strip_hop_by_hop(&mut parts.headers);
    let answer = Answer {
        body,
        lease: Some(lease),
        is_head,
        _permit: permit,
    };
    Response::from_parts(parts, Body::new(answer))
}

fn switched(
    inner: &Inner,
    mut response: Response,
    from_client: Option<OnUpgrade>,
    permit: Slot,
) -> Response {
    let protocol = response.headers().get(header::UPGRADE).cloned();
    let (Some(from_client), Some(protocol)) = (from_client, protocol) else {
        tracing::warn!(
            upstream = inner.upstream.authority(),
            "a replica switched protocols without being asked"
        );
        return failed(inner, &Failure::Broken);
    };
    let from_replica = hyper::upgrade::on(&mut response);
    let tunnel = tunnel(from_client, from_replica, permit);
    tokio::spawn(inner.shutdown.clone().run_until_cancelled_owned(tunnel));
    headers::strip_hop_by_hop(response.headers_mut());
    set_upgrade(response.headers_mut(), protocol);
    response
}

fn set_upgrade(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, protocol);
}

/// Carries bytes both ways until both sides have ended or one has failed.
async fn tunnel(from_client: OnUpgrade, from_replica: OnUpgrade, _permit: Slot) {
    match tokio::try_join!(from_client, from_replica) {
        Ok((client, replica)) => {
            let (mut client, mut replica) = (TokioIo::new(client), TokioIo::new(replica));
            // Either side may go without a goodbye: that is the ordinary end of a tunnel.
            if let Err(error) = tokio::io::copy_bidirectional(&mut client, &mut replica).await {
                tracing::debug!(%error, "an upgraded connection ended");
            }
        }
        Err(error) => tracing::debug!(%error, "an upgrade was not completed"),
    }
}

fn failed(inner: &Inner, why: &Failure) -> Response {
    let name = inner.upstream.name();
    let (status, text) = match why {
        Failure::NoReplica => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("{name} cannot be reached: its name cannot be resolved, it may be starting"),
        ),
        Failure::Unreachable(1) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("{name} cannot be reached: it may be starting"),
        ),
        Failure::Unreachable(count) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("{name} cannot be reached: none of its {count} replicas accepts connections"),
        ),
        Failure::Broken => (
            StatusCode::BAD_GATEWAY,
            format!("{name} broke off before its answer"),
        ),
        Failure::Late => (
            StatusCode::GATEWAY_TIMEOUT,
            format!("{name} did not answer in time"),
        ),
        Failure::Client => {
            let text = "the request ended before what it had announced";
            return failure(StatusCode::BAD_REQUEST, text);
        }
    };
    inner.metrics.failures.increment(1);
    // That replicas are away is told once, when it is found out.
    tracing::debug!(upstream = inner.upstream.authority(), ?why, "not forwarded");
    failure(status, &text)
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

/// A connection that carries an answer, on loan from a replica's pool.
pub(super) struct Lease {
    connection: Connection,
    replica: Arc<Replica>,
    request: Source,
}

impl Lease {
    pub(super) fn new(connection: Connection, replica: Arc<Replica>, request: Source) -> Self {
        Self {
            connection,
            replica,
            request,
        }
    }

    /// It carries another protocol from now on, and never a request again.
    fn become_tunnel(self) {
        self.connection.exchange.become_tunnel();
    }

    /// Gives it back, unless the replica answered before it had read everything.
    fn end(self) {
        if self.request.has_ended() {
            self.replica.pool.put(self.connection);
        }
    }
}

/// The body of an answer. Dropping it early closes the connection, so that the replica stops as well.
struct Answer {
    body: Incoming,
    lease: Option<Lease>,
    is_head: bool,
    _permit: Slot,
}

impl Answer {
    fn end(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.end();
        }
    }
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if polled.is_none() {
            self.end();
        }
        Poll::Ready(polled)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.is_head || self.body.is_end_stream() {
            // Without a body, what the replica says of its length stays alone: 304 and answers to HEAD.
            SizeHint::default()
        } else {
            self.body.size_hint()
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if self.body.is_end_stream() {
            self.end();
        }
    }
}
