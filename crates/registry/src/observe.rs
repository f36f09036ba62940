//! Metrics of requests, and the access log.
//!
//! Counted when the answer has been sent, or given up. Everything that is touched with each request is looked up
//! once, at the start.

mod access_log;
mod adoption;
mod handler;
mod metrics;
mod storage;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, Version, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use service::observed_body::{data_length, observed};

use self::metrics::RequestMetrics;
use access_log::{AccessLog, Line};
use handler::Handler;

use crate::settings::Settings;

pub(crate) use self::metrics::{auth_failed, collected, count_logins, upload};
pub(crate) use adoption::watch as watch_adoption;
pub(crate) use storage::{StorageCount, Totals, watch as watch_storage, watch_room};

/// Source: nginx. The client went away before there was an answer.
const GONE: u16 = 499;

/// Sees every request of one registry.
#[derive(Debug, Clone)]
pub(crate) struct Observer(Arc<ObserverInner>);

#[derive(Debug)]
struct ObserverInner {
    numbers: RequestMetrics,
    log: Option<AccessLog>,
    prefix: String,
}

/// Put into an answer: on whose behalf it was asked for.
#[derive(Debug, Clone)]
pub(crate) struct UserName(pub(crate) Arc<str>);

impl Observer {
    /// Errors: the thread that writes the access log cannot be started.
    pub(crate) fn new(settings: &Settings) -> std::io::Result<Self> {
        let is_silent = settings.registry_log_accesslog_disabled;
        Ok(Self(Arc::new(ObserverInner {
            numbers: RequestMetrics::new(),
            log: (!is_silent).then(AccessLog::open).transpose()?,
            prefix: settings.registry_http_prefix.0.clone(),
        })))
    }

    /// Puts the observer around `router`.
    pub(crate) fn around(self, router: Router) -> Router {
        router.layer(middleware::from_fn_with_state(self, observe))
    }
}

async fn observe(State(observer): State<Observer>, request: Request, next: Next) -> Response {
    let mut flight = Flight::start(observer, &request);
    let has_body = matches!(
        *request.method(),
        Method::PUT | Method::PATCH | Method::POST
    );
    let request = if has_body {
        let bytes = Arc::clone(&flight.received);
        request.map(|body| {
            observed(body, bytes, |bytes, frame| {
                bytes.fetch_add(data_length(frame), Ordering::Relaxed);
            })
        })
    } else {
        request
    };
    let response = next.run(request).await;
    flight.status = response.status().as_u16();
    flight.user = response
        .extensions()
        .get()
        .map(|UserName(name)| name.clone());
    // Ends the in-flight request when it is dropped.
    response.map(|body| {
        observed(body, flight, |flight, frame| {
            flight.sent += data_length(frame);
        })
    })
}

/// A request from its head to the end of its answer.
struct Flight {
    observer: Observer,
    handler: Handler,
    started: Instant,
    address: Option<IpAddr>,
    method: Method,
    uri: Uri,
    version: Version,
    referer: Option<HeaderValue>,
    agent: Option<HeaderValue>,
    user: Option<Arc<str>>,
    status: u16,
    /// Units: bytes. Of the request's body.
    received: Arc<AtomicU64>,
    /// Units: bytes. Of the answer's body.
    sent: u64,
}

impl Flight {
    fn start(observer: Observer, request: &Request) -> Self {
        let path = request.uri().path();
        let handler = Handler::of(path.strip_prefix(&*observer.0.prefix).unwrap_or(path));
        observer.0.numbers.begin(handler);
        let text = |name: HeaderName| text(request.headers(), &name);
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
        Self {
            handler,
            started: Instant::now(),
            address: peer.map(|peer| peer.0.ip()),
            method: request.method().clone(),
            uri: request.uri().clone(),
            version: request.version(),
            referer: text(header::REFERER),
            agent: text(header::USER_AGENT),
            user: None,
            status: GONE,
            received: Arc::default(),
            sent: 0,
            observer,
        }
    }
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<HeaderValue> {
    headers.get(name).cloned()
}

impl Drop for Flight {
    fn drop(&mut self) {
        let ObserverInner { numbers, log, .. } = &*self.observer.0;
        numbers.end(
            self.handler,
            &metrics::Answer {
                method: &self.method,
                status: self.status,
                elapsed: self.started.elapsed(),
                received: self.received.load(Ordering::Relaxed),
                sent: self.sent,
            },
        );
        if let Some(log) = log {
            log.write(&Line {
                address: self.address,
                user: self.user.as_deref(),
                method: &self.method,
                uri: &self.uri,
                version: self.version,
                status: self.status,
                bytes: self.sent,
                referer: self.referer.as_ref().map(HeaderValue::as_bytes),
                agent: self.agent.as_ref().map(HeaderValue::as_bytes),
            });
        }
    }
}
