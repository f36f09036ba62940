//! Admission of requests before the router: host, client address, requests in flight, body.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use super::body_timeout::BodyLimits;
use super::clients::{ClientAddress, IpNetworks};
use super::connections::{CountedRequest, RequestCounter};
use super::host_header::{HostRefusal, HostRule};
use super::quota::{ClientQuota, Permit};
use super::refusals;

/// Admission rules of a listener.
#[derive(Debug, Clone)]
pub(super) struct RequestAdmission(pub(super) Arc<AdmissionRules>);

#[derive(Debug)]
pub(super) struct AdmissionRules {
    pub(super) hosts: HostRule,
    pub(super) trusted: IpNetworks,
    pub(super) requests: ClientQuota,
    pub(super) body: BodyLimits,
}

/// Middleware that admits requests by the rules.
pub(super) async fn admit(
    State(RequestAdmission(rules)): State<RequestAdmission>,
    mut request: Request,
    next: Next,
) -> Response {
    if let Err(HostRefusal { status, text }) = rules.hosts.check(&request) {
        return refusals::host(status, text);
    }
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let peer = peer.map_or(IpAddr::from(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip());
    let client = ClientAddress::of(peer, request.headers(), &rules.trusted);
    request.extensions_mut().insert(client);
    let Ok(permit) = rules.requests.acquire(Some(client.ip.into())) else {
        return refusals::too_many_requests();
    };
    let counter = request.extensions().get::<RequestCounter>().cloned();
    let counted = counter.as_ref().map(RequestCounter::count);
    let (request, is_late) = rules.body.bound(request);
    let response = next.run(request).await;
    if is_late.is_some_and(|is_late| is_late.load(Ordering::Relaxed)) {
        return refusals::slow_body();
    }
    if let Some(counter) = counter
        && response.status() == StatusCode::SWITCHING_PROTOCOLS
    {
        counter.upgrade();
    }
    let in_flight = InFlight {
        _permit: permit,
        _counted: counted,
    };
    keep_in_flight(response, in_flight)
}

/// Keeps the request in flight until the body of its response has ended.
fn keep_in_flight(response: Response, in_flight: InFlight) -> Response {
    if response.body().is_end_stream() {
        return response;
    }
    let in_flight = Some(in_flight);
    response.map(|body| Body::new(InFlightBody { body, in_flight }))
}

/// A request that counts for its client and for its connection.
struct InFlight {
    _permit: Permit,
    _counted: Option<CountedRequest>,
}

struct InFlightBody {
    body: Body,
    in_flight: Option<InFlight>,
}

impl HttpBody for InFlightBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if frame.is_none() {
            self.in_flight = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
