//! The simulated network between the machines, and their phases.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};

use ipnet::Ipv4Net;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::{Hardware, Pace};

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

/// State shared by the machines.
#[derive(Debug)]
pub struct World {
    /// The network of all machines.
    pub network: Ipv4Net,
    /// Relation of simulated to real time.
    pub pace: Pace,
    machines: Vec<Arc<Hardware>>,
    dns: BTreeMap<String, Ipv4Addr>,
    nodes: watch::Sender<Vec<NodePhase>>,
    faults: Mutex<Vec<String>>,
    /// Leases of the DHCP server by MAC address.
    leases: Mutex<BTreeMap<String, Ipv4Addr>>,
}

impl World {
    /// A network with these machines and these names in its DNS.
    pub fn new(
        network: Ipv4Net,
        pace: Pace,
        machines: Vec<Arc<Hardware>>,
        dns: BTreeMap<String, Ipv4Addr>,
    ) -> Self {
        let nodes = watch::Sender::new(vec![NodePhase::Live; machines.len()]);
        Self {
            network,
            pace,
            machines,
            dns,
            nodes,
            faults: Mutex::default(),
            leases: Mutex::default(),
        }
    }

    /// All machines, by index.
    pub fn machines(&self) -> &[Arc<Hardware>] {
        &self.machines
    }

    /// The machine with an address of this network.
    pub fn holder(&self, address: &IpAddr) -> Option<&Arc<Hardware>> {
        self.machines
            .iter()
            .find(|machine| IpAddr::V4(machine.ip) == *address)
    }

    /// Whether anything answers at an address: a machine or the router.
    pub fn is_taken(&self, address: Ipv4Addr) -> bool {
        self.machines
            .iter()
            .any(|machine| machine.ip == address || machine.gateway == address)
    }

    /// The address that the DHCP server of the network leases to a MAC address, always the same: at first the wanted one
    /// if it is free, else the last free one.
    pub(crate) fn lease(&self, mac: &str, wanted: Option<Ipv4Addr>) -> Option<Ipv4Addr> {
        let mut leases = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(leased) = leases.get(mac) {
            return Some(*leased);
        }
        let is_free = |address: &Ipv4Addr| {
            !self.is_taken(*address) && !leases.values().any(|leased| leased == address)
        };
        let wanted = wanted.filter(|wanted| self.network.contains(wanted) && is_free(wanted));
        let address = wanted.or_else(|| self.network.hosts().rev().find(is_free))?;
        leases.insert(mac.to_owned(), address);
        Some(address)
    }

    /// DNS lookup of a name, with or without its final dot.
    pub fn resolve(&self, name: &str) -> Option<Ipv4Addr> {
        self.dns.get(name.trim_end_matches('.')).copied()
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
    pub(crate) fn fault(&self, host: &str, text: &str) {
        tracing::error!(host, text, "the server broke the agent protocol");
        self.faults
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(format!("{host}: {text}"));
    }

    /// All breaches of the protocol so far.
    pub fn faults(&self) -> Vec<String> {
        self.faults
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Role;
    use crate::hardware::tests::machine;

    pub(crate) fn world() -> World {
        let machines = (0..3)
            .map(|i| Arc::new(machine(i, Role::Master, vec![])))
            .collect();
        let dns = [(
            "api.c.example.org".to_owned(),
            Ipv4Addr::new(192, 168, 126, 100),
        )]
        .into();
        World::new(
            "192.168.126.0/24".parse().unwrap(),
            Pace::new(1000.0),
            machines,
            dns,
        )
    }

    #[test]
    fn addresses_belong_to_machines() {
        let world = world();
        assert_eq!(
            world
                .holder(&"192.168.126.11".parse().unwrap())
                .unwrap()
                .index,
            1
        );
        assert!(world.holder(&"192.168.126.99".parse().unwrap()).is_none());
        assert!(world.is_taken(Ipv4Addr::new(192, 168, 126, 1)));
        assert!(!world.is_taken(Ipv4Addr::new(192, 168, 126, 100)));
    }

    #[test]
    fn names_resolve_with_and_without_the_final_dot() {
        assert!(world().resolve("api.c.example.org.").is_some());
        assert!(
            world()
                .resolve("validateNoWildcardDNS.c.example.org")
                .is_none()
        );
    }
}
