//! Answers to clients beyond a bound, and their counter.

use axum::response::{IntoResponse as _, Response};
use http::{HeaderName, HeaderValue, StatusCode, header};

use super::quota::Exceeded;

/// Connections and requests that were refused or cut off, by reason.
const REFUSED: &str = "atoll_http_refused_total";
/// Units: seconds. When a client with too many requests should try again.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

fn count(reason: &'static str) {
    metrics::counter!(REFUSED, "reason" => reason).increment(1);
}

/// Describes the counter.
pub(super) fn describe() {
    metrics::describe_counter!(REFUSED, "Connections and requests refused or cut off");
}

/// A connection beyond a bound is closed without an answer.
pub(super) fn connection(exceeded: Exceeded) {
    count(match exceeded {
        Exceeded::Total => "connections",
        Exceeded::Client => "connections of a client",
    });
}

/// A connection is closed because a client with fewer needs its place.
pub(super) fn evicted() {
    count("evicted");
}

/// The connection of a client that takes no bytes is closed.
pub(super) fn stalled() {
    count("stalled");
}

/// A client has too many requests in flight.
pub(super) fn too_many_requests() -> Response {
    count("requests of a client");
    let text = "too many requests of this client address are in flight: retry when some have ended";
    let retry = (header::RETRY_AFTER, RETRY_AFTER);
    answer(StatusCode::TOO_MANY_REQUESTS, text, retry)
}

/// A request body came too slowly; what is left of it cannot be told from a next request.
pub(super) fn slow_body() -> Response {
    count("slow body");
    let text = "the request body was not sent in time";
    let close = (header::CONNECTION, HeaderValue::from_static("close"));
    answer(StatusCode::REQUEST_TIMEOUT, text, close)
}

/// The request names no host, several, or one that is not served here.
pub(super) fn host(status: StatusCode, text: &str) -> Response {
    count("host");
    let close = (header::CONNECTION, HeaderValue::from_static("close"));
    answer(status, text, close)
}

/// An error in the shape that the API's own gateway layers use.
fn answer(status: StatusCode, message: &str, extra: (HeaderName, HeaderValue)) -> Response {
    let body = serde_json::json!({ "code": status.as_u16(), "message": message });
    (status, [extra], axum::Json(body)).into_response()
}
