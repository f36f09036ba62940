//! Admission of requests before their handler: host, source, client address, requests in flight, body. Responses in
//! memory are counted until they are sent.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use hyper::body::{Body as _, Incoming};
use tower::Service;

use super::body_timeout::BodyLimits;
use super::clients::{ClientAddress, TrustedProxies};
use super::connections::{CountedRequest, RequestCounter};
use super::host_header::HostRule;
use super::quota::{ClientQuota, Permit};
use super::refusals;
use super::request_handler::{AdmittedRequest, RequestHandler};
use super::request_source::{RequestSource, SourceRule};
use super::waiting::{WaitingBytes, WaitingMemory};
use crate::access_log::{AccessLog, LoggedRequest};
use crate::observed_body::observed;
use crate::sendfile;

/// Admission rules of a listener.
#[derive(Debug)]
pub(super) struct AdmissionRules {
    pub(super) hosts: HostRule,
    pub(super) sources: SourceRule,
    pub(super) trusted: TrustedProxies,
    pub(super) requests: ClientQuota,
    pub(super) waiting: WaitingBytes,
    pub(super) body: BodyLimits,
    /// Whether responses go to plain sockets.
    pub(super) is_plain: bool,
    pub(super) access_log: Option<AccessLog>,
}

/// Makes the service of each connection of a listener.
///
/// Not a layer of the router: each of those costs every request some allocations.
#[derive(Clone)]
pub(super) struct MakeAdmitted {
    pub(super) handler: RequestHandler,
    pub(super) rules: Arc<AdmissionRules>,
}

/// The service of a connection: admits requests by the rules, and hands them to the handler.
#[derive(Clone)]
pub(super) struct Admitted {
    handler: RequestHandler,
    rules: Arc<AdmissionRules>,
    peer: SocketAddr,
}

impl Service<SocketAddr> for MakeAdmitted {
    type Response = Admitted;
    type Error = Infallible;
    type Future = Ready<Result<Admitted, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, peer: SocketAddr) -> Self::Future {
        ready(Ok(Admitted {
            handler: self.handler.clone(),
            rules: self.rules.clone(),
            peer,
        }))
    }
}

impl Service<http::Request<Incoming>> for Admitted {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Incoming>) -> Self::Future {
        let Self {
            handler,
            rules,
            peer,
        } = self.clone();
        Box::pin(async move {
            let mut request = request.map(Body::new);
            let log = rules.access_log.as_ref();
            let logged = LoggedRequest::begin(log, peer, &rules.trusted, &mut request);
            let response = rules.admit(peer, request, &handler).await;
            Ok(match logged {
                Some(logged) => logged.end_with(response),
                None => response,
            })
        })
    }
}

impl AdmissionRules {
    async fn admit(
        &self,
        peer: SocketAddr,
        mut request: Request,
        handler: &RequestHandler,
    ) -> Response {
        let host = match self.hosts.check(&request) {
            Ok(host) => host,
            Err(refusal) => return refusals::host(&refusal),
        };
        if SourceRule::concerns(&request) {
            let source = self.sources.source(request.headers(), host.as_ref());
            if source == RequestSource::ForeignPage {
                return refusals::foreign_page(request.headers());
            }
            request.extensions_mut().insert(source);
        }
        let client = ClientAddress::of(peer.ip(), request.headers(), &self.trusted);
        let Ok(permit) = self.requests.acquire(Some(client.ip.into())) else {
            return refusals::too_many_requests();
        };
        let waiting = self.waiting.of(client.ip.into());
        let is_safe = request.method().is_safe();
        let extensions = request.extensions_mut();
        extensions.insert(waiting.clone());
        if self.is_plain {
            sendfile::allow(extensions);
        }
        let counter = extensions.get::<RequestCounter>().cloned();
        if client.is_forwarded
            && let Some(counter) = &counter
        {
            counter.exempt();
        }
        let counted = counter.as_ref().map(RequestCounter::count);
        let (request, is_late) = self.body.bound(request);
        let admitted = AdmittedRequest {
            peer,
            client,
            request,
        };
        let response = handler.answer(admitted).await;
        if is_late.is_some_and(|is_late| is_late.load(Ordering::Relaxed)) {
            return refusals::slow_body();
        }
        if let Some(counter) = counter
            && response.status() == StatusCode::SWITCHING_PROTOCOLS
        {
            counter.upgrade();
        }
        let (response, compressor) = waiting.count(response, is_safe);
        let in_flight = InFlight {
            _permit: permit,
            _counted: counted,
            _compressor: compressor,
        };
        keep_in_flight(response, in_flight)
    }
}

/// Keeps the request in flight until the body of its response has ended.
fn keep_in_flight(response: Response, in_flight: InFlight) -> Response {
    if response.body().is_end_stream() {
        return response;
    }
    response.map(|body| {
        observed(body, Some(in_flight), |in_flight, frame| {
            if frame.is_none() {
                *in_flight = None;
            }
        })
    })
}

/// A request that counts for its client and for its connection.
struct InFlight {
    _permit: Permit,
    _counted: Option<CountedRequest>,
    _compressor: Option<WaitingMemory>,
}
