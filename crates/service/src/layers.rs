//! Middleware of every request: a request id, a span with an access log line, metrics.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt as _;
use metrics::Histogram;
use tracing::Instrument;
use uuid::Uuid;

use crate::metrics::{HTTP_REQUEST_DURATION, HTTP_REQUESTS_IN_FLIGHT};
use crate::server::{AdmittedRequest, RequestHandler};

/// Header that carries a request id between services.
pub const REQUEST_ID: &str = "x-request-id";

/// The method as a label or a field of the log: clients may send any text as a method, of the length of a request
/// head.
pub fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        Method::CONNECT => "CONNECT",
        Method::TRACE => "TRACE",
        _ => "OTHER",
    }
}

/// The id of the request being answered; an extension of every request.
#[derive(Debug, Clone, Copy)]
pub struct RequestId(pub Uuid);

/// Puts the layers around `router`, for the server called `name`.
pub fn apply(router: Router, name: &'static str) -> Router {
    crate::metrics::recorder();
    trace(router, name).layer(middleware::from_fn(move |request, next| {
        measure(name, request, next)
    }))
}

/// Only the durations, and an answer where `handle` panics: for a server of one route and short requests in great
/// numbers, of which a span would cost more than the answer.
pub fn count<F>(
    name: &'static str,
    handle: impl Fn(AdmittedRequest) -> F + Send + Sync + 'static,
) -> RequestHandler
where
    F: Future<Output = Response> + Send + 'static,
{
    crate::metrics::recorder();
    let durations = Arc::new(Durations::of(name));
    RequestHandler::new(move |admitted| {
        let method = method_label(admitted.request.method());
        let started = Instant::now();
        let durations = durations.clone();
        let response = AssertUnwindSafe(handle(admitted)).catch_unwind();
        async move {
            let response = response.await.unwrap_or_else(on_panic);
            let duration = durations.histogram(method, response.status());
            duration.record(started.elapsed().as_secs_f64());
            response
        }
    })
}

/// Only the request id and the span, and an answer where a handler panics: for servers that count by themselves.
pub fn trace(router: Router, name: &'static str) -> Router {
    router
        .layer(tower_http::catch_panic::CatchPanicLayer::custom(on_panic))
        .layer(middleware::from_fn(move |request, next| {
            span(name, request, next)
        }))
}

async fn measure(name: &'static str, request: Request, next: Next) -> Response {
    let (method, route) = (method_label(request.method()), route(&request));
    let started = Instant::now();
    let in_flight = metrics::gauge!(HTTP_REQUESTS_IN_FLIGHT, "server" => name);
    in_flight.increment(1.0);
    let response = next.run(request).await;
    in_flight.decrement(1.0);
    let code = response.status().as_u16();
    metrics::histogram!(
        HTTP_REQUEST_DURATION,
        "server" => name, "route" => route, "method" => method, "code" => code.to_string()
    )
    .record(started.elapsed().as_secs_f64());
    response
}

/// The durations of a server's requests, with handles that are looked up once.
struct Durations {
    server: &'static str,
    by_outcome: RwLock<HashMap<(&'static str, StatusCode), Histogram>>,
}

impl Durations {
    fn of(server: &'static str) -> Self {
        let by_outcome = RwLock::default();
        Self { server, by_outcome }
    }

    fn histogram(&self, method: &'static str, code: StatusCode) -> Histogram {
        let known = self.by_outcome.read();
        let known = known.unwrap_or_else(PoisonError::into_inner);
        if let Some(histogram) = known.get(&(method, code)) {
            return histogram.clone();
        }
        drop(known);
        let server = self.server;
        let histogram = metrics::histogram!(
            HTTP_REQUEST_DURATION,
            "server" => server, "route" => server, "method" => method, "code" => code.as_str().to_owned()
        );
        let known = self.by_outcome.write();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        known.insert((method, code), histogram.clone());
        histogram
    }
}

fn route(request: &Request) -> String {
    let route = request.extensions().get::<MatchedPath>();
    route.map_or_else(|| "unmatched".to_owned(), |path| path.as_str().to_owned())
}

async fn span(name: &'static str, mut request: Request, next: Next) -> Response {
    let id = request
        .headers()
        .get(REQUEST_ID)
        .and_then(|value| value.to_str().ok()?.parse().ok())
        .unwrap_or_else(Uuid::new_v4);
    if let Ok(value) = HeaderValue::from_str(&id.to_string()) {
        request.headers_mut().insert(REQUEST_ID, value);
    }
    request.extensions_mut().insert(RequestId(id));

    let method = method_label(request.method());
    let route = route(&request);
    let span = tracing::info_span!("request", server = name, method, route, request_id = %id);
    let started = Instant::now();
    let response = next.run(request).instrument(span.clone()).await;
    let code = response.status().as_u16();
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    span.in_scope(|| tracing::debug!(code, duration_ms, "answered"));
    response
}

#[expect(clippy::needless_pass_by_value, reason = "the layer's signature")]
fn on_panic(panic: Box<dyn std::any::Any + Send>) -> Response {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    tracing::error!(panic = text, "a request handler panicked");
    StatusCode::INTERNAL_SERVER_ERROR.into_response()
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use axum::body::Body;

    use super::*;
    use crate::server::ClientAddress;

    #[tokio::test]
    async fn a_function_that_panics_is_answered_for() {
        let handler = count("test", |admitted| async move {
            assert_ne!(admitted.request.uri().path(), "/panic");
            StatusCode::OK.into_response()
        });
        let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        for (path, expected) in [("/panic", 500), ("/", 200)] {
            let admitted = AdmittedRequest {
                peer,
                client: ClientAddress {
                    ip: peer.ip(),
                    is_forwarded: false,
                },
                request: Request::get(path).body(Body::empty()).unwrap(),
            };
            assert_eq!(handler.answer(admitted).await.status(), expected, "{path}");
        }
    }
}
