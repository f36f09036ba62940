//! Things that clients hold at a time, counted per client and in all.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::clients::ClientKey;

/// Counts what clients hold; shared by its clones.
#[derive(Debug, Clone)]
pub(crate) struct ClientQuota(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// 0: no limit.
    max: usize,
    /// 0: no limit.
    max_per_client: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    total: usize,
    /// Only clients that hold something: the table is never longer than the total.
    by_client: HashMap<ClientKey, usize>,
}

/// One of the things that a client holds; returned to the quota when dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    quota: ClientQuota,
    client: Option<ClientKey>,
}

/// The bound that a client has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exceeded {
    /// All clients together.
    Total,
    /// The client alone.
    Client,
}

impl ClientQuota {
    /// At most `max` things in all and `max_per_client` of each client; 0: no limit.
    pub(crate) fn new(max: usize, max_per_client: usize) -> Self {
        Self(Arc::new(Inner {
            max,
            max_per_client,
            held: Mutex::default(),
        }))
    }

    /// One more for `client`; without a client it counts in the total only.
    ///
    /// Errors: the bound that is reached.
    pub(crate) fn acquire(&self, client: Option<ClientKey>) -> Result<Permit, Exceeded> {
        let is_reached = |held: usize, max: usize| max > 0 && held >= max;
        let mut held = self.lock();
        if is_reached(held.total, self.0.max) {
            return Err(Exceeded::Total);
        }
        if let Some(client) = client {
            let own = held.by_client.get(&client).copied().unwrap_or_default();
            if is_reached(own, self.0.max_per_client) {
                return Err(Exceeded::Client);
            }
            held.by_client.insert(client, own + 1);
        }
        held.total += 1;
        let quota = self.clone();
        Ok(Permit { quota, client })
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut held = self.quota.lock();
        held.total -= 1;
        let Some(client) = self.client else { return };
        if let Entry::Occupied(mut own) = held.by_client.entry(client) {
            *own.get_mut() -= 1;
            if *own.get() == 0 {
                own.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn client(last: u8) -> ClientKey {
        IpAddr::from(Ipv4Addr::new(192, 0, 2, last)).into()
    }

    #[test]
    fn clients_and_all_together_are_bounded() {
        let quota = ClientQuota::new(5, 2);
        let first = quota.acquire(Some(client(1))).unwrap();
        let _second = quota.acquire(Some(client(1))).unwrap();
        assert_eq!(
            quota.acquire(Some(client(1))).unwrap_err(),
            Exceeded::Client
        );
        let _others = [(); 2].map(|()| quota.acquire(Some(client(2))).unwrap());
        let _unnamed = quota.acquire(None).unwrap();
        assert_eq!(quota.acquire(Some(client(3))).unwrap_err(), Exceeded::Total);
        drop(first);
        assert!(quota.acquire(Some(client(1))).is_ok());
    }

    #[test]
    fn nothing_stays_of_clients_that_hold_nothing() {
        let quota = ClientQuota::new(0, 0);
        let held: Vec<_> = (0..100)
            .map(|last| quota.acquire(Some(client(last))))
            .collect();
        assert_eq!(quota.lock().by_client.len(), 100);
        drop(held);
        let held = quota.lock();
        assert_eq!((held.total, held.by_client.len()), (0, 0));
    }
}
