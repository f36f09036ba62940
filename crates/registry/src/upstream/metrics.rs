//! How much upstreams spare and cost. Source: distribution's names.

use metrics::{Unit, counter, describe_counter};

const REQUESTS: &str = "registry_proxy_requests_total";
const HITS: &str = "registry_proxy_hits_total";
const MISSES: &str = "registry_proxy_misses_total";
const PULLED: &str = "registry_proxy_pulled_bytes_total";
const PUSHED: &str = "registry_proxy_pushed_bytes_total";

/// Kinds of content with counters of their own.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Traffic {
    Blob,
    Manifest,
}

impl Traffic {
    fn label(self) -> &'static str {
        match self {
            Self::Blob => "blob",
            Self::Manifest => "manifest",
        }
    }
}

/// Describes the metrics.
pub(super) fn describe() {
    describe_counter!(REQUESTS, "Requests for content of upstreams");
    describe_counter!(HITS, "Requests for content that was here");
    describe_counter!(MISSES, "Requests for content that was not here");
    describe_counter!(PULLED, Unit::Bytes, "Content that came from upstreams");
    describe_counter!(PUSHED, Unit::Bytes, "Content of upstreams for clients");
}

/// Counts a request for content of an upstream as a hit or a miss.
pub(super) fn asked(traffic: Traffic, was_here: bool) {
    counter!(REQUESTS, "type" => traffic.label()).increment(1);
    let result = if was_here { HITS } else { MISSES };
    counter!(result, "type" => traffic.label()).increment(1);
}

/// Units: bytes. They came from an upstream.
pub(super) fn pulled(traffic: Traffic, bytes: u64) {
    counter!(PULLED, "type" => traffic.label()).increment(bytes);
}

/// Units: bytes. They go to a client.
pub(crate) fn pushed(traffic: Traffic, bytes: u64) {
    counter!(PUSHED, "type" => traffic.label()).increment(bytes);
}
