//! Responses to clients beyond a limit, and their counter.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::response::{AppendHeaders, IntoResponse as _, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use super::host_header::HostRefusal;
use super::quota::Exceeded;
use crate::state_log::StateLog;

/// Connections and requests that were refused or cut off, by reason.
const REFUSED: &str = "atoll_http_refused_total";
/// `Retry-After` of a client with too many requests. Units: seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");
/// Ends the connection: the rest of the body would be read as the next request.
const CLOSE: (HeaderName, HeaderValue) = (header::CONNECTION, HeaderValue::from_static("close"));
/// Interval of log lines about one refused host or origin.
const LOG_INTERVAL: Duration = Duration::from_mins(1);
/// Longest origin in texts. Units: characters.
const SHOWN_ORIGIN: usize = 100;

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
    answer(StatusCode::TOO_MANY_REQUESTS, text, Some(retry))
}

/// 429 or 503: too many bytes of responses wait for the client, or for all. `is_done`: the request has changed something,
/// and a retry would change it twice.
pub(super) fn too_many_waiting_bytes(exceeded: Exceeded, is_done: bool) -> Response {
    let (reason, status, whose, setting) = match exceeded {
        Exceeded::Client => (
            "waiting bytes of a client",
            StatusCode::TOO_MANY_REQUESTS,
            "this client address",
            "MAX_WAITING_BYTES_PER_CLIENT",
        ),
        Exceeded::Total => (
            "waiting bytes",
            StatusCode::SERVICE_UNAVAILABLE,
            "all clients",
            "MAX_WAITING_BYTES",
        ),
    };
    count(reason);
    let advice = if is_done {
        "the request was carried out, only its response is missing: read the result with GET"
    } else {
        "read them, then retry"
    };
    let text = format!(
        "the responses that {whose} did not read yet are at their limit ({setting}): {advice}"
    );
    let retry = (!is_done).then_some((header::RETRY_AFTER, RETRY_AFTER));
    answer(status, &text, retry)
}

/// 408: a request body came too slowly. Closes the connection: its rest would be read as the next request.
pub(super) fn slow_body() -> Response {
    count("slow body");
    let text = "the request body was not sent before the timeout";
    answer(StatusCode::REQUEST_TIMEOUT, text, Some(CLOSE))
}

/// Refuses a request without a host, with several, or with one that is not served here.
pub(super) fn host(refusal: &HostRefusal) -> Response {
    count("host");
    if let HostRefusal::Foreign(name) = refusal
        && let Some(suppressed) = admit_line(name)
    {
        let setting = "ALLOWED_HOSTS";
        tracing::warn!(
            host = name,
            setting,
            suppressed,
            "request for a host that is not served refused"
        );
    }
    answer(refusal.status(), &refusal.text(), Some(CLOSE))
}

/// 403: a page of another origin sent a request that may change something.
pub(super) fn foreign_page(headers: &HeaderMap) -> Response {
    count("foreign page");
    let origin = headers.get(header::ORIGIN);
    let origin = origin.map_or(Cow::Borrowed("without an origin"), |origin| {
        String::from_utf8_lossy(origin.as_bytes())
    });
    let origin: String = origin.chars().take(SHOWN_ORIGIN).collect();
    if let Some(suppressed) = admit_line(&origin) {
        let setting = "ALLOWED_ORIGINS";
        tracing::warn!(
            origin,
            setting,
            suppressed,
            "change requested by a foreign page refused"
        );
    }
    let text = format!(
        "a web page of another origin ({origin}) sent this request, and only pages of this server may: if the page is \
         yours, add its origin to the setting ALLOWED_ORIGINS; a reverse proxy in between has to pass on the Host header"
    );
    answer(StatusCode::FORBIDDEN, &text, Some(CLOSE))
}

/// Whether a refusal of `subject` is logged: the sender chooses how many there are.
fn admit_line(subject: &str) -> Option<u64> {
    static LINES: Mutex<StateLog> = Mutex::new(StateLog::new(LOG_INTERVAL));
    let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    lines.admit(subject, Instant::now())
}

/// An error body in the shape of the API's gateway layers.
fn answer(status: StatusCode, message: &str, extra: Option<(HeaderName, HeaderValue)>) -> Response {
    let body = serde_json::json!({ "code": status.as_u16(), "message": message });
    (status, AppendHeaders(extra), axum::Json(body)).into_response()
}
