//! Metrics in the Prometheus text format.

mod bounded;

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use bytes::Bytes;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::sync::Mutex;
use tokio::task::{JoinError, spawn_blocking};

use bounded::Bounded;

/// Seconds a request took, by route, method and code.
pub const HTTP_REQUEST_DURATION: &str = "atoll_http_request_duration_seconds";
/// Requests being answered.
pub const HTTP_REQUESTS_IN_FLIGHT: &str = "atoll_http_requests_in_flight";

/// Units: series, of the process. Labels come from closed lists and from settings; this is for a list that is not.
pub(crate) const MAX_SERIES: usize = 10_000;
/// Units: seconds.
const DURATION_BUCKETS: &[f64] = &[0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0, 600.0];
/// Units: bytes.
const SIZE_BUCKETS: &[f64] = &[
    1024.0,
    16384.0,
    262_144.0,
    4_194_304.0,
    67_108_864.0,
    1_073_741_824.0,
    17_179_869_184.0,
];
/// How often single values are put into their buckets: until then each takes eight bytes.
const UPKEEP: Duration = Duration::from_secs(1);

/// The process's recorder; installed at the first call.
pub fn recorder() -> &'static PrometheusHandle {
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    HANDLE.get_or_init(|| {
        // Every histogram of the workspace is of these kinds; without buckets it would be a summary.
        let duration = Matcher::Suffix("_duration_seconds".to_owned());
        let size = Matcher::Suffix("_size_bytes".to_owned());
        let builder = PrometheusBuilder::new()
            .set_buckets_for_metric(duration, DURATION_BUCKETS)
            .and_then(|builder| builder.set_buckets_for_metric(size, SIZE_BUCKETS))
            .expect("the lists of buckets are not empty");
        let recorder = builder.build_recorder();
        keep_up(recorder.handle());
        let handle = recorder.handle();
        let recorder = Bounded::new(recorder, MAX_SERIES);
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

/// A rendering, for the requests that were waiting when it began.
struct Rendered {
    began: Instant,
    text: Bytes,
}

/// All metrics as text. One rendering at a time, off the threads that answer requests; requests that arrive meanwhile
/// share the next one (single-flight).
///
/// Errors: the rendering panicked, or the runtime ends.
pub async fn render() -> Result<Bytes, JoinError> {
    static LAST: Mutex<Option<Rendered>> = Mutex::const_new(None);
    let asked = Instant::now();
    let mut last = LAST.lock().await;
    if let Some(rendered) = last.as_ref().filter(|rendered| rendered.began >= asked) {
        return Ok(rendered.text.clone());
    }
    // The old text goes before the new one takes its memory.
    *last = None;
    let began = Instant::now();
    let text = Bytes::from(spawn_blocking(|| recorder().render()).await?);
    let rendered = Rendered { began, text };
    Ok(last.insert(rendered).text.clone())
}

/// Where nobody asks for the metrics, single values would gather for ever.
fn keep_up(handle: PrometheusHandle) {
    let work = move || loop {
        std::thread::sleep(UPKEEP);
        handle.run_upkeep();
    };
    let thread = std::thread::Builder::new().name("metrics".to_owned());
    if let Err(error) = thread.spawn(work) {
        tracing::warn!(%error, "metrics take more and more memory until somebody asks for them");
    }
}
