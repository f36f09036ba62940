//! Metrics of each upstream.

use metrics::{Counter, Gauge, Unit};

use super::upstream::Upstream;

/// Requests that were to be forwarded.
const REQUESTS: &str = "atoll_forward_requests_total";
/// Requests that no replica answered.
const FAILURES: &str = "atoll_forward_failures_total";
/// Requests that were sent to a second replica.
const RETRIES: &str = "atoll_forward_retries_total";
/// Replicas that the name resolves to.
const REPLICAS: &str = "atoll_forward_replicas";
/// Replicas whose health check passes.
const READY_REPLICAS: &str = "atoll_forward_ready_replicas";
/// Ejections of replicas.
const EJECTIONS: &str = "atoll_forward_ejections_total";
/// Replicas that are ejected now.
const EJECTED_REPLICAS: &str = "atoll_forward_ejected_replicas";

/// The series of one upstream.
pub(super) struct Metrics {
    pub(super) requests: Counter,
    pub(super) failures: Counter,
    pub(super) retries: Counter,
    pub(super) replicas: Gauge,
    pub(super) ready: Gauge,
    pub(super) ejections: Counter,
    pub(super) ejected: Gauge,
}

impl Metrics {
    pub(super) fn of(upstream: &Upstream) -> Self {
        crate::metrics::recorder();
        metrics::describe_counter!(REQUESTS, Unit::Count, "Requests that were to be forwarded");
        metrics::describe_counter!(FAILURES, Unit::Count, "Requests that no replica answered");
        metrics::describe_counter!(RETRIES, Unit::Count, "Requests sent to a second replica");
        metrics::describe_gauge!(REPLICAS, "Replicas that the name resolves to");
        metrics::describe_gauge!(READY_REPLICAS, "Replicas whose health check passes");
        metrics::describe_counter!(
            EJECTIONS,
            Unit::Count,
            "Ejections of replicas that fail requests while their health check passes"
        );
        metrics::describe_gauge!(EJECTED_REPLICAS, "Replicas that are ejected");
        let name = upstream.authority().to_owned();
        Self {
            requests: metrics::counter!(REQUESTS, "upstream" => name.clone()),
            failures: metrics::counter!(FAILURES, "upstream" => name.clone()),
            retries: metrics::counter!(RETRIES, "upstream" => name.clone()),
            replicas: metrics::gauge!(REPLICAS, "upstream" => name.clone()),
            ready: metrics::gauge!(READY_REPLICAS, "upstream" => name.clone()),
            ejections: metrics::counter!(EJECTIONS, "upstream" => name.clone()),
            ejected: metrics::gauge!(EJECTED_REPLICAS, "upstream" => name),
        }
    }
}
