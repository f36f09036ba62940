//! A semaphore with permits per client and in all.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::clients::Holder;

/// Permits of clients; shared by its clones.
#[derive(Debug, Clone)]
pub struct ClientQuota(Arc<QuotaInner>);

#[derive(Debug)]
struct QuotaInner {
    /// 0: no limit.
    max: usize,
    /// 0: no limit.
    max_per_client: usize,
    usage: Mutex<QuotaUsage>,
}

#[derive(Debug, Default)]
struct QuotaUsage {
    total: usize,
    /// Only clients that hold a permit: the table is never longer than the total.
    by_client: HashMap<Holder, usize>,
}

/// A permit of a client; released when dropped.
#[derive(Debug)]
pub struct Permit {
    quota: ClientQuota,
    client: Option<Holder>,
    count: usize,
}

/// The limit that a client has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exceeded {
    /// All clients together.
    Total,
    /// The client alone.
    Client,
}

impl ClientQuota {
    /// At most `max` permits in all and `max_per_client` of each client; 0: no limit.
    pub fn new(max: usize, max_per_client: usize) -> Self {
        Self(Arc::new(QuotaInner {
            max,
            max_per_client,
            usage: Mutex::default(),
        }))
    }

    /// Acquires a permit for the client of a request.
    ///
    /// Errors: the limit that is reached.
    pub fn acquire_for(&self, client: impl Into<Holder>) -> Result<Permit, Exceeded> {
        self.acquire_many_for(client, 1)
    }

    /// Acquires `count` permits for the client of a request.
    ///
    /// Errors: the limit that is reached.
    pub fn acquire_many_for(
        &self,
        client: impl Into<Holder>,
        count: usize,
    ) -> Result<Permit, Exceeded> {
        self.acquire_many(Some(client.into()), count)
    }

    /// Permits that are held.
    pub fn held(&self) -> usize {
        self.lock().total
    }

    /// Acquires a permit for `client`; without a client it counts in the total only.
    ///
    /// Errors: the limit that is reached.
    pub fn acquire(&self, client: Option<Holder>) -> Result<Permit, Exceeded> {
        self.acquire_many(client, 1)
    }

    fn acquire_many(&self, client: Option<Holder>, count: usize) -> Result<Permit, Exceeded> {
        let is_reached = |usage: usize, max: usize| max > 0 && max.saturating_sub(usage) < count;
        let mut usage = self.lock();
        if is_reached(usage.total, self.0.max) {
            return Err(Exceeded::Total);
        }
        if let Some(client) = client.clone() {
            let own = usage.by_client.get(&client).copied().unwrap_or_default();
            if is_reached(own, self.0.max_per_client) {
                return Err(Exceeded::Client);
            }
            usage.by_client.insert(client, own + count);
        }
        usage.total += count;
        let quota = self.clone();
        Ok(Permit {
            quota,
            client,
            count,
        })
    }

    fn lock(&self) -> MutexGuard<'_, QuotaUsage> {
        self.0.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit {
    /// Number of permits.
    pub fn count(&self) -> usize {
        self.count
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut usage = self.quota.lock();
        usage.total -= self.count;
        let Some(client) = self.client.take() else {
            return;
        };
        if let Entry::Occupied(mut own) = usage.by_client.entry(client) {
            *own.get_mut() -= self.count;
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

    fn client(last: u8) -> Holder {
        IpAddr::from(Ipv4Addr::new(192, 0, 2, last)).into()
    }

    #[test]
    fn permits_are_limited_per_client_and_in_all() {
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
    fn clients_without_permits_are_removed() {
        let quota = ClientQuota::new(0, 0);
        let usage: Vec<_> = (0..100)
            .map(|last| quota.acquire(Some(client(last))))
            .collect();
        assert_eq!(quota.lock().by_client.len(), 100);
        drop(usage);
        let usage = quota.lock();
        assert_eq!((usage.total, usage.by_client.len()), (0, 0));
    }

    #[test]
    fn several_permits_are_taken_and_released_together() {
        let quota = ClientQuota::new(8, 6);
        let most = quota.acquire_many(Some(client(1)), 6).unwrap();
        let refused = quota.acquire_many(Some(client(1)), 1).unwrap_err();
        assert_eq!(refused, Exceeded::Client);
        let refused = quota.acquire_many(Some(client(2)), 3).unwrap_err();
        assert_eq!(refused, Exceeded::Total);
        let rest = quota.acquire_many(Some(client(2)), 2).unwrap();
        drop(most);
        assert_eq!(quota.held(), 2);
        assert!(quota.acquire_many(Some(client(1)), 7).is_err());
        drop(rest);
        assert_eq!(quota.held(), 0);
    }
}
