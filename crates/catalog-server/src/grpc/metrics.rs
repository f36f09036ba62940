//! Metrics of calls: count, duration, in flight.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use metrics::{Gauge, Histogram, Unit};
use tonic::Code;

/// Duration of a call up to the last byte of its reply, by method and code. Units: seconds.
const DURATION: &str = "atoll_grpc_request_duration_seconds";
/// Calls in flight, by method.
const IN_FLIGHT: &str = "atoll_grpc_requests_in_flight";
/// Number of gRPC codes.
const CODES: usize = 17;

/// Metrics of one method; histograms are registered on first use.
#[derive(Debug)]
pub(super) struct Meter {
    method: &'static str,
    in_flight: Gauge,
    durations: [OnceLock<Histogram>; CODES],
}

/// A call in flight. Dropped before its end, it counts as cancelled by the client.
#[derive(Debug)]
pub(super) struct CallInFlight {
    meter: Arc<Meter>,
    started: Instant,
    code: Code,
}

impl Meter {
    pub(super) fn new(method: &'static str) -> Arc<Self> {
        static DESCRIBED: AtomicBool = AtomicBool::new(false);
        if !DESCRIBED.swap(true, Ordering::Relaxed) {
            service::metrics::recorder();
            let text = "Duration of calls up to the last byte of the reply";
            metrics::describe_histogram!(DURATION, Unit::Seconds, text);
            metrics::describe_gauge!(IN_FLIGHT, "Calls in flight");
        }
        Arc::new(Self {
            method,
            in_flight: metrics::gauge!(IN_FLIGHT, "method" => method),
            durations: [const { OnceLock::new() }; CODES],
        })
    }

    pub(super) fn start(self: &Arc<Self>) -> CallInFlight {
        self.in_flight.increment(1.0);
        CallInFlight {
            meter: Arc::clone(self),
            started: Instant::now(),
            code: Code::Cancelled,
        }
    }

    fn duration(&self, code: Code) -> &Histogram {
        // Codes start at 0.
        let place = usize::try_from(i32::from(code)).unwrap_or_default();
        self.durations[place.min(CODES - 1)].get_or_init(|| {
            let code = format!("{code:?}");
            metrics::histogram!(DURATION, "method" => self.method, "code" => code)
        })
    }
}

impl CallInFlight {
    pub(super) fn end(mut self, code: Code) {
        self.code = code;
    }
}

impl Drop for CallInFlight {
    fn drop(&mut self) {
        self.meter.in_flight.decrement(1.0);
        let duration = self.started.elapsed().as_secs_f64();
        self.meter.duration(self.code).record(duration);
    }
}
