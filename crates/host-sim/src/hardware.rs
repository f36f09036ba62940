//! Hardware of a simulated machine.

mod inventory;

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use md5::{Digest, Md5};
use uuid::Uuid;

use crate::HostFault;
use crate::seed::digest;

const GIB: u64 = 1 << 30;
/// Size of disks with [`HostFault::Disk`]. Units: bytes.
const SMALL_DISK: u64 = 20_000_000_000;
/// MTU of interfaces without another. Units: bytes.
pub const DEFAULT_MTU: u64 = 1500;

/// Intended role of a machine: it sets size and name, and is not sent to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Sized for the control plane.
    Master,
    /// Sized for two-node control planes' third member.
    Arbiter,
    /// Sized for workloads.
    Worker,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Master => "master",
            Self::Arbiter => "arbiter",
            Self::Worker => "worker",
        })
    }
}

/// One machine.
#[derive(Debug, Clone)]
pub struct Hardware {
    /// Position among all machines.
    pub index: usize,
    /// Name that its DHCP server or its configuration gives it.
    pub hostname: String,
    /// Id that the agent derives from the serial number of the board.
    pub host_id: Uuid,
    /// Serial number of the system.
    pub serial: String,
    /// Architecture as the kernel names it.
    pub architecture: String,
    /// Interfaces; the first with an address carries the traffic to the server.
    pub nics: Vec<Nic>,
    /// Routes; those of the interfaces' own networks are left out.
    pub routes: Vec<HostRoute>,
    /// Whether names are resolved: some name server is configured.
    pub has_dns: bool,
    /// Time source that DHCP gives.
    pub time_source: Option<IpAddr>,
    /// Processors.
    pub cpus: u32,
    /// Memory, in bytes.
    pub ram_bytes: u64,
    /// Disks; the first is the largest of those that suit.
    pub disks: Vec<Disk>,
    /// Whether it has a GPU for computing.
    pub has_gpu: bool,
    /// Whether it boots when the cluster is installed.
    pub joins: bool,
    /// Its faults.
    pub faults: Vec<HostFault>,
}

/// An interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nic {
    /// Name.
    pub name: String,
    /// Hardware address.
    pub mac: String,
    /// Type on the wire: `physical`, `bond`, `vlan`.
    pub kind: &'static str,
    /// Addresses with their prefixes; without any it has no cable.
    pub addresses: Vec<IpNet>,
    /// Units: bytes.
    pub mtu: u64,
}

/// A route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRoute {
    /// Network that is reached.
    pub destination: IpNet,
    /// Address of the router.
    pub gateway: IpAddr,
    /// Name of the interface.
    pub interface: String,
}

/// A disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// Path of the device, such as `/dev/sda`.
    pub path: String,
    /// Units: bytes.
    pub size_bytes: u64,
    /// Whether it has spinning platters.
    pub rotational: bool,
    /// Vendor.
    pub vendor: String,
    /// Model.
    pub model: String,
    /// Serial number.
    pub serial: String,
    /// World wide name.
    pub wwn: String,
    /// SCSI location.
    pub hctl: String,
}

impl Disk {
    /// The stable name of the disk.
    pub fn by_id(&self) -> String {
        format!("/dev/disk/by-id/wwn-{}", self.wwn)
    }
}

impl Hardware {
    /// A machine of a role without interfaces; the same seed always gives the same serial numbers.
    pub fn new(seed: &str, index: usize, hostname: String, role: Role) -> Self {
        let serial = hex(digest(seed, &format!("{index}/serial")))[..10].to_uppercase();
        let (cpus, ram_gib) = match role {
            Role::Master => (8, 24),
            Role::Arbiter => (4, 12),
            Role::Worker => (16, 48),
        };
        Self {
            index,
            hostname,
            host_id: host_id(&serial),
            architecture: "x86_64".to_owned(),
            nics: Vec::new(),
            routes: Vec::new(),
            has_dns: true,
            time_source: None,
            cpus,
            ram_bytes: ram_gib * GIB,
            disks: vec![disk(&serial)],
            serial,
            has_gpu: false,
            joins: false,
            faults: Vec::new(),
        }
    }

    /// Sets the serial number, and the host id that follows from it.
    pub fn set_serial(&mut self, serial: &str) {
        serial.clone_into(&mut self.serial);
        self.host_id = host_id(serial);
    }

    /// Adds a fault, with its effect on the hardware.
    pub fn add(&mut self, fault: HostFault) {
        match fault {
            HostFault::Ram => self.ram_bytes = 4 * GIB,
            HostFault::Cpu => self.cpus = 1,
            HostFault::Disk => {
                let sizes = self.disks.iter_mut().map(|disk| &mut disk.size_bytes);
                sizes.for_each(|size| *size = SMALL_DISK);
            }
            _ => {}
        }
        self.faults.push(fault);
    }

    /// Whether it has this fault.
    pub fn has(&self, fault: HostFault) -> bool {
        self.faults.contains(&fault)
    }

    /// The stable name of the first disk.
    pub fn disk_by_id(&self) -> String {
        self.disks.first().map(Disk::by_id).unwrap_or_default()
    }

    /// Whether it has a disk of this stable name or path.
    pub fn has_disk(&self, name: &str) -> bool {
        let mut disks = self.disks.iter();
        disks.any(|disk| disk.path == name || disk.by_id() == name)
    }

    /// All its addresses.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        let addresses = self.nics.iter().flat_map(|nic| &nic.addresses);
        addresses.map(IpNet::addr)
    }

    /// The interface with an address.
    pub fn holder(&self, address: IpAddr) -> Option<&Nic> {
        let mut nics = self.nics.iter();
        nics.find(|nic| nic.addresses.iter().any(|own| own.addr() == address))
    }

    /// The interface whose network has an address, and its own address there.
    pub fn link_to(&self, address: IpAddr) -> Option<(&Nic, IpAddr)> {
        self.nics.iter().find_map(|nic| {
            let mut own = nic.addresses.iter();
            let own = own.find(|own| own.contains(&address))?;
            Some((nic, own.addr()))
        })
    }

    /// The interface that leads to an address, by its own networks or a router on one of them; and its own address.
    pub fn path_to(&self, address: IpAddr) -> Option<(&Nic, IpAddr)> {
        self.link_to(address).or_else(|| {
            let mut routes = self.routes.iter();
            let route = routes.find(|route| route.destination.contains(&address))?;
            self.link_of(route)
        })
    }

    /// The interface of a route's router, and its own address. A link-local router needs no network on the interface.
    pub(crate) fn link_of(&self, route: &HostRoute) -> Option<(&Nic, IpAddr)> {
        let is_link_local =
            matches!(route.gateway, IpAddr::V6(gateway) if gateway.is_unicast_link_local());
        self.link_to(route.gateway).or_else(|| {
            let mut nics = self.nics.iter().filter(|_| is_link_local);
            let nic = nics.find(|nic| nic.name == route.interface)?;
            let mut own = nic.addresses.iter().map(IpNet::addr);
            Some((nic, own.find(IpAddr::is_ipv6)?))
        })
    }
}

/// Source: assisted-installer-agent, which hashes the serial number.
fn host_id(serial: &str) -> Uuid {
    Uuid::from_bytes(Md5::digest(serial).into())
}

/// A disk that suits every role.
fn disk(serial: &str) -> Disk {
    let digest: [u8; 16] = Md5::digest(format!("{serial}/wwn")).into();
    Disk {
        path: "/dev/sda".to_owned(),
        size_bytes: 240_057_409_536,
        rotational: false,
        vendor: "ATA".to_owned(),
        model: "MZ7KH240HAHQ0D3".to_owned(),
        serial: format!("S47N{serial}"),
        wwn: format!("0x50{}", &hex(digest)[..14]),
        hctl: "0:0:0:0".to_owned(),
    }
}

pub(crate) fn hex(digest: [u8; 16]) -> String {
    Uuid::from_bytes(digest).simple().to_string()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::default_route;
    use crate::fleet::tests::fleet;

    pub(crate) fn machine(index: usize, role: Role, faults: &[HostFault]) -> Hardware {
        let mut machine = fleet(role, index + 1).machines().unwrap().remove(index);
        for fault in faults {
            machine.add(*fault);
        }
        machine
    }

    #[test]
    fn the_same_seed_gives_the_same_machine() {
        let of = |index| machine(index, Role::Worker, &[]);
        assert_eq!(of(1).inventory(), of(1).inventory());
        assert_ne!(of(1).host_id, of(2).host_id);
    }

    #[test]
    fn paths_lead_over_links_and_routers() {
        let machine = machine(0, Role::Worker, &[]);
        let own: IpAddr = "192.168.126.10".parse().unwrap();
        let near = machine.link_to("192.168.126.77".parse().unwrap()).unwrap();
        assert_eq!((near.0.name.as_str(), near.1), ("enp1s0", own));
        assert!(machine.link_to("10.0.0.1".parse().unwrap()).is_none());
        let mut other = machine.clone();
        other.nics[0].addresses = vec!["fd00::5/64".parse().unwrap()];
        let route = default_route("fe80::1".parse().unwrap(), &other.nics[0].name);
        let near = other.link_of(&route).unwrap();
        assert_eq!(near.1, "fd00::5".parse::<IpAddr>().unwrap());
        assert_eq!(machine.path_to("10.0.0.1".parse().unwrap()).unwrap().1, own);
        assert!(machine.path_to("fd00::1".parse().unwrap()).is_none());
    }

    #[test]
    fn weak_machines_are_weak() {
        let inventory = machine(4, Role::Worker, &[HostFault::Ram, HostFault::Disk]).inventory();
        assert_eq!(inventory["memory"]["physical_bytes"], 4_u64 << 30);
        assert_eq!(inventory["disks"][0]["size_bytes"], SMALL_DISK);
        assert_eq!(inventory["cpu"]["count"], 16);
    }
}
