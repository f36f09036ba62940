//! Password checks that run, and those that wait: bcrypt is expensive by design, so both are bounded.
//!
//! Users who have logged in before have a queue of their own: strangers, whose number has no bound, neither take the
//! whole processor nor make them wait.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Checks of one queue that run or wait.
pub(super) const QUEUE_LIMIT: usize = 256;
/// The same for strangers of one network.
pub(super) const NETWORK_LIMIT: usize = 64;
/// The same for established users of one network: builds behind one address begin together.
pub(super) const ESTABLISHED_LIMIT: usize = 128;

/// Both queues.
#[derive(Debug)]
pub(super) struct Checks {
    established: Queue,
    strangers: Queue,
}

#[derive(Debug)]
struct Queue {
    permits: Arc<Semaphore>,
    places: Arc<Mutex<HashMap<IpAddr, usize>>>,
    network_limit: usize,
}

/// The right to check one password.
#[derive(Debug)]
pub(super) struct Slot {
    _permit: OwnedSemaphorePermit,
    _place: Place,
}

/// A place in a queue, given back when dropped.
#[derive(Debug)]
struct Place {
    places: Arc<Mutex<HashMap<IpAddr, usize>>>,
    network: IpAddr,
}

impl Checks {
    /// Each queue runs on half of the processors.
    pub(super) fn new() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let concurrency = (processors / 2).max(1);
        Self {
            established: Queue::new(concurrency, ESTABLISHED_LIMIT),
            strangers: Queue::new(concurrency, NETWORK_LIMIT),
        }
    }

    /// Waits for a permit; none when too many checks wait already.
    pub(super) async fn slot(&self, network: IpAddr, is_established: bool) -> Option<Slot> {
        let queue = if is_established {
            &self.established
        } else {
            &self.strangers
        };
        let place = queue.enter(network)?;
        let permit = Arc::clone(&queue.permits).acquire_owned().await.ok()?;
        Some(Slot {
            _permit: permit,
            _place: place,
        })
    }
}

impl Queue {
    fn new(concurrency: usize, network_limit: usize) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(concurrency)),
            places: Arc::default(),
            network_limit,
        }
    }

    fn enter(&self, network: IpAddr) -> Option<Place> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let own = places.get(&network).copied().unwrap_or_default();
        if own >= self.network_limit || places.values().sum::<usize>() >= QUEUE_LIMIT {
            return None;
        }
        places.insert(network, own + 1);
        Some(Place {
            places: Arc::clone(&self.places),
            network,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        match places.get_mut(&self.network) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(places.remove(&self.network)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn address(last: usize) -> IpAddr {
        Ipv4Addr::from(u32::try_from(last).unwrap()).into()
    }

    // limit: password checks that run or wait
    // limit: password checks of strangers
    #[test]
    fn queues_are_bounded_by_network_and_in_all() {
        let queue = Queue::new(1, NETWORK_LIMIT);
        let mut places: Vec<_> = (0..NETWORK_LIMIT)
            .map(|_| queue.enter(address(0)).unwrap())
            .collect();
        assert!(queue.enter(address(0)).is_none());
        for n in NETWORK_LIMIT..QUEUE_LIMIT {
            places.push(queue.enter(address(n)).unwrap());
        }
        assert!(queue.enter(address(QUEUE_LIMIT)).is_none());
        places.pop();
        assert!(queue.enter(address(QUEUE_LIMIT)).is_some());
        places.clear();
        assert!(queue.places.lock().unwrap().is_empty());
    }

    // share: password checks that run or wait
    #[test]
    fn established_users_of_a_network_leave_room_to_others() {
        let established = Checks::new().established;
        let own: Vec<_> = (0..ESTABLISHED_LIMIT)
            .map(|_| established.enter(address(1)).unwrap())
            .collect();
        assert!(established.enter(address(1)).is_none());
        assert!(established.enter(address(2)).is_some());
        drop(own);
        assert!(established.enter(address(1)).is_some());
    }

    #[tokio::test]
    async fn strangers_do_not_hold_up_established_users() {
        let checks = Checks::new();
        let mut held = Vec::new();
        while checks.strangers.permits.available_permits() > 0 {
            held.push(checks.slot(address(0), false).await.unwrap());
        }
        assert!(checks.slot(address(0), true).await.is_some());
    }
}
