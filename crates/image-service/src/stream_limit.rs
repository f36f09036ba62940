//! Concurrency limit of image streams, with a bounded queue, of which each client has a share.

use std::sync::Arc;
use std::time::Duration;

use model::Error;
use service::server::{ClientAddress, ClientQuota, Permit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Longer than a burst, shorter than the timeout of any client.
pub(crate) const MAX_QUEUE_WAIT: Duration = Duration::from_secs(10);

/// One in so many streams and queued requests are for one client, at least one.
const SHARE: usize = 4;

/// A semaphore of streams, and a quota of streams and queued requests.
#[derive(Debug, Clone)]
pub(crate) struct StreamLimit {
    /// Streaming or waiting.
    present: ClientQuota,
    streaming: Arc<Semaphore>,
    max_wait: Duration,
}

/// Permit of a stream; released when dropped.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    _present: Permit,
    _streaming: OwnedSemaphorePermit,
}

impl StreamLimit {
    /// `limit` streams, and as many requests that wait.
    pub(crate) fn new(limit: usize) -> Self {
        Self::with_share(limit, Self::share(limit))
    }

    /// The same with another share of each client.
    pub(crate) fn with_share(limit: usize, share: usize) -> Self {
        let limit = limit.min(Semaphore::MAX_PERMITS / 2);
        Self {
            present: ClientQuota::new(limit * 2, share),
            streaming: Arc::new(Semaphore::new(limit)),
            max_wait: MAX_QUEUE_WAIT,
        }
    }

    /// Streams and queued requests of one client.
    pub(crate) fn share(limit: usize) -> usize {
        (limit * 2).div_ceil(SHARE)
    }

    /// Acquires a permit for a client, waiting in the queue if need be.
    ///
    /// Errors: `Unavailable` when the queue is full, the client has its share, or the wait was too long.
    pub(crate) async fn acquire(&self, client: ClientAddress) -> Result<StreamPermit, Error> {
        let busy = || Error::Unavailable {
            what: "a free place for another image stream (MAX_CONCURRENT_REQUESTS)",
            source: None,
        };
        let present = self.present.acquire_for(client).map_err(|_| busy())?;
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

    fn client(last: u8) -> ClientAddress {
        ClientAddress {
            ip: [192, 0, 2, last].into(),
            is_forwarded: false,
        }
    }

    // limit: image streams
    // limit: image queue wait
    #[tokio::test]
    async fn a_dropped_permit_is_released() {
        let mut streams = StreamLimit::new(1);
        streams.max_wait = Duration::ZERO;
        let place = streams.acquire(client(1)).await.unwrap();
        assert!(matches!(
            streams.acquire(client(2)).await,
            Err(Error::Unavailable { .. })
        ));
        drop(place);
        assert!(streams.acquire(client(2)).await.is_ok());
    }

    // limit: image queue
    #[tokio::test]
    async fn the_queue_is_bounded() {
        let streams = StreamLimit::new(1);
        let _place = streams.acquire(client(1)).await.unwrap();
        let (waits, refused) = tokio::join!(
            tokio::time::timeout(Duration::from_millis(1), streams.acquire(client(2))),
            streams.acquire(client(3)),
        );
        assert!(waits.is_err(), "the first in the queue waits");
        assert!(refused.is_err(), "the second is sent away at once");
    }

    // share: image streams
    // share: image queue
    #[tokio::test]
    async fn a_client_has_a_share_of_streams_and_queue() {
        let streams = StreamLimit::new(4);
        let own = [
            streams.acquire(client(1)).await.unwrap(),
            streams.acquire(client(1)).await.unwrap(),
        ];
        assert!(streams.acquire(client(1)).await.is_err(), "one above");
        let _others = [
            streams.acquire(client(2)).await.unwrap(),
            streams.acquire(client(2)).await.unwrap(),
        ];
        drop(own);
        assert!(streams.acquire(client(1)).await.is_ok());
    }
}
