//! A connection of a replica's pool that carries a response, and the response on it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::response::Response;
use http::Version;
use hyper::body::{Body as _, Bytes, Frame, Incoming, SizeHint};

use super::concurrency::ConcurrencyPermit;
use super::connection::{self, Connection};
use super::headers;
use super::replay_body::ReplayBody;
use super::replica::RequestInFlight;
use crate::server::StreamMemory;

/// A connection of a replica's pool that carries a response.
pub(super) struct ConnectionLease {
    connection: Connection,
    pub(super) replica: RequestInFlight,
    request: ReplayBody,
}

impl ConnectionLease {
    pub(super) fn new(
        connection: Connection,
        replica: RequestInFlight,
        request: ReplayBody,
    ) -> Self {
        Self {
            connection,
            replica,
            request,
        }
    }

    /// Marks the connection as upgraded; it never returns to the pool.
    pub(super) fn become_tunnel(self) -> RequestInFlight {
        self.connection.become_tunnel();
        self.replica
    }

    /// Returns the connection to the pool, unless the replica responded before it had read the whole request.
    fn end(self) {
        if self.request.has_ended() {
            self.replica.pool.put(self.connection);
        }
    }
}

/// The response of a replica, whose body holds the connection.
pub(super) fn leased_response(
    response: http::Response<Incoming>,
    is_head: bool,
    lease: ConnectionLease,
    permit: ConcurrencyPermit,
) -> Response {
    let (mut parts, body) = response.into_parts();
    parts.version = Version::HTTP_11;
    headers::strip_hop_by_hop(&mut parts.headers);
    parts.extensions.insert(held_by(&body));
    let answer = LeasedBody {
        body,
        lease: Some(lease),
        is_head,
        _permit: permit,
    };
    Response::from_parts(parts, Body::new(answer))
}

/// Memory of a response that its client does not read.
fn held_by(body: &Incoming) -> StreamMemory {
    let length = body.size_hint().upper();
    let length = length.and_then(|length| usize::try_from(length).ok());
    let held = length.map_or(connection::HELD_BYTES, |length| {
        length.min(connection::HELD_BYTES)
    });
    StreamMemory(held)
}

/// A response body. Dropping it early closes the connection, so that the replica stops sending.
struct LeasedBody {
    body: Incoming,
    lease: Option<ConnectionLease>,
    is_head: bool,
    _permit: ConcurrencyPermit,
}

impl LeasedBody {
    fn end(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.end();
        }
    }
}

impl hyper::body::Body for LeasedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = &mut *self;
        let polled = match &mut this.lease {
            Some(lease) => lease.connection.poll_body(&mut this.body, cx),
            None => Pin::new(&mut this.body).poll_frame(cx),
        };
        let polled = ready!(polled);
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
            // Responses without a body (304, HEAD) keep the `Content-Length` of the replica.
            SizeHint::default()
        } else {
            self.body.size_hint()
        }
    }
}

impl Drop for LeasedBody {
    fn drop(&mut self) {
        if self.body.is_end_stream() {
            self.end();
        }
    }
}
