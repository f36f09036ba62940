//! Load balancing of HTTP clients: round robin over the addresses of a host.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::Resolver;

/// Limit of hosts; beyond it, all counters restart.
const MAX_NAMES: usize = 1024;

/// Round-robin counters by host.
#[derive(Debug, Default)]
pub(super) struct RoundRobin(Mutex<HashMap<String, usize>>);

impl RoundRobin {
    /// Rotates `addresses`, which are sorted, to the next first one; IPv4 stays before IPv6.
    fn rotate(&self, name: &str, addresses: &mut [IpAddr]) {
        let offset = self.next(name);
        let v4 = addresses.partition_point(IpAddr::is_ipv4);
        let (v4, v6) = addresses.split_at_mut(v4);
        for family in [v4, v6] {
            if !family.is_empty() {
                family.rotate_left(offset % family.len());
            }
        }
    }

    fn next(&self, name: &str) -> usize {
        let mut counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(offset) = counters.get_mut(name) {
            *offset = offset.wrapping_add(1);
            return *offset;
        }
        if counters.len() >= MAX_NAMES {
            counters.clear();
        }
        counters.insert(name.to_owned(), 0);
        0
    }
}

/// Rotates the addresses for each new connection.
impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = self.clone();
        Box::pin(async move {
            let mut addresses = resolver.lookup(name.as_str()).await?;
            resolver.0.round_robin.rotate(name.as_str(), &mut addresses);
            // Port 0 selects the port of the URL.
            let addresses = addresses.into_iter().map(|ip| SocketAddr::new(ip, 0));
            Ok(Box::new(addresses) as Addrs)
        })
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
