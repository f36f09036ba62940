//! Concurrency limits of an upstream.
//!
//! A request takes a permit when its body is buffered and its client has a turn, so that slow clients and those with many
//! requests hold few. Bodies that are too long for that take one of the upload permits, of which each client has a share;
//! uploads hold up no other request.

use std::net::IpAddr;

use http::request::Parts;
use http::{HeaderValue, header};

use super::headers::MAX_LINES;
use super::replay_body::{MAX_REPLAY_BYTES, ReplayBody};
use super::settings::ForwardSettings;
use super::turns::{ClientTurns, TURNS, Turn};
use crate::limits::{Bound, Limit, Share};
use crate::server::{ClientQuota, Permit};

/// One in so many permits is for uploads, and one in so many of these for one client.
const SHARE: usize = 4;

/// Concurrency limits of an upstream, in all and for uploads.
#[derive(Debug)]
pub(super) struct ConcurrencyLimits {
    all: ClientQuota,
    uploads: ClientQuota,
    turns: ClientTurns,
}

/// Permit of a request in flight.
#[derive(Debug)]
pub(super) struct ConcurrencyPermit {
    _all: Permit,
    _upload: Option<Permit>,
}

impl ConcurrencyLimits {
    /// At most `max` requests and tunnels in flight; 0: no limit.
    pub(super) fn new(max: usize) -> Self {
        let uploads = uploads(max);
        Self {
            all: ClientQuota::new(max, 0),
            uploads: ClientQuota::new(uploads, uploads_per_client(uploads)),
            turns: ClientTurns::default(),
        }
    }

    /// Acquires a permit, after the body of a request that is short, and its client's turn, which lasts until the response
    /// begins. Absent when no permit is left.
    pub(super) async fn admit(
        &self,
        client: IpAddr,
        head: &Parts,
        body: &ReplayBody,
    ) -> Option<(ConcurrencyPermit, Option<Turn>)> {
        let upload = if body.has_ended() {
            None
        } else if is_short(head) {
            body.read_ahead().await;
            None
        } else {
            Some(self.uploads.acquire(Some(client.into())).ok()?)
        };
        let turn = match upload {
            Some(_) => None,
            None => Some(self.turns.take(client).await),
        };
        let permit = ConcurrencyPermit {
            _all: self.all.acquire(None).ok()?,
            _upload: upload,
        };
        Some((permit, turn))
    }
}

fn uploads(max: usize) -> usize {
    max.div_ceil(SHARE)
}

fn uploads_per_client(uploads: usize) -> usize {
    uploads.div_ceil(SHARE)
}

/// Whether the body may be buffered. One of unknown length may be half of a conversation; one that waits for
/// `100 Continue` needs the replica's consent.
fn is_short(head: &Parts) -> bool {
    let length = head.headers.get(header::CONTENT_LENGTH);
    let length = length
        .map(HeaderValue::to_str)
        .and_then(|text| text.ok()?.parse().ok());
    !head.headers.contains_key(header::EXPECT)
        && length.is_some_and(|bytes: usize| bytes <= MAX_REPLAY_BYTES)
}

/// Limits of servers that forward.
pub fn limits(settings: &ForwardSettings) -> Vec<Limit> {
    let max = settings.max_forwarded_requests;
    let bound = |count: usize, unit| match max {
        0 => Bound::Unlimited,
        _ => Bound::Count(count as u64, unit),
    };
    let answer = "503 with Retry-After";
    let uploads = uploads(max);
    let of_client = Share::of(
        "client address",
        bound(uploads_per_client(uploads), "requests"),
        answer,
    )
    .set_by("MAX_FORWARDED_REQUESTS");
    let limit =
        |name, bound, per| Limit::fixed(name, bound, per, answer).set_by("MAX_FORWARDED_REQUESTS");
    vec![
        limit(
            "forwarded requests and tunnels",
            bound(max, "requests"),
            "upstream",
        )
        .unshared("MAX_REQUESTS_PER_CLIENT bounds the requests of a client to this server"),
        limit(
            "forwarded uploads (bodies above 64 KiB or of unknown length)",
            bound(uploads, "requests"),
            "upstream",
        )
        .shared(of_client),
        limit(
            "forwarded uploads of a client",
            bound(uploads_per_client(uploads), "requests"),
            "client address and upstream",
        ),
        Limit::fixed(
            "time until a replica accepts a connection",
            Bound::Time(settings.forward_connect_timeout),
            "attempt",
            "another replica, else 503 with Retry-After",
        )
        .set_by("FORWARD_CONNECT_TIMEOUT"),
        Limit::fixed(
            "time until a replica begins its answer",
            Bound::Time(settings.forward_response_timeout),
            "request",
            "504",
        )
        .set_by("FORWARD_RESPONSE_TIMEOUT"),
        Limit::fixed(
            "forwarded requests of a client whose responses have not begun",
            Bound::Count(TURNS as u64, "requests"),
            "client address and upstream",
            "waits",
        ),
        Limit::fixed(
            "header lines of a forwarded request",
            Bound::Count(MAX_LINES as u64, "lines"),
            "request",
            "431",
        ),
    ]
}
