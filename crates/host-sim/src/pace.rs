//! Speed of simulated time.

use std::time::Duration;

/// Shortest real pause, so that no speed turns a waiting loop into a busy one.
const SHORTEST: Duration = Duration::from_millis(20);

/// Ratio of simulated time to real time.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    speedup: f64,
}

impl Pace {
    /// Simulated time that is `speedup` times as fast as real time; values below 1 count as 1.
    pub fn new(speedup: f64) -> Self {
        Self {
            speedup: if speedup.is_finite() {
                speedup.max(1.0)
            } else {
                1.0
            },
        }
    }

    /// The real duration of a simulated one.
    pub fn real(&self, simulated: Duration) -> Duration {
        simulated.div_f64(self.speedup).max(SHORTEST)
    }

    /// The simulated duration of a real one; the longest one if it is too long.
    pub fn simulated(&self, real: Duration) -> Duration {
        Duration::try_from_secs_f64(real.as_secs_f64() * self.speedup).unwrap_or(Duration::MAX)
    }

    /// Waits for a simulated duration.
    pub async fn sleep(&self, simulated: Duration) {
        tokio::time::sleep(self.real(simulated)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_time_is_divided_by_the_speed() {
        assert_eq!(
            Pace::new(60.0).real(Duration::from_mins(1)),
            Duration::from_secs(1)
        );
        assert_eq!(
            Pace::new(60.0).simulated(Duration::from_secs(1)),
            Duration::from_mins(1)
        );
        assert_eq!(
            Pace::new(60.0).simulated(Duration::MAX),
            Duration::MAX,
            "too long"
        );
    }

    #[test]
    fn invalid_speeds_count_as_real_time() {
        for speedup in [0.0, -3.0, f64::NAN, f64::INFINITY] {
            assert_eq!(
                Pace::new(speedup).real(Duration::from_secs(1)),
                Duration::from_secs(1)
            );
        }
    }

    #[test]
    fn no_pause_becomes_a_busy_loop() {
        assert_eq!(Pace::new(1e9).real(Duration::from_mins(1)), SHORTEST);
    }
}
