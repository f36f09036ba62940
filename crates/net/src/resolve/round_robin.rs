//! Load balancing of HTTP clients: round robin over the addresses of a host.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use moka::sync::Cache;

/// Limit of hosts with a counter.
const MAX_NAMES: u64 = 1024;

/// Round-robin counters by host.
#[derive(Debug)]
pub(super) struct RoundRobin(Cache<String, Arc<AtomicUsize>>);

impl Default for RoundRobin {
    fn default() -> Self {
        Self(Cache::new(MAX_NAMES))
    }
}

impl RoundRobin {
    /// Rotates `addresses`, which are sorted, to the next first one; IPv4 stays before IPv6.
    pub(super) fn rotate(&self, name: &str, addresses: &mut [IpAddr]) {
        let counter = self.0.get_with_by_ref(name, Arc::default);
        let offset = counter.fetch_add(1, Ordering::Relaxed);
        let v4 = addresses.partition_point(IpAddr::is_ipv4);
        let (v4, v6) = addresses.split_at_mut(v4);
        for family in [v4, v6] {
            if !family.is_empty() {
                family.rotate_left(offset % family.len());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_rotate_and_ipv4_comes_first() {
        let sorted: [IpAddr; 5] = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "fd00::1", "fd00::2"]
            .map(|ip| ip.parse().unwrap());
        let counters = RoundRobin::default();
        let mut firsts = Vec::new();
        for _ in 0..6 {
            let mut addresses = sorted;
            counters.rotate("api", &mut addresses);
            assert!(addresses[..3].iter().all(IpAddr::is_ipv4), "{addresses:?}");
            firsts.push((addresses[0], addresses[3]));
            let mut other = sorted;
            counters.rotate("images", &mut other);
            assert_eq!(other, addresses, "each host has its own counter");
        }
        let expected = [(0, 3), (1, 4), (2, 3), (0, 4), (1, 3), (2, 4)];
        assert_eq!(firsts, expected.map(|(v4, v6)| (sorted[v4], sorted[v6])));
    }
}
