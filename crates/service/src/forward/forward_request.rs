//! Forwarding of one request: its headers, its retries, the response.

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, Version, header};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use super::balance::Balance;
use super::concurrency::ConcurrencyPermit;
use super::connection;
use super::forwarding::Forward;
use super::headers::{self, ForwardedFor};
use super::lease::leased_response;
use super::replay_body::ReplayBody;
use super::replica::RequestInFlight;
use super::retry::{ForwardError, Retry};
use crate::access_log::AnsweringReplica;
use crate::server::ClientWaiting;

/// `Retry-After` while replicas start. Units: seconds.
const RETRY_AFTER: &str = "2";

impl Forward {
    /// Forwards one request; the response of a replica, or an error in JSON.
    pub(super) async fn forward_request(
        &self,
        from: ForwardedFor,
        mut request: Request,
    ) -> Response {
        let balance = &self.balance;
        balance.metrics.requests.increment(1);
        if request.method() == Method::CONNECT {
            let text = "CONNECT is not supported: requests are forwarded to one service";
            return json_error(StatusCode::METHOD_NOT_ALLOWED, text);
        }
        if headers::has_too_many_lines(request.headers()) {
            let text = format!(
                "the request has more than {} header lines",
                headers::MAX_LINES
            );
            return json_error(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, &text);
        }
        let upgrade = headers::upgrade_of(request.version(), request.headers());
        let from_client = upgrade.is_some().then(|| hyper::upgrade::on(&mut request));
        let answering = request.extensions().get::<AnsweringReplica>().cloned();
        let waiting = request.extensions().get::<ClientWaiting>().cloned();
        let (mut parts, body) = request.into_parts();
        let source = ReplayBody::new(body);
        let admitted = balance.concurrency.admit(from.client.ip, &parts, &source);
        let Some((permit, turn)) = admitted.await else {
            balance.metrics.failures.increment(1);
            let text = format!(
                "{} has reached its limit of concurrent requests",
                balance.upstream.name()
            );
            return json_error(StatusCode::SERVICE_UNAVAILABLE, &text);
        };
        if source.has_failed() {
            return error_response(balance, &ForwardError::Client);
        }
        // Before a replica works for a response that would be refused.
        if let Some(refusal) = waiting.and_then(|it| it.refusal(connection::HELD_BYTES)) {
            return refusal;
        }
        prepare(balance, from, upgrade, &mut parts);
        let is_head = parts.method == Method::HEAD;
        let answered = Retry::new(balance, parts, source).run().await;
        drop(turn);
        if let (Some(answering), Ok((_, lease))) = (&answering, &answered) {
            answering.set(lease.replica.address);
        }
        match answered {
            Ok((response, lease)) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                let held = (permit, lease.become_tunnel());
                upgrade_response(balance, response.map(Body::new), from_client, held)
            }
            Ok((response, lease)) => leased_response(response, is_head, lease, permit),
            Err(why) => error_response(balance, &why),
        }
    }
}

fn prepare(balance: &Balance, from: ForwardedFor, upgrade: Option<HeaderValue>, parts: &mut Parts) {
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
        // Without it, hyper omits the body of a GET.
        let chunked = HeaderValue::from_static("chunked");
        parts.headers.insert(header::TRANSFER_ENCODING, chunked);
    }
    // HTTP/2 and absolute-form requests name their host in the target, HTTP/1.0 may name none.
    let host = authority.or_else(|| {
        let is_missing = !parts.headers.contains_key(header::HOST);
        is_missing.then(|| balance.upstream.authority().to_owned())
    });
    if let Some(host) = host.and_then(|host| HeaderValue::from_str(&host).ok()) {
        parts.headers.insert(header::HOST, host);
    }
    headers::add(&mut parts.headers, from, balance.upstream.proof());
    if let Some(protocol) = upgrade {
        set_upgrade(&mut parts.headers, protocol);
    }
}

/// Until the end of a tunnel.
type HeldByTunnel = (ConcurrencyPermit, RequestInFlight);

fn upgrade_response(
    balance: &Balance,
    mut response: Response,
    from_client: Option<OnUpgrade>,
    held: HeldByTunnel,
) -> Response {
    let protocol = response.headers().get(header::UPGRADE).cloned();
    let (Some(from_client), Some(protocol)) = (from_client, protocol) else {
        tracing::warn!(
            upstream = balance.upstream.authority(),
            "replica switched protocols without an upgrade request"
        );
        return error_response(balance, &ForwardError::Broken);
    };
    let from_replica = hyper::upgrade::on(&mut response);
    let tunnel = tunnel(from_client, from_replica, held);
    tokio::spawn(balance.shutdown.clone().run_until_cancelled_owned(tunnel));
    headers::strip_hop_by_hop(response.headers_mut());
    set_upgrade(response.headers_mut(), protocol);
    response
}

fn set_upgrade(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, protocol);
}

/// Carries bytes both ways until both sides have ended or one has failed.
async fn tunnel(from_client: OnUpgrade, from_replica: OnUpgrade, _held: HeldByTunnel) {
    match tokio::try_join!(from_client, from_replica) {
        Ok((client, replica)) => {
            let (mut client, mut replica) = (TokioIo::new(client), TokioIo::new(replica));
            // A side may close without a shutdown of the protocol: the ordinary end of a tunnel.
            if let Err(error) = tokio::io::copy_bidirectional(&mut client, &mut replica).await {
                tracing::debug!(%error, "upgraded connection failed");
            }
        }
        Err(error) => tracing::debug!(%error, "upgrade not completed"),
    }
}

fn error_response(balance: &Balance, why: &ForwardError) -> Response {
    let name = balance.upstream.name();
    let (status, text) = match why {
        ForwardError::NoReplica => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("{name} cannot be reached: its name cannot be resolved, it may be starting"),
        ),
        ForwardError::Unreachable(1) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("{name} cannot be reached: it may be starting"),
        ),
        ForwardError::Unreachable(count) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("{name} cannot be reached: none of its {count} replicas accepts connections"),
        ),
        ForwardError::Broken => (
            StatusCode::BAD_GATEWAY,
            format!("{name} closed the connection before its response"),
        ),
        ForwardError::Timeout => (
            StatusCode::GATEWAY_TIMEOUT,
            format!("{name} did not respond before the timeout"),
        ),
        ForwardError::Client => {
            let text = "the request body ended before its announced length";
            return json_error(StatusCode::BAD_REQUEST, text);
        }
    };
    balance.metrics.failures.increment(1);
    // Health checks log once that a replica is down.
    tracing::debug!(
        upstream = balance.upstream.authority(),
        ?why,
        "request not forwarded"
    );
    json_error(status, &text)
}

/// A response that is not of a replica; an extension of it.
#[derive(Debug, Clone)]
pub struct GatewayError {
    /// The upstream and the reason, in one sentence, for people.
    pub message: String,
}

/// An error body in the shape of the API's gateway layers.
fn json_error(status: StatusCode, message: &str) -> Response {
    let body = serde_json::json!({ "code": status.as_u16(), "message": message });
    let mut response = (status, axum::Json(body)).into_response();
    let message = message.to_owned();
    response.extensions_mut().insert(GatewayError { message });
    if status == StatusCode::SERVICE_UNAVAILABLE {
        let value = HeaderValue::from_static(RETRY_AFTER);
        response.headers_mut().insert(header::RETRY_AFTER, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use net::resolve::Resolver;

    use super::*;
    use crate::CancellationToken;
    use crate::forward::{ForwardSettings, Upstream};

    #[tokio::test]
    async fn errors_of_the_gateway_name_the_upstream_and_the_reason() {
        let shutdown = CancellationToken::new();
        shutdown.cancel();
        let upstream = Upstream::parse("http://api-server:8090").unwrap();
        let settings = ForwardSettings::default();
        let forward = Forward::start(upstream, Resolver::system(), &settings, &shutdown);
        for (why, status, reason) in [
            (ForwardError::NoReplica, 503, "name cannot be resolved"),
            (ForwardError::Unreachable(1), 503, "cannot be reached"),
            (ForwardError::Unreachable(3), 503, "none of its 3 replicas"),
            (ForwardError::Broken, 502, "closed the connection"),
            (
                ForwardError::Timeout,
                504,
                "did not respond before the timeout",
            ),
        ] {
            let response = error_response(&forward.balance, &why);
            assert_eq!(response.status(), status);
            let error = response.extensions().get::<GatewayError>().unwrap();
            let message = &error.message;
            assert!(
                message.starts_with("api-server:8090 ") && message.contains(reason),
                "{message}"
            );
        }
    }
}
