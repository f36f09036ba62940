//! How many calls there are and how long they take.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use metrics::{Gauge, Histogram, Unit};
use tonic::Code;

/// Seconds that a call took, up to the last byte of its answer, by method and code.
const DURATION: &str = "atoll_grpc_request_duration_seconds";
/// Calls that are being answered, by method.
const IN_FLIGHT: &str = "atoll_grpc_requests_in_flight";
/// How many codes there are.
const CODES: usize = 17;

/// Of one method. Labels are looked up at the first call that needs them.
#[derive(Debug)]
pub(super) struct Meter {
    method: &'static str,
    in_flight: Gauge,
    durations: [OnceLock<Histogram>; CODES],
}

/// A call that is being answered. When it is dropped before it has ended, its client has gone.
#[derive(Debug)]
pub(super) struct Measured {
    meter: Arc<Meter>,
    started: Instant,
    code: Code,
}

impl Meter {
    pub(super) fn new(method: &'static str) -> Arc<Self> {
        static DESCRIBED: AtomicBool = AtomicBool::new(false);
        if !DESCRIBED.swap(true, Ordering::Relaxed) {
            service::metrics::recorder();
            let text = "Time to answer a call up to its last byte";
            metrics::describe_histogram!(DURATION, Unit::Seconds, text);
            metrics::describe_gauge!(IN_FLIGHT, "Calls being answered");
        }
        Arc::new(Self {
            method,
            in_flight: metrics::gauge!(IN_FLIGHT, "method" => method),
            durations: [const { OnceLock::new() }; CODES],
        })
    }

    pub(super) fn start(self: &Arc<Self>) -> Measured {
        self.in_flight.increment(1.0);
        Measured {
            meter: Arc::clone(self),
            started: Instant::now(),
            code: Code::Cancelled,
        }
    }

    fn duration(&self, code: Code) -> &Histogram {
        // Codes count from 0.
        let place = usize::try_from(i32::from(code)).unwrap_or_default();
        self.durations[place.min(CODES - 1)].get_or_init(|| {
            let code = format!("{code:?}");
            metrics::histogram!(DURATION, "method" => self.method, "code" => code)
        })
    }
}

impl Measured {
    pub(super) fn end(mut self, code: Code) {
        self.code = code;
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        self.meter.in_flight.decrement(1.0);
        let duration = self.started.elapsed().as_secs_f64();
        self.meter.duration(self.code).record(duration);
    }
}
