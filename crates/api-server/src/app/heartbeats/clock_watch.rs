//! Steps of the system clock, found with a clock that is never set.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use chrono::TimeDelta;
use model::time::Timestamp;

/// Smallest step: a clock that is slowed down or sped up gains less between two readings, and no timeout is as short.
const STEP: TimeDelta = TimeDelta::seconds(10);

/// Readings of both clocks.
#[derive(Debug, Default)]
pub(crate) struct ClockWatch(Mutex<Option<ClockReading>>);

#[derive(Debug, Clone, Copy)]
struct ClockReading {
    wall: Timestamp,
    steady: Instant,
    /// When the clock was set forward last, as it shows now.
    set_at: Option<Timestamp>,
}

impl ClockReading {
    /// The next reading.
    fn next(self, wall: Timestamp, steady: Instant) -> Self {
        let passed = steady.saturating_duration_since(self.steady);
        let passed = TimeDelta::from_std(passed).unwrap_or(TimeDelta::MAX);
        let step = wall.signed_duration_since(self.wall) - passed;
        let set_at = if step > STEP {
            tracing::warn!(
                step_s = step.num_seconds(),
                "the clock was set forward: timeouts start again"
            );
            Some(wall)
        } else if step < -STEP {
            self.set_at.map(|at| at + step)
        } else {
            self.set_at
        };
        Self {
            wall,
            steady,
            set_at,
        }
    }
}

impl ClockWatch {
    /// Reads both clocks; when the system clock was set forward last.
    pub(crate) fn set_at(&self, wall: Timestamp, steady: Instant) -> Option<Timestamp> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first = ClockReading {
            wall,
            steady,
            set_at: None,
        };
        let reading = last.map_or(first, |last| last.next(wall, steady));
        *last = Some(reading);
        reading.set_at
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_steps_forward_set_the_time() {
        let watch = ClockWatch::default();
        let start = Instant::now();
        let at = |seconds: i64| chrono::DateTime::from_timestamp(seconds, 0).unwrap();
        // Seconds of both clocks since the start, and of the last step.
        let readings = [
            (0, 0, None),
            (60, 60, None),
            // Sped up by the time service.
            (3660, 3655, None),
            (7260, 3655, Some(7260)),
            (7320, 3715, Some(7260)),
            // Set back by a minute.
            (7270, 3725, Some(7200)),
            (10_870, 3726, Some(10_870)),
            // Set back by all of it.
            (3730, 3727, Some(3729)),
        ];
        for (wall, steady, expected) in readings {
            let steady = start + Duration::from_secs(steady);
            let found = watch.set_at(at(100_000 + wall), steady);
            assert_eq!(found, expected.map(|seconds| at(100_000 + seconds)));
        }
    }
}
