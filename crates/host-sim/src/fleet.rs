//! Machines by their number: names, addresses and NICs in one network with DHCP.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::hardware::{DEFAULT_MTU, HostRoute, Nic};
use crate::seed::digest;
use crate::{Error, Hardware, HostFault, Role};

/// Machines get addresses from this one on; those before it are for routers and virtual addresses.
const FIRST_ADDRESS: usize = 9;

/// Numbers of machines in a network.
#[derive(Debug, Clone)]
pub struct Fleet {
    /// Seed of serial numbers and host ids.
    pub seed: String,
    /// Numbers of machines by role.
    pub hosts: Vec<(Role, usize)>,
    /// Faults by name of the machine; "all" means every one.
    pub faults: Vec<(String, HostFault)>,
    /// Their network.
    pub network: Ipv4Net,
}

impl Fleet {
    /// The machines.
    ///
    /// Errors: `Invalid` – more machines than addresses, or a fault of a machine that does not exist.
    pub fn machines(&self) -> Result<Vec<Hardware>, Error> {
        let mut addresses = self.network.hosts();
        let gateway = addresses.next();
        let mut addresses = addresses.skip(FIRST_ADDRESS - 1);
        let mut machines = Vec::new();
        for (role, count) in &self.hosts {
            for number in 0..*count {
                let (Some(ip), Some(gateway)) = (addresses.next(), gateway) else {
                    return Err(Error::invalid(
                        "--network",
                        format!("{} is too small for all machines", self.network),
                    ));
                };
                let name = format!("{role}-{number}");
                let mut machine = Hardware::new(&self.seed, machines.len(), name, *role);
                machine.connect(
                    &self.seed,
                    ip.into(),
                    self.network.prefix_len(),
                    gateway.into(),
                );
                machines.push(machine);
            }
        }
        add_faults(&mut machines, &self.faults)?;
        Ok(machines)
    }
}

impl Hardware {
    /// Gives it a NIC with this address, one without a cable, and the router, which is also the time source.
    pub fn connect(&mut self, seed: &str, address: IpAddr, prefix: u8, gateway: IpAddr) {
        let nic = |name: &str, at: usize, addresses: Vec<IpNet>| Nic {
            name: name.to_owned(),
            mac: mac(seed, self.index, at),
            kind: "physical",
            addresses,
            mtu: DEFAULT_MTU,
        };
        let own = IpNet::new(address, prefix).into_iter().collect();
        self.nics = vec![nic("enp1s0", 0, own), nic("enp2s0", 1, Vec::new())];
        self.routes = vec![default_route(gateway, "enp1s0")];
        self.time_source = Some(gateway);
    }
}

/// A stable MAC address of the NIC at `at` of the machine at `index`.
pub fn mac(seed: &str, index: usize, at: usize) -> String {
    let [a, b, c, ..] = digest(seed, &format!("{index}/nic{at}"));
    format!("52:54:00:{a:02x}:{b:02x}:{c:02x}")
}

/// The route to all networks of the router's family.
pub fn default_route(gateway: IpAddr, interface: &str) -> HostRoute {
    HostRoute {
        destination: match gateway {
            IpAddr::V4(_) => IpNet::V4(Ipv4Net::default()),
            IpAddr::V6(_) => IpNet::V6(Ipv6Net::default()),
        },
        gateway,
        interface: interface.to_owned(),
    }
}

/// Adds faults to the machines that they name; a machine with another's identity takes that of its neighbour.
///
/// Errors: `Invalid` – a machine that does not exist.
pub fn add_faults(machines: &mut [Hardware], faults: &[(String, HostFault)]) -> Result<(), Error> {
    for (name, fault) in faults {
        let is_named = |machine: &Hardware| name == "all" || machine.hostname == *name;
        let named: Vec<usize> = (0..machines.len())
            .filter(|at| is_named(&machines[*at]))
            .collect();
        if named.is_empty() {
            let known: Vec<_> = machines
                .iter()
                .map(|machine| machine.hostname.as_str())
                .collect();
            let reason = format!(
                "there is no machine {name:?}; known are {}",
                known.join(", ")
            );
            return Err(Error::invalid("fault", reason));
        }
        for at in named {
            machines[at].add(*fault);
            if *fault == HostFault::Identity {
                let neighbour = if at == 0 { machines.len() - 1 } else { at - 1 };
                let serial = machines[neighbour].serial.clone();
                machines[at].set_serial(&serial);
                // Both repeat their inventories.
                machines[neighbour].add(*fault);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn fleet(role: Role, count: usize) -> Fleet {
        Fleet {
            seed: "s".into(),
            hosts: vec![(role, count)],
            faults: Vec::new(),
            network: "192.168.126.0/24".parse().unwrap(),
        }
    }

    #[test]
    fn machines_are_named_and_addressed() {
        let fleet = Fleet {
            hosts: vec![(Role::Master, 3), (Role::Worker, 2)],
            faults: vec![("worker-1".into(), HostFault::Ram)],
            ..fleet(Role::Master, 3)
        };
        let machines = fleet.machines().unwrap();
        assert_eq!(machines[0].hostname, "master-0");
        assert_eq!(
            machines[0].nics[0].addresses[0].to_string(),
            "192.168.126.10/24"
        );
        assert_eq!(machines[0].routes[0].destination.to_string(), "0.0.0.0/0");
        assert_eq!(machines[0].routes[0].gateway.to_string(), "192.168.126.1");
        assert!(machines[4].has(HostFault::Ram) && !machines[3].has(HostFault::Ram));
        assert_ne!(machines[0].nics[0].mac, machines[1].nics[0].mac);
    }

    #[test]
    fn a_copied_identity_is_that_of_a_neighbour() {
        let mut machines = fleet(Role::Master, 3).machines().unwrap();
        add_faults(&mut machines, &[("master-0".into(), HostFault::Identity)]).unwrap();
        assert_eq!(machines[0].host_id, machines[2].host_id);
        assert_ne!(machines[0].host_id, machines[1].host_id);
    }

    #[test]
    fn impossible_fleets_are_refused() {
        let mut small = fleet(Role::Master, 5);
        small.network = "10.0.0.0/29".parse().unwrap();
        let text = small.machines().unwrap_err().to_string();
        assert!(text.contains("too small"), "{text}");
        let mut unknown = fleet(Role::Master, 5);
        unknown.faults = vec![("worker-7".into(), HostFault::Ram)];
        let text = unknown.machines().unwrap_err().to_string();
        assert!(text.contains("worker-7"), "{text}");
    }
}
