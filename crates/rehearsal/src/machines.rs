//! Simulated machines of a site: the NICs, addresses and disks of its inventory, and the DHCP server of its networks.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use declarations::site::{
    AutomaticFamilies, HostHardware, HostNetwork, NetworkInterface, RecordedDisk, Site, SiteHost,
};
use host_sim::{
    DEFAULT_MTU, Disk, Hardware, HostFault, HostRoute, InstallationProfile, Network, Nic, Role,
    default_route, mac,
};
use ipnet::{IpNet, Ipv4Net};
use model::expected_hosts::DiskHints;
use model::host::HostRole;
use serde_json::Value;

use crate::Error;

/// Network of sites that declare none.
const DEFAULT_NETWORK: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(192, 168, 126, 0), 24);
/// Addresses that DHCP leaves to routers and virtual addresses.
const RESERVED: usize = 9;
const GIB: u64 = 1 << 30;

/// The number of machines that [`of_site`] makes.
pub(crate) fn count(site: &Site, profile: Option<&InstallationProfile>) -> usize {
    let hosts = if site.hosts.is_empty() {
        let counts = counts(site, profile).into_iter();
        counts.fold(0, |sum: usize, (_, count)| sum.saturating_add(count))
    } else {
        site.hosts.len()
    };
    hosts.saturating_add(profile.map_or(0, |profile| profile.joining))
}

/// The machines of a site. Hosts that no document names are as many as the install-config counts, or the profile.
///
/// Errors: Invalid – more machines than addresses.
pub(crate) fn of_site(
    site: &Site,
    profile: Option<&InstallationProfile>,
    seed: &str,
) -> Result<Vec<Hardware>, Error> {
    let mut dhcp = DhcpServer::of(site);
    let mut machines = Vec::new();
    for host in &site.hosts {
        machines.push(declared(host, machines.len(), seed, &mut dhcp)?);
    }
    if site.hosts.is_empty() {
        for (role, count) in counts(site, profile) {
            for number in 0..count {
                let name = format!("{role}-{number}");
                let mut machine = Hardware::new(seed, machines.len(), name, role);
                dhcp.connect(&mut machine, seed)?;
                machines.push(machine);
            }
        }
    }
    for number in 0..profile.map_or(0, |profile| profile.joining) {
        let name = format!("joining-{number}");
        let mut machine = Hardware::new(seed, machines.len(), name, Role::Worker);
        dhcp.connect(&mut machine, seed)?;
        machine.joins = true;
        machines.push(machine);
    }
    if profile.is_some_and(|profile| profile.has_gpus) {
        let workers = machines
            .iter_mut()
            .filter(|one| one.hostname.contains("worker"));
        workers.for_each(|one| one.has_gpu = true);
    }
    Ok(machines)
}

/// Hardware that suits each role of a cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SufficientHardware {
    cpus: u32,
    ram_bytes: u64,
    disk_bytes: u64,
}

impl SufficientHardware {
    /// The largest of a cluster's requirements, which are those of its release, in the body of
    /// `v2GetPreflightRequirements`.
    pub(crate) fn of(preflight: &Value) -> Self {
        let largest = |member: &str| {
            let roles = ["master", "worker"].iter();
            let needs = roles.map(|role| &preflight["ocp"][role]["quantitative"][member]);
            needs.filter_map(Value::as_u64).max().unwrap_or_default()
        };
        let ram = largest("ram_mib") << 20;
        Self {
            cpus: u32::try_from(largest("cpu_cores")).unwrap_or_default(),
            // The firmware keeps some for itself.
            ram_bytes: ram + ram / 8,
            disk_bytes: largest("disk_size_gb") * 1_000_000_000,
        }
    }

    /// Enlarges the machines of a site without a hardware record, except for the effects of faults.
    pub(crate) fn apply(self, machines: &mut [Hardware], site: &Site) {
        for (at, machine) in machines.iter_mut().enumerate() {
            let host = site.hosts.get(at);
            if host.is_some_and(|host| host.record.hardware.is_some()) {
                continue;
            }
            if !machine.has(HostFault::Cpu) {
                machine.cpus = machine.cpus.max(self.cpus);
            }
            if !machine.has(HostFault::Ram) {
                machine.ram_bytes = machine.ram_bytes.max(self.ram_bytes);
            }
            if !machine.has(HostFault::Disk) {
                let sizes = machine.disks.iter_mut().map(|disk| &mut disk.size_bytes);
                sizes.for_each(|size| *size = self.disk_bytes.max(*size));
            }
        }
    }
}

/// Numbers of machines of a site that declares no hosts.
fn counts(site: &Site, profile: Option<&InstallationProfile>) -> [(Role, usize); 3] {
    let declared = |count: Option<i64>, default: usize| {
        count.map_or(default, |count| usize::try_from(count).unwrap_or_default())
    };
    let [masters, arbiters, workers] = profile.map_or([3, 0, 0], |profile| profile.machines);
    [
        (
            Role::Master,
            declared(site.declaration.control_plane, masters),
        ),
        (Role::Arbiter, declared(site.declaration.arbiters, arbiters)),
        (Role::Worker, declared(site.declaration.workers, workers)),
    ]
}

/// The networks of a site, and the names that its DNS servers have to know.
pub(crate) fn network(site: &Site) -> Network {
    let declaration = &site.declaration;
    let domain = format!(
        "{}.{}",
        declaration.name,
        declaration.base_domain.clone().unwrap_or_default()
    );
    let vip = |member: &str| {
        let vips = site.vips();
        let vip = vips.iter().find(|(name, _)| *name == member);
        vip.map_or_else(|| entry_of(site), |(_, address)| *address)
    };
    let names = [
        ("api", "apiVIPs"),
        ("api-int", "apiVIPs"),
        ("console-openshift-console.apps", "ingressVIPs"),
        ("oauth-openshift.apps", "ingressVIPs"),
    ];
    let mut networks: BTreeSet<IpNet> = site.machine_networks().into_iter().collect();
    let hosts = site.hosts.iter().flat_map(SiteHost::addresses);
    networks.extend(hosts.map(|address| address.trunc()));
    if networks.is_empty() {
        networks.insert(DEFAULT_NETWORK.into());
    }
    Network {
        networks: networks.into_iter().collect(),
        dns: names
            .iter()
            .map(|(name, member)| (format!("{name}.{domain}"), vip(member)))
            .collect(),
        forwards_except: Some(domain),
    }
}

/// The address that the names of a cluster without virtual addresses lead to: that of a single node, else of its load
/// balancer, which is no host.
fn entry_of(site: &Site) -> IpAddr {
    let mut hosts = site.hosts.iter().flat_map(SiteHost::addresses);
    let network = network_of(site);
    if site.declaration.control_plane == Some(1) {
        let first = hosts.next().map(|address| address.addr());
        return first.unwrap_or_else(|| address_at(network, RESERVED));
    }
    let taken: BTreeSet<IpAddr> = hosts.map(|address| address.addr()).collect();
    // Before the addresses of DHCP.
    let mut free = (1..RESERVED).map(|at| address_at(network, at));
    free.find(|address| !taken.contains(address))
        .unwrap_or_else(|| address_at(network, RESERVED - 1))
}

/// The first machine network.
fn network_of(site: &Site) -> IpNet {
    let networks = site.machine_networks();
    networks.first().copied().unwrap_or(DEFAULT_NETWORK.into())
}

/// The address of a host at a position of a network, or that of the network if it has fewer. The first address of an
/// IPv6 network is that of all its routers.
fn address_at(network: IpNet, at: usize) -> IpAddr {
    let at = at + usize::from(network.addr().is_ipv6());
    network.hosts().nth(at).unwrap_or_else(|| network.addr())
}

/// The DHCP server of the first machine network of each address family.
struct DhcpServer {
    pools: Vec<AddressPool>,
    taken: BTreeSet<IpAddr>,
}

struct AddressPool {
    network: IpNet,
    gateway: IpAddr,
    given: usize,
}

/// An address that a machine gets, and the router there.
struct Lease {
    address: IpNet,
    gateway: IpAddr,
}

impl DhcpServer {
    fn of(site: &Site) -> Self {
        let mut networks = vec![network_of(site)];
        let mut others = site.machine_networks().into_iter();
        networks.extend(others.find(|one| one.addr().is_ipv4() != networks[0].addr().is_ipv4()));
        let pools = networks.into_iter().map(|network| AddressPool {
            network,
            gateway: address_at(network, 0),
            given: RESERVED,
        });
        let vips = site.vips().into_iter().map(|(_, address)| address);
        let hosts = site.hosts.iter().flat_map(SiteHost::addresses);
        Self {
            pools: pools.collect(),
            taken: vips.chain(hosts.map(|address| address.addr())).collect(),
        }
    }

    /// An address of each network with one of the families, the first network's first.
    fn lease(&mut self, families: AutomaticFamilies) -> Result<Vec<Lease>, Error> {
        let taken = &mut self.taken;
        let pools = self.pools.iter_mut();
        let pools = pools.filter(|pool| families.has(pool.network.addr()));
        pools.map(|pool| pool.lease(taken)).collect()
    }

    fn connect(&mut self, machine: &mut Hardware, seed: &str) -> Result<(), Error> {
        let families = AutomaticFamilies { v4: true, v6: true };
        for (at, Lease { address, gateway }) in self.lease(families)?.into_iter().enumerate() {
            if at == 0 {
                machine.connect(seed, address.addr(), address.prefix_len(), gateway);
            } else if let Some(nic) = machine.nics.first_mut() {
                nic.addresses.push(address);
                machine.routes.push(default_route(gateway, &nic.name));
            }
        }
        Ok(())
    }
}

impl AddressPool {
    fn lease(&mut self, taken: &mut BTreeSet<IpAddr>) -> Result<Lease, Error> {
        loop {
            let address = self.network.hosts().nth(self.given).ok_or_else(|| {
                let reason = format!("{} has too few addresses for all hosts", self.network);
                Error::invalid("site", reason)
            })?;
            self.given += 1;
            if taken.insert(address) {
                let prefix = self.network.prefix_len();
                let address = IpNet::new(address, prefix).map_err(Error::internal)?;
                let gateway = self.gateway;
                return Ok(Lease { address, gateway });
            }
        }
    }
}

/// The machine of a declared host.
fn declared(
    host: &SiteHost,
    index: usize,
    seed: &str,
    dhcp: &mut DhcpServer,
) -> Result<Hardware, Error> {
    let role = match host.role {
        Some(HostRole::Master | HostRole::Bootstrap) => Role::Master,
        Some(HostRole::Arbiter) => Role::Arbiter,
        // Its hardware suits every role.
        _ => Role::Worker,
    };
    let mut machine = Hardware::new(seed, index, host.name.clone(), role);
    if let Some(hardware) = &host.record.hardware {
        measured(&mut machine, hardware);
    } else if let (Some(hints), Some(disk)) = (&host.disk_hints, machine.disks.first_mut()) {
        fit(disk, hints);
    }
    if let Some(network) = &host.network {
        static_nics(&mut machine, host, network, seed, dhcp)?;
        return Ok(machine);
    }
    dhcp.connect(&mut machine, seed)?;
    for (nic, declared) in machine.nics.iter_mut().zip(&host.interfaces) {
        nic.mac.clone_from(&declared.mac_address);
        if !declared.name.is_empty() {
            nic.name.clone_from(&declared.name);
        }
    }
    let name = machine.nics.first().map(|nic| nic.name.clone());
    for route in &mut machine.routes {
        route.interface = name.clone().unwrap_or_default();
    }
    Ok(machine)
}

/// NICs and routes of a static network; interfaces with DHCP get addresses of the machine networks.
fn static_nics(
    machine: &mut Hardware,
    host: &SiteHost,
    network: &HostNetwork,
    seed: &str,
    dhcp: &mut DhcpServer,
) -> Result<(), Error> {
    for (at, interface) in network.interfaces.iter().enumerate() {
        let mut addresses = interface.addresses.clone();
        for Lease { address, gateway } in dhcp.lease(interface.automatic)? {
            addresses.push(address);
            let route = default_route(gateway, &interface.name);
            machine.routes.push(route);
            machine.time_source.get_or_insert(gateway);
        }
        machine.nics.push(Nic {
            name: interface.name.clone(),
            mac: mac_of(interface, host, network).unwrap_or_else(|| mac(seed, machine.index, at)),
            kind: match interface.kind.as_str() {
                "bond" => "bond",
                "vlan" => "vlan",
                "linux-bridge" | "ovs-bridge" => "bridge",
                _ => "physical",
            },
            addresses,
            mtu: interface.mtu,
        });
    }
    for declared in &host.interfaces {
        let is_known = machine
            .nics
            .iter()
            .any(|nic| nic.mac == declared.mac_address);
        if !is_known {
            machine.nics.push(Nic {
                name: declared.name.clone(),
                mac: declared.mac_address.clone(),
                kind: "physical",
                addresses: Vec::new(),
                mtu: DEFAULT_MTU,
            });
        }
    }
    let routes = network.routes.iter().filter_map(|route| {
        Some(HostRoute {
            destination: route.destination,
            gateway: route.gateway?,
            interface: route.interface.clone(),
        })
    });
    machine.routes.extend(routes);
    machine.has_dns = network.is_automatic() || !network.dns_servers.is_empty();
    Ok(())
}

/// The MAC address of an interface: its own, the declared one, or that of the first interface below it.
fn mac_of(interface: &NetworkInterface, host: &SiteHost, network: &HostNetwork) -> Option<String> {
    let declared = |name: &str| {
        let mut interfaces = host.interfaces.iter();
        let found = interfaces.find(|one| one.name == name);
        found.map(|one| one.mac_address.clone())
    };
    let own = interface.mac_address.clone();
    own.or_else(|| declared(&interface.name)).or_else(|| {
        let below = interface.ports.first()?;
        let nested = network.interfaces.iter().find(|one| one.name == *below);
        // One level: the parent of a VLAN may be a bond, whose ports are declared.
        let port = nested.and_then(|one| one.ports.first());
        declared(below).or_else(|| declared(port?))
    })
}

/// Takes over the members of the hardware record.
fn measured(machine: &mut Hardware, hardware: &HostHardware) {
    if hardware.cpu.count > 0 {
        machine.cpus = hardware.cpu.count;
    }
    if !hardware.cpu.arch.is_empty() {
        machine.architecture.clone_from(&hardware.cpu.arch);
    }
    if hardware.ram_mebibytes > 0 {
        machine.ram_bytes = hardware.ram_mebibytes << 20;
    }
    if !hardware.system_vendor.serial_number.is_empty() {
        machine.set_serial(&hardware.system_vendor.serial_number);
    }
    if !hardware.storage.is_empty() {
        let made = machine.disks.first().cloned();
        let disks = hardware.storage.iter().enumerate();
        machine.disks = disks
            .map(|(at, disk)| recorded(disk, at, made.as_ref()))
            .collect();
    }
}

/// A disk of the record; missing names are made up, as each disk needs one.
fn recorded(disk: &RecordedDisk, at: usize, made: Option<&Disk>) -> Disk {
    let or = |text: &str, other: String| {
        if text.is_empty() {
            other
        } else {
            text.to_owned()
        }
    };
    let wwn = made.map_or_else(String::new, |made| format!("{}{at}", made.wwn));
    Disk {
        path: disk.name.clone(),
        size_bytes: u64::try_from(disk.size_bytes).unwrap_or_default(),
        rotational: disk.rotational,
        vendor: disk.vendor.clone(),
        model: disk.model.clone(),
        serial: disk.serial_number.clone(),
        wwn: or(&disk.wwn, wwn),
        hctl: or(&disk.hctl, format!("{at}:0:0:0")),
    }
}

/// Gives a disk the properties that hints name: without a hardware record they are all that is known of it.
fn fit(disk: &mut Disk, hints: &DiskHints) {
    let texts = [
        (&mut disk.path, &hints.device_name),
        (&mut disk.vendor, &hints.vendor),
        (&mut disk.model, &hints.model),
        (&mut disk.serial, &hints.serial_number),
        (&mut disk.wwn, &hints.wwn),
        (&mut disk.hctl, &hints.hctl),
    ];
    for (text, hint) in texts {
        if !hint.is_empty() {
            text.clone_from(hint);
        }
    }
    let least = u64::try_from(hints.min_size_gigabytes).unwrap_or_default();
    disk.size_bytes = disk.size_bytes.max(least * 1_000_000_000 + GIB);
    disk.rotational = hints.rotational.unwrap_or(disk.rotational);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn site(replicas: [u32; 2]) -> Site {
        let profile = InstallationProfile::parse("sno").unwrap();
        let [masters, workers] = replicas.map(|count| format!("replicas: {count}"));
        let text = crate::sample::site(profile);
        let text = text.split("\n---\n").next().unwrap();
        let text = text.replacen("replicas: 1", &masters, 1);
        declarations::site::parse(&text.replacen("replicas: 0", &workers, 1)).unwrap()
    }

    #[test]
    fn dhcp_gives_an_address_of_each_family() {
        let profile = InstallationProfile::parse("3+0").unwrap();
        let text = crate::sample::site(profile);
        let text = text.split("\n---\n").next().unwrap();
        let machine = "- cidr: 192.168.126.0/24";
        assert!(text.contains(machine), "{text}");
        let text = text
            .replace(machine, &format!("{machine}\n  - cidr: 2001:db8::/64"))
            .replace(
                "hostPrefix: 23",
                "hostPrefix: 23\n  - cidr: fd01::/48\n    hostPrefix: 64",
            )
            .replace("- 172.30.0.0/16", "- 172.30.0.0/16\n  - fd02::/112");
        let site = declarations::site::parse(&text).unwrap();
        let machines = of_site(&site, Some(profile), "seed").unwrap();
        for machine in &machines {
            let addresses = &machine.nics[0].addresses;
            let families: Vec<bool> = addresses.iter().map(|one| one.addr().is_ipv4()).collect();
            assert_eq!(families, [true, false], "{addresses:?}");
            let routes = machine.routes.iter();
            let routers: Vec<_> = routes.map(|route| route.gateway.to_string()).collect();
            assert_eq!(routers, ["192.168.126.1", "2001:db8::1"]);
        }
    }

    #[test]
    fn machines_have_what_the_release_requires() {
        let preflight = json!({ "ocp": {
            "master": { "quantitative": { "cpu_cores": 12, "ram_mib": 65_536, "disk_size_gb": 500 } },
            "worker": { "quantitative": { "cpu_cores": 2, "ram_mib": 8192, "disk_size_gb": 120 } },
        } });
        let needs = SufficientHardware::of(&preflight);
        for replicas in [[1, 0], [1, 2]] {
            let site = site(replicas);
            let mut machines = of_site(&site, None, "1").unwrap();
            machines[0].add(HostFault::Cpu);
            needs.apply(&mut machines, &site);
            let machine = &machines[0];
            assert_eq!((machine.cpus, machine.ram_bytes), (1, 72 * GIB));
            assert_eq!(machine.disks[0].size_bytes, 500_000_000_000);
        }
        assert_eq!(
            SufficientHardware::of(&Value::Null),
            SufficientHardware::default()
        );
    }
}
