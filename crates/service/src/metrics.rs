//! Metrics in the Prometheus text format.

use std::sync::OnceLock;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// Seconds a request took, by route, method and code.
pub const HTTP_REQUEST_DURATION: &str = "atoll_http_request_duration_seconds";
/// Requests being answered.
pub const HTTP_REQUESTS_IN_FLIGHT: &str = "atoll_http_requests_in_flight";

/// Units: seconds.
const DURATION_BUCKETS: &[f64] = &[0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0, 600.0];

/// The process's recorder; installed at the first call.
pub fn recorder() -> &'static PrometheusHandle {
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    HANDLE.get_or_init(|| {
        // Every histogram of the workspace is of this kind; without buckets it would be a summary.
        let duration = Matcher::Suffix("_duration_seconds".to_owned());
        let builder = PrometheusBuilder::new()
            .set_buckets_for_metric(duration, DURATION_BUCKETS)
            .expect("the list of buckets is not empty");
        let recorder = builder.build_recorder();
        let handle = recorder.handle();
        if ::metrics::set_global_recorder(recorder).is_err() {
            tracing::warn!("another metrics recorder is installed: /metrics will be empty");
        }
        ::metrics::describe_histogram!(
            HTTP_REQUEST_DURATION,
            ::metrics::Unit::Seconds,
            "Time to answer a request"
        );
        ::metrics::describe_gauge!(HTTP_REQUESTS_IN_FLIGHT, "Requests being answered");
        handle
    })
}
