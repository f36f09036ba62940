//! How many images are streamed at the same time, and how many requests may wait.

use std::sync::Arc;
use std::time::Duration;

use model::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Longer than a burst, shorter than any client's patience.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// A bound on streams and a bound on the queue before them.
#[derive(Debug, Clone)]
pub(crate) struct Admission {
    /// Streaming or waiting.
    present: Arc<Semaphore>,
    streaming: Arc<Semaphore>,
    longest_wait: Duration,
}

/// A place; free again when dropped.
#[derive(Debug)]
pub(super) struct Place {
    _present: OwnedSemaphorePermit,
    _streaming: OwnedSemaphorePermit,
}

impl Admission {
    /// `limit` streams, and as many requests that wait.
    pub(crate) fn new(limit: usize) -> Self {
        let limit = limit.min(Semaphore::MAX_PERMITS / 2);
        Self {
            present: Arc::new(Semaphore::new(limit * 2)),
            streaming: Arc::new(Semaphore::new(limit)),
            longest_wait: LONGEST_WAIT,
        }
    }

    /// A place, waiting for one if need be.
    ///
    /// Errors: `Unavailable` when the queue is full or the wait was too long.
    pub(super) async fn enter(&self) -> Result<Place, Error> {
        let busy = || Error::Unavailable {
            what: "a free place for another image stream (MAX_CONCURRENT_REQUESTS)",
            source: None,
        };
        let present = Arc::clone(&self.present)
            .try_acquire_owned()
            .map_err(|_| busy())?;
        let waiting = Arc::clone(&self.streaming).acquire_owned();
        match tokio::time::timeout(self.longest_wait, waiting).await {
            Ok(Ok(streaming)) => Ok(Place {
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
    async fn a_place_is_free_again_when_dropped() {
        let mut admission = Admission::new(1);
        admission.longest_wait = Duration::ZERO;
        let place = admission.enter().await.unwrap();
        assert!(matches!(
            admission.enter().await,
            Err(Error::Unavailable { .. })
        ));
        drop(place);
        assert!(admission.enter().await.is_ok());
    }

    // limit: image queue
    #[tokio::test]
    async fn the_queue_is_bounded() {
        let admission = Admission::new(1);
        let _place = admission.enter().await.unwrap();
        let (waits, refused) = tokio::join!(
            tokio::time::timeout(Duration::from_millis(1), admission.enter()),
            admission.enter(),
        );
        assert!(waits.is_err(), "the first in the queue waits");
        assert!(refused.is_err(), "the second is sent away at once");
    }
}
