//! Responses to clients beyond a limit, and their counter.

use axum::response::{IntoResponse as _, Response};
use http::{HeaderName, HeaderValue, StatusCode, header};

use super::quota::Exceeded;

/// Connections and requests that were refused or cut off, by reason.
const REFUSED: &str = "atoll_http_refused_total";
/// `Retry-After` of a client with too many requests. Units: seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

fn count(reason: &'static str) {
    metrics::counter!(REFUSED, "reason" => reason).increment(1);
}

/// Describes the counter.
pub(super) fn describe() {
    metrics::describe_counter!(REFUSED, "Connections and requests refused or cut off");
}

/// Counts a connection beyond a limit, which is closed without a response.
pub(super) fn connection(exceeded: Exceeded) {
    count(match exceeded {
        Exceeded::Total => "connections",
        Exceeded::Client => "connections of a client",
    });
}

/// Counts a connection that is evicted for a client with fewer.
pub(super) fn evicted() {
    count("evicted");
}

/// Counts the connection of a stalled client, which is closed.
pub(super) fn stalled() {
    count("stalled");
}

/// 429: too many requests of a client in flight.
pub(super) fn too_many_requests() -> Response {
    count("requests of a client");
    let text = "too many requests of this client address are in flight: retry when some have ended";
    let retry = (header::RETRY_AFTER, RETRY_AFTER);
    answer(StatusCode::TOO_MANY_REQUESTS, text, retry)
}

/// 408: a request body came too slowly. Closes the connection: its rest would be read as the next request.
pub(super) fn slow_body() -> Response {
    count("slow body");
    let text = "the request body was not sent before the timeout";
    let close = (header::CONNECTION, HeaderValue::from_static("close"));
    answer(StatusCode::REQUEST_TIMEOUT, text, close)
}

/// Refuses a request without a host, with several, or with one that is not served here.
pub(super) fn host(status: StatusCode, text: &str) -> Response {
    count("host");
    let close = (header::CONNECTION, HeaderValue::from_static("close"));
    answer(status, text, close)
}

/// An error body in the shape of the API's gateway layers.
fn answer(status: StatusCode, message: &str, extra: (HeaderName, HeaderValue)) -> Response {
    let body = serde_json::json!({ "code": status.as_u16(), "message": message });
    (status, [extra], axum::Json(body)).into_response()
}
