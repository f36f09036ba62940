//! Times of a client.

use std::time::Duration;

/// Timeouts, pauses and deadlines of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedfishTiming {
    /// Timeout of a connection, with its TLS handshake.
    pub connect: Duration,
    /// Timeout of one answer, to its last byte.
    pub answer: Duration,
    /// Attempts of one request, the first included.
    pub attempts: u32,
    /// Backoff after the first failure; it doubles with each further one.
    pub first_pause: Duration,
    /// Longest backoff.
    pub longest_pause: Duration,
    /// Longest `Retry-After` that is waited for.
    pub longest_retry_after: Duration,
    /// Pause between two reads while a state is awaited.
    pub poll: Duration,
    /// Deadline of a written value until it is read back.
    pub settle: Duration,
    /// Deadline of a power change without the operating system's help.
    pub power: Duration,
    /// Deadline of a shutdown by the operating system.
    pub shutdown: Duration,
    /// Deadline of a task of the BMC.
    pub task: Duration,
}

impl Default for RedfishTiming {
    /// Values for slow BMCs: some load an image before they answer, and a server with much memory switches off in a minute.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(15),
            answer: Duration::from_mins(1),
            attempts: 5,
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(15),
            longest_retry_after: Duration::from_mins(1),
            poll: Duration::from_secs(2),
            settle: Duration::from_secs(30),
            power: Duration::from_mins(3),
            shutdown: Duration::from_mins(10),
            task: Duration::from_mins(10),
        }
    }
}

/// The remaining time of a wait, in polls.
#[derive(Debug)]
pub(super) struct PollDeadline {
    end: tokio::time::Instant,
    poll: Duration,
}

impl PollDeadline {
    pub(super) fn new(limit: Duration, poll: Duration) -> Self {
        Self {
            end: tokio::time::Instant::now() + limit,
            poll,
        }
    }

    /// Waits for the next poll, or for `asked`, if that is longer. False when the deadline passes before.
    pub(super) async fn wait(&self, asked: Option<Duration>) -> bool {
        let pause = asked.unwrap_or_default().max(self.poll);
        if tokio::time::Instant::now() + pause > self.end {
            return false;
        }
        tokio::time::sleep(pause).await;
        true
    }
}

/// The power is observed before each change: a dead BMC must not hold a replacement, or a controller, for minutes.
pub fn observation_timing(timing: &RedfishTiming) -> RedfishTiming {
    RedfishTiming {
        connect: timing.connect.min(Duration::from_secs(5)),
        answer: timing.answer.min(Duration::from_secs(15)),
        attempts: timing.attempts.min(3),
        longest_retry_after: timing.longest_retry_after.min(Duration::from_secs(5)),
        ..timing.clone()
    }
}
