//! Discovery of replicas: they follow the addresses of the upstream's name.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use net::resolve::Resolver;

use super::balance::Balance;
use super::health_check::run_checks;
use super::replica::Replica;

/// How often a name is resolved; the resolver caches its answers.
const RESOLVE_INTERVAL: Duration = Duration::from_secs(1);
/// Long enough for one name server that does not answer and the next one; the last known replicas stay in use.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(15);
/// Retry interval of a failed resolution: requests wait for it.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// Units: addresses of one name. Each costs a task and connections.
const MAX_REPLICAS: usize = 64;

/// Discovery of one upstream.
pub(super) struct Discover {
    balance: Arc<Balance>,
    names: Resolver,
}

impl Discover {
    pub(super) fn new(balance: Arc<Balance>, names: Resolver) -> Self {
        Self { balance, names }
    }

    /// Keeps the replicas equal to the addresses of the upstream's name.
    pub(super) async fn run(self) {
        let mut last_error = None;
        loop {
            let interval = match self.resolve().await {
                Ok(addresses) => {
                    last_error = None;
                    self.update(one_family(addresses));
                    RESOLVE_INTERVAL
                }
                Err(error) => {
                    if last_error.as_ref() != Some(&error) {
                        tracing::warn!(
                            upstream = self.balance.upstream.authority(),
                            error,
                            "name resolution failed: the last known replicas stay in use"
                        );
                    }
                    self.balance.name_not_resolved();
                    last_error = Some(error);
                    RETRY_INTERVAL
                }
            };
            tokio::time::sleep(interval).await;
        }
    }

    async fn resolve(&self) -> Result<Vec<IpAddr>, String> {
        let lookup = self.names.lookup(self.balance.upstream.host());
        tokio::time::timeout(RESOLVE_TIMEOUT, lookup)
            .await
            .map_err(|_| "timed out".to_owned())?
            .map_err(|error| error.to_string())
    }

    fn update(&self, mut addresses: Vec<IpAddr>) {
        let found = addresses.len();
        addresses.truncate(MAX_REPLICAS);
        let known = self.balance.replicas();
        let (kept, removed): (Vec<_>, Vec<_>) = known
            .iter()
            .partition(|replica| addresses.contains(&replica.address.ip()));
        if removed.is_empty() && kept.len() == addresses.len() {
            return;
        }
        if found > MAX_REPLICAS {
            let upstream = self.balance.upstream.authority();
            tracing::warn!(
                upstream,
                found,
                used = MAX_REPLICAS,
                "too many addresses of a name"
            );
        }
        let replicas = addresses.iter().map(|ip| {
            let kept = kept.iter().find(|replica| replica.address.ip() == *ip);
            kept.map_or_else(|| self.insert(*ip), |replica| Arc::clone(replica))
        });
        let replicas = replicas.collect();
        for replica in removed {
            self.remove(replica);
        }
        self.balance.set_replicas(replicas);
    }

    fn insert(&self, ip: IpAddr) -> Arc<Replica> {
        let upstream = &self.balance.upstream;
        let address = SocketAddr::new(ip, upstream.port());
        tracing::info!(upstream = upstream.authority(), %address, "replica added");
        let replica = Arc::new(Replica::new(address, self.balance.retired.child_token()));
        let checks = run_checks(self.balance.clone(), replica.clone());
        tokio::spawn(replica.retired.clone().run_until_cancelled_owned(checks));
        replica
    }

    fn remove(&self, replica: &Replica) {
        let upstream = self.balance.upstream.authority();
        tracing::info!(upstream, address = %replica.address, "replica removed");
        replica.retire();
    }
}

/// The IPv4 addresses, or the IPv6 ones when there are none: a replica with both would count twice.
fn one_family(mut addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    let has_v4 = addresses.iter().any(IpAddr::is_ipv4);
    addresses.retain(|ip| ip.is_ipv4() == has_v4);
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_with_two_families_counts_once() {
        let chosen = |texts: &[&str]| {
            let addresses = texts.iter().map(|text| text.parse().unwrap()).collect();
            let chosen = one_family(addresses);
            chosen.iter().map(IpAddr::to_string).collect::<Vec<_>>()
        };
        let both = chosen(&["10.0.0.1", "10.0.0.2", "fd00::1", "fd00::2"]);
        assert_eq!(both, ["10.0.0.1", "10.0.0.2"]);
        assert_eq!(chosen(&["fd00::1", "fd00::2"]), ["fd00::1", "fd00::2"]);
    }
}
