//! Metrics in the Prometheus text format.

mod registry;
mod series;
mod text;

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Mutex;
use tokio::task::{JoinError, spawn_blocking};

pub use registry::MetricsRecorder;
pub use series::DeclaredMetric;

/// Seconds a request took, by route, method and code.
pub const HTTP_REQUEST_DURATION: &str = "atoll_http_request_duration_seconds";
/// Requests being answered.
pub const HTTP_REQUESTS_IN_FLIGHT: &str = "atoll_http_requests_in_flight";

/// Units: series, of the process. Labels come from closed lists and from settings; this is for a list that is not.
pub(crate) const MAX_SERIES: usize = 10_000;
/// Without a change for this long, a counter or a histogram is dropped.
const IDLE_SERIES: Duration = Duration::from_hours(1);

/// The metrics that a program declared.
static DECLARED: OnceLock<&'static [DeclaredMetric]> = OnceLock::new();

/// Declares metrics with buckets of their own, or that last. Once in a process, before the first call of [`recorder`];
/// later calls have no effect.
pub fn declare(metrics: &'static [DeclaredMetric]) {
    DECLARED.get_or_init(|| metrics);
}

/// The process's recorder; installed at the first call.
pub fn recorder() -> &'static MetricsRecorder {
    static RECORDER: OnceLock<MetricsRecorder> = OnceLock::new();
    RECORDER.get_or_init(|| {
        let declared = DECLARED.get_or_init(|| &[]);
        let recorder = MetricsRecorder::new(MAX_SERIES, IDLE_SERIES, declared);
        if ::metrics::set_global_recorder(recorder.clone()).is_err() {
            tracing::warn!("another metrics recorder is installed: /metrics will be empty");
        }
        ::metrics::describe_histogram!(
            HTTP_REQUEST_DURATION,
            ::metrics::Unit::Seconds,
            "Time to answer a request"
        );
        ::metrics::describe_gauge!(HTTP_REQUESTS_IN_FLIGHT, "Requests being answered");
        recorder
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
