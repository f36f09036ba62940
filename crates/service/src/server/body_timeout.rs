//! Timeouts of request bodies: of silence, of the average rate, and of the whole wait.
//!
//! Only time in which the server waits for the client counts: a slow server cuts off no client.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::BoxError;
use axum::body::Body;
use axum::extract::Request;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Instant;

use crate::deadline_timer::DeadlineTimer;

/// Timeouts of a client that sends a body.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyLimits {
    /// Longest silence; also the head start before the rate counts.
    pub(super) idle: Duration,
    /// Minimum average rate. Units: bytes per second; 0: any.
    pub(super) min_rate: u64,
    /// Longest wait in all; zero: no limit.
    pub(super) total: Duration,
}

impl BodyLimits {
    /// Wraps the body of `request`; the flag is set when a timeout fails it.
    pub(super) fn bound(self, request: Request) -> (Request, Option<Arc<AtomicBool>>) {
        if request.body().is_end_stream() {
            return (request, None);
        }
        let is_late = Arc::new(AtomicBool::new(false));
        let bounded = |body| {
            Body::new(TimedBody {
                body,
                limits: self,
                progress: BodyProgress::default(),
                timer: DeadlineTimer::default(),
                waiting_since: None,
                is_late: is_late.clone(),
            })
        };
        (request.map(bounded), Some(is_late.clone()))
    }

    /// How much longer the client may stay silent after `progress`.
    fn left(&self, progress: &BodyProgress) -> Duration {
        let mut left = self.idle;
        let milliseconds = progress.received.saturating_mul(1000);
        if let Some(milliseconds) = milliseconds.checked_div(self.min_rate) {
            let earned = self
                .idle
                .saturating_add(Duration::from_millis(milliseconds));
            left = left.min(earned.saturating_sub(progress.waited));
        }
        if !self.total.is_zero() {
            left = left.min(self.total.saturating_sub(progress.waited));
        }
        left
    }
}

#[derive(Debug, Default)]
struct BodyProgress {
    /// Units: bytes.
    received: u64,
    /// Time in which the server waited for the client.
    waited: Duration,
}

struct TimedBody {
    body: Body,
    limits: BodyLimits,
    progress: BodyProgress,
    timer: DeadlineTimer,
    waiting_since: Option<Instant>,
    is_late: Arc<AtomicBool>,
}

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            if let Some(since) = self.waiting_since.take() {
                self.progress.waited += since.elapsed();
            }
            if let Some(Ok(frame)) = &frame {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                self.progress.received += bytes as u64;
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let since = *self.waiting_since.get_or_insert_with(Instant::now);
        let deadline = since + self.limits.left(&self.progress);
        if self.timer.poll_until(cx, deadline).is_pending() {
            return Poll::Pending;
        }
        self.is_late.store(true, Ordering::Relaxed);
        let error = std::io::Error::from(std::io::ErrorKind::TimedOut);
        Poll::Ready(Some(Err(error.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: BodyLimits = BodyLimits {
        idle: Duration::from_secs(30),
        min_rate: 1000,
        total: Duration::from_mins(10),
    };

    fn left(received: u64, waited_s: u64) -> u64 {
        let waited = Duration::from_secs(waited_s);
        LIMITS.left(&BodyProgress { received, waited }).as_secs()
    }

    // limit: silence within a request body
    #[test]
    fn silence_is_bounded() {
        assert_eq!(left(0, 0), 30);
        assert_eq!(left(100_000, 10), 30);
    }

    // limit: rate of a request body
    #[test]
    fn each_byte_earns_its_time() {
        assert_eq!(left(5000, 20), 15);
        assert_eq!(left(5000, 34), 1);
        assert_eq!(left(5000, 35), 0);
        let any_rate = BodyLimits {
            min_rate: 0,
            ..LIMITS
        };
        let progress = BodyProgress {
            received: 1,
            waited: Duration::from_secs(500),
        };
        assert_eq!(any_rate.left(&progress), LIMITS.idle);
    }

    // limit: time for a request body
    #[test]
    fn the_whole_wait_is_bounded() {
        assert_eq!(left(u64::MAX, 570), 30);
        assert_eq!(left(u64::MAX, 599), 1);
        assert_eq!(left(u64::MAX, 600), 0);
    }

    /// Whether pieces at an interval arrive within `limits`.
    async fn received(limits: BodyLimits, pieces: usize, interval: Duration) -> bool {
        let (sender, receiver) = tokio::sync::mpsc::channel::<Bytes>(1);
        tokio::spawn(async move {
            for _ in 0..pieces {
                tokio::time::sleep(interval).await;
                if sender.send(Bytes::from_static(b"x")).await.is_err() {
                    return;
                }
            }
        });
        let stream = futures_util::stream::unfold(receiver, async |mut receiver| {
            let piece = receiver.recv().await?;
            Some((Ok::<_, std::io::Error>(piece), receiver))
        });
        let (request, is_late) = limits.bound(Request::new(Body::from_stream(stream)));
        let read = axum::body::to_bytes(request.into_body(), usize::MAX).await;
        assert_eq!(read.is_err(), is_late.unwrap().load(Ordering::Relaxed));
        read.is_ok()
    }

    #[tokio::test]
    async fn only_the_bounds_end_a_body() {
        let millisecond = Duration::from_millis(1);
        let drip = async |limits| received(limits, 200, 5 * millisecond).await;
        let wide = BodyLimits {
            min_rate: 0,
            total: Duration::ZERO,
            ..LIMITS
        };
        assert!(drip(wide).await);
        let total = 100 * millisecond;
        assert!(!drip(BodyLimits { total, ..wide }).await);
        // A byte each five milliseconds at best.
        let (idle, min_rate) = (300 * millisecond, 1000);
        assert!(
            !drip(BodyLimits {
                idle,
                min_rate,
                ..wide
            })
            .await
        );
        assert!(!received(BodyLimits { idle, ..wide }, 1, 10 * idle).await);
    }
}
