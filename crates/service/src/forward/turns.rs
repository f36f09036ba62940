//! Turns of clients: how many requests of one address replicas work for at a time.
//!
//! The others wait where they cost nothing, so that a client with a thousand requests delays no other one by them. Uploads
//! last as long as their clients like, have permits of their own, and take no turn.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::server::ClientKey;

/// Enough for the page of a browser, and for hosts behind one address, whose requests take milliseconds. Units: requests
/// whose responses have not begun.
pub(super) const TURNS: usize = 64;

/// The turns of all clients; shared by its clones.
#[derive(Debug, Clone, Default)]
pub(super) struct ClientTurns(Arc<Mutex<TurnTable>>);

/// Only clients with a request that has a turn or waits for one.
type TurnTable = HashMap<ClientKey, Arc<Semaphore>>;

/// A turn of a client; it ends when dropped.
#[derive(Debug)]
pub(super) struct Turn {
    // Before the place, which looks for others.
    _permit: Option<OwnedSemaphorePermit>,
    _place: ClientPlace,
}

/// A place among the requests of a client.
#[derive(Debug)]
struct ClientPlace {
    turns: ClientTurns,
    client: ClientKey,
    semaphore: Arc<Semaphore>,
}

impl ClientTurns {
    /// Waits for a turn; first come, first served.
    pub(super) async fn take(&self, client: IpAddr) -> Turn {
        let client = ClientKey::from(client);
        let new = || Arc::new(Semaphore::new(TURNS));
        let place = ClientPlace {
            turns: self.clone(),
            client,
            semaphore: self.lock().entry(client).or_insert_with(new).clone(),
        };
        // Nothing closes it.
        let permit = place.semaphore.clone().acquire_owned().await.ok();
        Turn {
            _permit: permit,
            _place: place,
        }
    }

    fn lock(&self) -> MutexGuard<'_, TurnTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ClientPlace {
    fn drop(&mut self) {
        let mut table = self.turns.lock();
        // That of the table, and this one: others are added under the lock alone.
        if Arc::strong_count(&self.semaphore) == 2 {
            table.remove(&self.client);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use futures_util::FutureExt as _;

    use super::*;

    const ONE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));

    #[tokio::test]
    async fn clients_with_all_turns_wait_and_leave_no_trace() {
        let turns = ClientTurns::default();
        let mut held = Vec::new();
        for _ in 0..TURNS {
            held.push(turns.take(ONE).now_or_never().unwrap());
        }
        assert!(turns.take(ONE).now_or_never().is_none(), "one more");
        assert!(turns.take(OTHER).now_or_never().is_some());
        assert_eq!(turns.lock().len(), 1);
        let next = turns.clone();
        let next = tokio::spawn(async move { next.take(ONE).await });
        tokio::task::yield_now().await;
        held.pop();
        let next = next.await.unwrap();
        assert!(turns.take(ONE).now_or_never().is_none(), "as before");
        drop((held, next));
        assert!(turns.lock().is_empty());
    }
}
