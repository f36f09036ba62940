//! Times of a controller: intervals, and back-off with jitter.

use std::time::Duration;

/// Intervals and pauses of a controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerTiming {
    /// Interval of looking at the power of a host.
    pub power_poll: Duration,
    /// Interval of looking for another version of a secret whose credentials fail; the BMC is not asked.
    pub secret_poll: Duration,
    /// Back-off after the first failure; it doubles with each further one.
    pub first_backoff: Duration,
    /// Longest back-off.
    pub longest_backoff: Duration,
    /// Interval of looking at all hosts, and for another controller.
    pub resync: Duration,
    /// Time for the work in progress when the controller stops.
    pub drain: Duration,
}

impl Default for ControllerTiming {
    fn default() -> Self {
        Self {
            power_poll: Duration::from_mins(1),
            secret_poll: Duration::from_secs(15),
            first_backoff: Duration::from_secs(10),
            longest_backoff: Duration::from_mins(10),
            resync: Duration::from_mins(10),
            drain: Duration::from_secs(10),
        }
    }
}

impl ControllerTiming {
    /// The pause after `failures` in a row. `chance`, from 0 to 1, spreads hosts that failed together.
    pub(super) fn backoff(&self, failures: u64, chance: f64) -> Duration {
        let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        let factor = 2_u32.saturating_pow(doublings);
        let backoff = self.first_backoff.saturating_mul(factor);
        let backoff = backoff.min(self.longest_backoff);
        backoff.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0)
    }
}

/// An interval of which up to a tenth is left out, so that hosts are not looked at all at once.
pub(super) fn spread(interval: Duration, chance: f64) -> Duration {
    interval.mul_f64(1.0 - chance.clamp(0.0, 1.0) / 10.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let timing = ControllerTiming::default();
        let pauses = [1, 2, 3, 6, 7, 8, u64::MAX].map(|it| timing.backoff(it, 1.0).as_secs());
        assert_eq!(pauses, [10, 20, 40, 320, 600, 600, 600]);
    }

    proptest! {
        #[test]
        fn pauses_are_within_their_bounds(failures in any::<u64>(), chance in any::<f64>()) {
            let timing = ControllerTiming::default();
            let chance = if chance.is_nan() { 0.0 } else { chance };
            let pause = timing.backoff(failures, chance);
            prop_assert!(pause >= timing.first_backoff / 2);
            prop_assert!(pause <= timing.longest_backoff);
            prop_assert!(pause <= timing.backoff(failures.saturating_add(1), 1.0));
            let poll = spread(timing.power_poll, chance);
            prop_assert!(poll <= timing.power_poll && poll >= timing.power_poll * 9 / 10);
        }
    }
}
