//! Slots of an upstream: how many requests it works on at a time.
//!
//! A request takes a slot when its body is there, so that clients that dribble keep none. Bodies that are too long to
//! be read ahead take one of the slots for uploads, of which each client gets its part: all other requests pass.

use std::net::IpAddr;

use http::request::Parts;
use http::{HeaderValue, header};

use super::body::{REPEATABLE_BYTES, Source};
use super::inner::Forward;
use crate::limits::{Bound, Limit};
use crate::server::{ClientQuota, Permit};

/// One in so many slots is for uploads, and one in so many of these for one client.
const SHARE: usize = 4;

/// The slots of an upstream.
#[derive(Debug)]
pub(super) struct Slots {
    all: ClientQuota,
    uploads: ClientQuota,
}

/// A request that the upstream works on.
#[derive(Debug)]
pub(super) struct Slot {
    _all: Permit,
    _upload: Option<Permit>,
}

impl Slots {
    /// `max` requests and tunnels at a time; 0: no limit.
    pub(super) fn new(max: usize) -> Self {
        let uploads = uploads(max);
        Self {
            all: ClientQuota::new(max, 0),
            uploads: ClientQuota::new(uploads, uploads_per_client(uploads)),
        }
    }
}

fn uploads(max: usize) -> usize {
    max.div_ceil(SHARE)
}

fn uploads_per_client(uploads: usize) -> usize {
    uploads.div_ceil(SHARE)
}

impl Forward {
    /// A slot for a request, after its body where that is short. Nothing when there are none left.
    pub(super) async fn admit(&self, client: IpAddr, head: &Parts, body: &Source) -> Option<Slot> {
        let slots = &self.inner.slots;
        let upload = if body.has_ended() {
            None
        } else if is_short(head) {
            body.read_ahead().await;
            None
        } else {
            Some(slots.uploads.acquire(Some(client.into())).ok()?)
        };
        let all = slots.all.acquire(None).ok()?;
        Some(Slot {
            _all: all,
            _upload: upload,
        })
    }
}

/// Whether the body may be read ahead. One of unknown length may be half of a conversation; one that waits to be asked
/// for is the replica's to ask for.
fn is_short(head: &Parts) -> bool {
    let length = head.headers.get(header::CONTENT_LENGTH);
    let length = length
        .map(HeaderValue::to_str)
        .and_then(|text| text.ok()?.parse().ok());
    !head.headers.contains_key(header::EXPECT)
        && length.is_some_and(|bytes: usize| bytes <= REPEATABLE_BYTES)
}

/// The limits of servers that forward, with `max` slots per upstream.
pub fn limits(max: usize) -> Vec<Limit> {
    let bound = |count: usize, unit| match max {
        0 => Bound::Unlimited,
        _ => Bound::Count(count as u64, unit),
    };
    let answer = "503 with Retry-After";
    let uploads = uploads(max);
    let limit =
        |name, bound, per| Limit::fixed(name, bound, per, answer).set_by("MAX_FORWARDED_REQUESTS");
    vec![
        limit(
            "forwarded requests and tunnels",
            bound(max, "requests"),
            "upstream",
        ),
        limit(
            "forwarded uploads (bodies above 64 KiB or of unknown length)",
            bound(uploads, "requests"),
            "upstream",
        ),
        limit(
            "forwarded uploads of a client",
            bound(uploads_per_client(uploads), "requests"),
            "client address and upstream",
        ),
    ]
}
