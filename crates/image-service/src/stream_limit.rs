//! Concurrency limit of image streams, with a bounded queue.

use std::sync::Arc;
use std::time::Duration;

use model::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Longer than a burst, shorter than the timeout of any client.
pub(crate) const MAX_QUEUE_WAIT: Duration = Duration::from_secs(10);

/// A semaphore of streams, and one of streams and queued requests.
#[derive(Debug, Clone)]
pub(crate) struct StreamLimit {
    /// Streaming or waiting.
    present: Arc<Semaphore>,
    streaming: Arc<Semaphore>,
    max_wait: Duration,
}

/// Permit of a stream; released when dropped.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    _present: OwnedSemaphorePermit,
    _streaming: OwnedSemaphorePermit,
}

impl StreamLimit {
    /// `limit` streams, and as many requests that wait.
    pub(crate) fn new(limit: usize) -> Self {
        let limit = limit.min(Semaphore::MAX_PERMITS / 2);
        Self {
            present: Arc::new(Semaphore::new(limit * 2)),
            streaming: Arc::new(Semaphore::new(limit)),
            max_wait: MAX_QUEUE_WAIT,
        }
    }

    /// Acquires a permit, waiting in the queue if need be.
    ///
    /// Errors: `Unavailable` when the queue is full or the wait was too long.
    pub(crate) async fn acquire(&self) -> Result<StreamPermit, Error> {
        let busy = || Error::Unavailable {
            what: "a free place for another image stream (MAX_CONCURRENT_REQUESTS)",
            source: None,
        };
        let present = Arc::clone(&self.present)
            .try_acquire_owned()
            .map_err(|_| busy())?;
        let waiting = Arc::clone(&self.streaming).acquire_owned();
        match tokio::time::timeout(self.max_wait, waiting).await {
            Ok(Ok(streaming)) => Ok(StreamPermit {
                _present: present,
                _streaming: streaming,
            }),
            Ok(Err(_)) | Err(_) => Err(busy()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // limit: image streams
    // limit: image queue wait
    #[tokio::test]
    async fn a_dropped_permit_is_released() {
        let mut streams = StreamLimit::new(1);
        streams.max_wait = Duration::ZERO;
        let place = streams.acquire().await.unwrap();
        assert!(matches!(
            streams.acquire().await,
            Err(Error::Unavailable { .. })
        ));
        drop(place);
        assert!(streams.acquire().await.is_ok());
    }

    // limit: image queue
    #[tokio::test]
    async fn the_queue_is_bounded() {
        let streams = StreamLimit::new(1);
        let _place = streams.acquire().await.unwrap();
        let (waits, refused) = tokio::join!(
            tokio::time::timeout(Duration::from_millis(1), streams.acquire()),
            streams.acquire(),
        );
        assert!(waits.is_err(), "the first in the queue waits");
        assert!(refused.is_err(), "the second is sent away at once");
    }
}
