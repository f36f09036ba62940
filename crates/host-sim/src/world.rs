//! The simulated network between the machines, and their phases.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};

use ipnet::{IpNet, Ipv4Net};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{Hardware, Nic, Pace};

/// Address of names elsewhere, reserved for documentation (RFC 5737).
pub(crate) const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1));

/// Phase of a machine that boots from its own disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum NodePhase {
    /// It still runs the discovery image.
    #[default]
    Live,
    /// It starts from its disk.
    Booting,
    /// It has asked the machine config server for its configuration.
    Configuring,
    /// The cluster knows it, it is not ready yet.
    Joined,
    /// It runs workloads.
    Ready,
}

/// Networks of a simulation, and their name service.
#[derive(Debug, Clone, Default)]
pub struct Network {
    /// Networks of the machines.
    pub networks: Vec<IpNet>,
    /// DNS records: names without their final dot.
    pub dns: BTreeMap<String, IpAddr>,
    /// Names outside this domain resolve, too; none: no other names do.
    pub forwards_except: Option<String>,
}

/// State shared by the machines.
#[derive(Debug)]
pub struct World {
    /// The networks of all machines.
    pub network: Network,
    /// Relation of simulated to real time.
    pub pace: Pace,
    /// Seed of chance events.
    pub(crate) seed: String,
    /// Whether the files of installations are dummies.
    pub(crate) has_dummy_files: bool,
    /// Cancelled at the end of the simulation.
    pub(crate) ended: CancellationToken,
    machines: Vec<Arc<Hardware>>,
    nodes: watch::Sender<Vec<NodePhase>>,
    is_open: watch::Sender<bool>,
    breaches: Mutex<Vec<String>>,
    /// Leases of the DHCP servers by MAC address.
    leases: Mutex<BTreeMap<String, Ipv4Addr>>,
}

impl World {
    /// A world of these machines and networks.
    pub fn new(network: Network, pace: Pace, seed: &str, machines: Vec<Arc<Hardware>>) -> Self {
        let nodes = watch::Sender::new(vec![NodePhase::Live; machines.len()]);
        Self {
            network,
            pace,
            seed: seed.to_owned(),
            has_dummy_files: false,
            ended: CancellationToken::new(),
            machines,
            nodes,
            is_open: watch::Sender::new(false),
            breaches: Mutex::default(),
            leases: Mutex::default(),
        }
    }

    /// All machines, by index.
    pub fn machines(&self) -> &[Arc<Hardware>] {
        &self.machines
    }

    /// The other machine and its interface with an address.
    pub fn holder(&self, address: IpAddr, asking: usize) -> Option<(&Arc<Hardware>, &Nic)> {
        let others = self.machines.iter().filter(|one| one.index != asking);
        let mut found = others.filter_map(|one| Some((one, one.holder(address)?)));
        found.next()
    }

    /// Whether anything answers at an address: a machine or a router.
    pub fn is_taken(&self, address: IpAddr) -> bool {
        self.machines.iter().any(|machine| {
            let mut routers = machine.routes.iter().map(|route| route.gateway);
            machine.holder(address).is_some() || routers.any(|router| router == address)
        })
    }

    /// Whether an address belongs to a network and nothing answers there.
    pub fn is_free(&self, address: IpAddr) -> bool {
        let mut networks = self.network.networks.iter();
        networks.any(|network| network.contains(&address)) && !self.is_taken(address)
    }

    /// The address that the DHCP server of a network leases to a MAC address, always the same: at first the wanted one
    /// if it is free, else the last free one.
    pub(crate) fn lease(
        &self,
        network: Ipv4Net,
        mac: &str,
        wanted: Option<Ipv4Addr>,
    ) -> Option<Ipv4Addr> {
        let mut leases = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(leased) = leases.get(mac) {
            return Some(*leased);
        }
        let is_free = |address: &Ipv4Addr| {
            !self.is_taken(IpAddr::V4(*address)) && !leases.values().any(|leased| leased == address)
        };
        let wanted = wanted.filter(|wanted| network.contains(wanted) && is_free(wanted));
        let address = wanted.or_else(|| network.hosts().rev().find(is_free))?;
        leases.insert(mac.to_owned(), address);
        Some(address)
    }

    /// DNS lookup of a name, with or without its final dot.
    pub fn resolve(&self, name: &str) -> Option<IpAddr> {
        let name = name.trim_end_matches('.');
        let known = self.network.dns.get(name).copied();
        let other = self.network.forwards_except.as_deref();
        let other = other.filter(|domain| !name.ends_with(domain));
        known.or(other.map(|_| ELSEWHERE))
    }

    /// Lets the machines boot that join the installed cluster.
    pub(crate) fn open(&self) {
        self.is_open.send_replace(true);
    }

    /// Waits until the cluster can be joined.
    pub(crate) async fn until_open(&self) {
        let mut is_open = self.is_open.subscribe();
        // The sender lives in self, so the channel cannot be closed while this waits.
        let _ = is_open.wait_for(|is_open| *is_open).await;
    }

    /// Sets the phase of a machine.
    pub(crate) fn set_node(&self, index: usize, phase: NodePhase) {
        self.nodes.send_modify(|nodes| {
            if let Some(node) = nodes.get_mut(index) {
                *node = phase;
            }
        });
    }

    /// Phase of a machine.
    pub(crate) fn node(&self, index: usize) -> NodePhase {
        self.nodes.borrow().get(index).copied().unwrap_or_default()
    }

    /// Waits until a condition on all nodes holds.
    pub(crate) async fn nodes_until(&self, mut holds: impl FnMut(&[NodePhase]) -> bool) {
        let mut nodes = self.nodes.subscribe();
        // The sender lives in self, so the channel cannot be closed while this waits.
        let _ = nodes.wait_for(|nodes| holds(nodes)).await;
    }

    /// Records a breach of the protocol by the server: it is logged and sets the exit code.
    pub(crate) fn breach(&self, host: &str, text: &str) {
        tracing::error!(host, text, "the server broke the agent protocol");
        self.breaches
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(format!("{host}: {text}"));
    }

    /// All breaches of the protocol so far.
    pub fn breaches(&self) -> Vec<String> {
        self.breaches
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Role;
    use crate::fleet::tests::fleet;

    pub(crate) fn network() -> Network {
        Network {
            networks: vec!["192.168.126.0/24".parse().unwrap()],
            dns: [(
                "api.c.example.org".to_owned(),
                "192.168.126.100".parse().unwrap(),
            )]
            .into(),
            forwards_except: None,
        }
    }

    pub(crate) fn world() -> World {
        let machines = fleet(Role::Master, 3).machines().unwrap();
        let machines = machines.into_iter().map(Arc::new).collect();
        World::new(network(), Pace::new(1000.0), "s", machines)
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_belong_to_machines() {
        let world = world();
        assert_eq!(world.holder(ip("192.168.126.11"), 0).unwrap().0.index, 1);
        assert!(world.holder(ip("192.168.126.11"), 1).is_none());
        assert!(world.holder(ip("192.168.126.99"), 0).is_none());
        assert!(world.is_taken(ip("192.168.126.1")));
        assert!(world.is_free(ip("192.168.126.100")));
        assert!(!world.is_free(ip("192.168.126.10")));
        assert!(!world.is_free(ip("10.0.0.1")));
    }

    #[test]
    fn names_resolve_with_and_without_the_final_dot() {
        let mut world = world();
        let wildcard = "validateNoWildcardDNS.c.example.org";
        assert!(world.resolve("api.c.example.org.").is_some());
        assert!(world.resolve(wildcard).is_none());
        assert!(world.resolve("quay.io").is_none());
        world.network.forwards_except = Some("c.example.org".to_owned());
        assert!(world.resolve(wildcard).is_none());
        assert_eq!(world.resolve("quay.io"), Some(ELSEWHERE));
    }
}
