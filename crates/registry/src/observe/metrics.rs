//! RequestMetrics for Prometheus, under distribution's names where it has them.

use std::sync::OnceLock;
use std::time::Duration;

use axum::http::Method;
use metrics::{
    Counter, Gauge, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram,
    gauge, histogram,
};

use super::handler::Handler;

const IN_FLIGHT: &str = "registry_http_in_flight_requests";
const REQUESTS: &str = "registry_http_requests_total";
const DURATION: &str = "registry_http_request_duration_seconds";
const REQUEST_SIZE: &str = "registry_http_request_size_bytes";
const RESPONSE_SIZE: &str = "registry_http_response_size_bytes";
const UPLOADS: &str = "registry_storage_uploads_total";
const COLLECTIONS: &str = "registry_gc_runs_total";
const COLLECTED: &str = "registry_gc_deleted_blobs_total";
const COLLECTED_BYTES: &str = "registry_gc_deleted_bytes_total";
const COLLECTED_AT: &str = "registry_gc_last_success_timestamp_seconds";
const AUTH_FAILURES: &str = "registry_auth_failures_total";
const LOGINS: &str = "registry_auth_cache_requests_total";
const LOGIN_HITS: &str = "registry_auth_cache_hits_total";

/// Methods with a label of their own; the last is for all others.
const METHODS: [&str; 9] = [
    "get", "head", "put", "post", "patch", "delete", "options", "connect", "other",
];
/// Statuses with a label of their own; the last is for all others.
const CODES: [(u16, &str); 26] = [
    (200, "200"),
    (201, "201"),
    (202, "202"),
    (204, "204"),
    (206, "206"),
    (301, "301"),
    (303, "303"),
    (304, "304"),
    (307, "307"),
    (400, "400"),
    (401, "401"),
    (403, "403"),
    (404, "404"),
    (405, "405"),
    (408, "408"),
    (409, "409"),
    (413, "413"),
    (414, "414"),
    (416, "416"),
    (429, "429"),
    (499, "499"),
    (500, "500"),
    (502, "502"),
    (503, "503"),
    (507, "507"),
    (0, "other"),
];

/// Every number that a request changes.
#[derive(Debug)]
pub(super) struct RequestMetrics(Vec<OfHandler>);

#[derive(Debug)]
struct OfHandler {
    in_flight: Gauge,
    request_size: Histogram,
    response_size: Histogram,
    methods: [OfMethod; METHODS.len()],
}

/// Registered with the first request of its kind, so that the exposition has no series of zeros.
#[derive(Debug, Default)]
struct OfMethod {
    duration: OnceLock<Histogram>,
    requests: [OnceLock<Counter>; CODES.len()],
}

/// How a request ended.
pub(super) struct Answer<'a> {
    pub(super) method: &'a Method,
    pub(super) status: u16,
    pub(super) elapsed: Duration,
    /// Units: bytes.
    pub(super) received: u64,
    /// Units: bytes.
    pub(super) sent: u64,
}

impl RequestMetrics {
    pub(super) fn new() -> Self {
        service::metrics::recorder();
        describe();
        let handlers = Handler::ALL.into_iter().map(|handler| OfHandler {
            in_flight: gauge!(IN_FLIGHT, "handler" => handler.name()),
            request_size: histogram!(REQUEST_SIZE, "handler" => handler.name()),
            response_size: histogram!(RESPONSE_SIZE, "handler" => handler.name()),
            methods: Default::default(),
        });
        Self(handlers.collect())
    }

    pub(super) fn begin(&self, handler: Handler) {
        self.0[handler as usize].in_flight.increment(1.0);
    }

    pub(super) fn end(&self, handler: Handler, answer: &Answer<'_>) {
        let series = &self.0[handler as usize];
        series.in_flight.decrement(1.0);
        series.request_size.record(as_number(answer.received));
        series.response_size.record(as_number(answer.sent));
        let (method, code) = (method(answer.method), code(answer.status));
        let (handler, method_name) = (handler.name(), METHODS[method]);
        let series = &series.methods[method];
        let duration = series
            .duration
            .get_or_init(|| histogram!(DURATION, "handler" => handler, "method" => method_name));
        duration.record(answer.elapsed.as_secs_f64());
        let requests = series.requests[code].get_or_init(|| {
            counter!(REQUESTS, "handler" => handler, "method" => method_name, "code" => CODES[code].1)
        });
        requests.increment(1);
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "sums of bytes need no more than 53 bits"
)]
fn as_number(bytes: u64) -> f64 {
    bytes as f64
}

fn method(method: &Method) -> usize {
    match *method {
        Method::GET => 0,
        Method::HEAD => 1,
        Method::PUT => 2,
        Method::POST => 3,
        Method::PATCH => 4,
        Method::DELETE => 5,
        Method::OPTIONS => 6,
        Method::CONNECT => 7,
        _ => METHODS.len() - 1,
    }
}

fn code(status: u16) -> usize {
    let known = CODES.iter().position(|(code, _)| *code == status);
    known.unwrap_or(CODES.len() - 1)
}

/// An upload was `started`, `finished`, `cancelled` or `abandoned`.
pub(crate) fn upload(outcome: &'static str, count: u64) {
    counter!(UPLOADS, "outcome" => outcome).increment(count);
}

/// Records a collection; None when it failed.
pub(crate) fn collected(gone: Option<(u64, u64)>) {
    let outcome = if gone.is_some() { "done" } else { "failed" };
    counter!(COLLECTIONS, "outcome" => outcome).increment(1);
    if gone.is_some() {
        gauge!(COLLECTED_AT).set(now_s());
    }
    let (blobs, bytes) = gone.unwrap_or_default();
    counter!(COLLECTED).increment(blobs);
    counter!(COLLECTED_BYTES).increment(bytes);
}

/// Counts a refused login: `wrong` credentials, or too many before.
pub(crate) fn auth_failed(reason: &'static str) {
    counter!(AUTH_FAILURES, "reason" => reason).increment(1);
}

/// Counters of passwords that were shown, and of those that were remembered.
pub(crate) fn count_logins() -> (Counter, Counter) {
    (counter!(LOGINS), counter!(LOGIN_HITS))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds since 1970 fit into 53 bits"
)]
fn now_s() -> f64 {
    service::clock::now().timestamp_millis() as f64 / 1000.0
}

fn describe() {
    describe_gauge!(IN_FLIGHT, "The in-flight HTTP requests");
    describe_counter!(REQUESTS, "Total number of HTTP requests made");
    describe_histogram!(DURATION, Unit::Seconds, "The HTTP request latencies");
    describe_histogram!(REQUEST_SIZE, Unit::Bytes, "The HTTP request sizes");
    describe_histogram!(RESPONSE_SIZE, Unit::Bytes, "The HTTP response sizes");
    describe_counter!(UPLOADS, "Uploads by outcome");
    describe_counter!(COLLECTIONS, "How often garbage was collected");
    describe_gauge!(
        COLLECTED_AT,
        Unit::Seconds,
        "When garbage was last collected, since 1970"
    );
    describe_counter!(COLLECTED, "Blobs that were garbage");
    describe_counter!(COLLECTED_BYTES, Unit::Bytes, "Of blobs that were garbage");
    describe_counter!(AUTH_FAILURES, "Requests whose credentials were refused");
    describe_counter!(LOGINS, "Passwords that were shown");
    describe_counter!(LOGIN_HITS, "Passwords that were shown and are remembered");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_bounded() {
        for (name, expected) in [("GET", "get"), ("DELETE", "delete"), ("BREW", "other")] {
            let named = Method::from_bytes(name.as_bytes()).unwrap();
            assert_eq!(METHODS[method(&named)], expected);
        }
        for (status, expected) in [(200, "200"), (499, "499"), (507, "507"), (418, "other")] {
            assert_eq!(CODES[code(status)].1, expected);
        }
        for (code, text) in &CODES[..CODES.len() - 1] {
            assert_eq!(code.to_string(), *text);
        }
    }
}
