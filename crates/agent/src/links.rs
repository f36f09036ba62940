//! Links, addresses and routes of the kernel, read by netlink.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use futures_util::TryStreamExt as _;
use ipnet::IpNet;
use rtnetlink::packet_route::address::AddressAttribute;
use rtnetlink::packet_route::link::{
    InfoPortKind, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use rtnetlink::packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol,
};
use rtnetlink::{Handle, RouteMessageBuilder};

use crate::{Error, HostFiles};

/// Names of flags as Go's net package prints them, which the inventory has.
const FLAGS: [(LinkFlags, &str); 6] = [
    (LinkFlags::Up, "up"),
    (LinkFlags::Broadcast, "broadcast"),
    (LinkFlags::Loopback, "loopback"),
    (LinkFlags::Pointopoint, "pointtopoint"),
    (LinkFlags::Multicast, "multicast"),
    (LinkFlags::Running, "running"),
];

/// One network interface.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct NetworkLink {
    pub(crate) index: u32,
    pub(crate) name: String,
    /// The permanent address of a bond's port, else the current one; empty without any.
    pub(crate) mac_address: String,
    pub(crate) mtu: u32,
    /// `physical`, else the kernel's kind: `bond`, `vlan`, `bridge`…, `device` for loopback.
    pub(crate) kind: String,
    pub(crate) flags: Vec<&'static str>,
    pub(crate) addresses: Vec<IpNet>,
}

/// One route of the main table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RouteEntry {
    /// Index of the link.
    pub(crate) link: u32,
    /// None: the default route.
    pub(crate) destination: Option<IpNet>,
    pub(crate) gateway: Option<IpAddr>,
    pub(crate) metric: u32,
    pub(crate) is_ipv6: bool,
    /// From a router's advertisement.
    pub(crate) is_advertised: bool,
}

/// The network configuration at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct LinkTable {
    pub(crate) links: Vec<NetworkLink>,
    pub(crate) routes: Vec<RouteEntry>,
}

impl LinkTable {
    /// Asks the kernel. `files` know which links are hardware.
    pub(crate) async fn read(files: &HostFiles) -> Result<Self, Error> {
        let failed = |error: std::io::Error| Error::io("opening a netlink socket", error);
        let (connection, handle, _) = rtnetlink::new_connection().map_err(failed)?;
        let connection = tokio::spawn(connection);
        let table = dump(&handle, files).await;
        connection.abort();
        table.map_err(|error| Error::new("reading network interfaces", error))
    }

    /// Links that reach other hosts: hardware, bonds and VLANs with an address that others can use.
    ///
    /// Ports of bonds have none; probes over them would pollute the others' ARP tables.
    pub(crate) fn outgoing(&self) -> impl Iterator<Item = &NetworkLink> {
        self.links.iter().filter(|link| {
            matches!(link.kind.as_str(), "physical" | "bond" | "vlan")
                && link.usable_addresses().next().is_some()
        })
    }
}

impl NetworkLink {
    /// Addresses beyond those of the link itself.
    pub(crate) fn usable_addresses(&self) -> impl Iterator<Item = &IpNet> {
        self.addresses.iter().filter(|address| match address {
            IpNet::V4(address) => !address.addr().is_link_local(),
            IpNet::V6(address) => !address.addr().is_unicast_link_local(),
        })
    }
}

async fn dump(handle: &Handle, files: &HostFiles) -> Result<LinkTable, rtnetlink::Error> {
    let mut table = LinkTable::default();
    let mut links = handle.link().get().execute();
    while let Some(message) = links.try_next().await? {
        table.links.push(link(&message, files));
    }
    let mut addresses = handle.address().get().execute();
    while let Some(message) = addresses.try_next().await? {
        let own = table
            .links
            .iter_mut()
            .find(|link| link.index == message.header.index);
        let address = address(&message.attributes, message.header.prefix_len);
        if let (Some(link), Some(address)) = (own, address) {
            link.addresses.push(address);
        }
    }
    let requests = [
        RouteMessageBuilder::<Ipv4Addr>::new().build(),
        RouteMessageBuilder::<Ipv6Addr>::new().build(),
    ];
    for (request, is_ipv6) in requests.into_iter().zip([false, true]) {
        let mut routes = handle.route().get(request).execute();
        while let Some(message) = routes.try_next().await? {
            table.routes.extend(route(&message, is_ipv6));
        }
    }
    Ok(table)
}

fn link(message: &LinkMessage, files: &HostFiles) -> NetworkLink {
    let mut link = NetworkLink {
        index: message.header.index,
        ..NetworkLink::default()
    };
    let (mut current, mut permanent) = (None, None);
    let mut is_port_of_bond = false;
    let mut kind = "device".to_owned();
    for attribute in &message.attributes {
        match attribute {
            LinkAttribute::IfName(name) => name.clone_into(&mut link.name),
            LinkAttribute::Mtu(mtu) => link.mtu = *mtu,
            LinkAttribute::Address(address) => current = Some(mac_address(address)),
            LinkAttribute::PermAddress(address) => permanent = Some(mac_address(address)),
            LinkAttribute::LinkInfo(infos) => {
                for info in infos {
                    match info {
                        LinkInfo::Kind(own) => kind = own.to_string(),
                        LinkInfo::PortKind(InfoPortKind::Bond) => is_port_of_bond = true,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    let permanent = permanent.filter(|_| is_port_of_bond);
    link.mac_address = permanent.or(current).unwrap_or_default();
    let device = files.target(&format!("/sys/class/net/{}", link.name));
    let is_physical = device.is_none_or(|path| !path.contains("/virtual/"));
    link.kind = if is_physical {
        "physical".to_owned()
    } else {
        kind
    };
    let flags = message.header.flags;
    link.flags = FLAGS
        .iter()
        .filter(|(flag, _)| flags.contains(*flag))
        .map(|(_, name)| *name)
        .collect();
    link
}

/// Empty for loopback, whose address is zero.
fn mac_address(bytes: &[u8]) -> String {
    if bytes.iter().all(|byte| *byte == 0) {
        return String::new();
    }
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.join(":")
}

/// The own address: a point-to-point link has the other end's beside it.
fn address(attributes: &[AddressAttribute], prefix: u8) -> Option<IpNet> {
    let own = attributes.iter().find_map(|attribute| match attribute {
        AddressAttribute::Local(address) => Some(*address),
        _ => None,
    });
    let other = || {
        attributes.iter().find_map(|attribute| match attribute {
            AddressAttribute::Address(address) => Some(*address),
            _ => None,
        })
    };
    IpNet::new(own.or_else(other)?, prefix).ok()
}

fn route(message: &RouteMessage, is_ipv6: bool) -> Option<RouteEntry> {
    if message.header.table != RouteHeader::RT_TABLE_MAIN {
        return None;
    }
    let mut link = None;
    let mut entry = RouteEntry {
        link: 0,
        destination: None,
        gateway: None,
        metric: 0,
        is_ipv6,
        is_advertised: message.header.protocol == RouteProtocol::Ra,
    };
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Oif(index) => link = Some(*index),
            RouteAttribute::Priority(metric) => entry.metric = *metric,
            RouteAttribute::Gateway(gateway) => entry.gateway = ip_address(gateway),
            RouteAttribute::Destination(destination) => {
                let length = message.header.destination_prefix_length;
                entry.destination = IpNet::new(ip_address(destination)?, length).ok();
            }
            // Of several next hops, the first.
            RouteAttribute::MultiPath(hops) => {
                let hop = hops.first()?;
                link = Some(hop.interface_index);
                entry.gateway = hop.attributes.iter().find_map(|attribute| match attribute {
                    RouteAttribute::Gateway(gateway) => ip_address(gateway),
                    _ => None,
                });
            }
            _ => {}
        }
    }
    entry.link = link?;
    Some(entry)
}

fn ip_address(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some(IpAddr::V4(*address)),
        RouteAddress::Inet6(address) => Some(IpAddr::V6(*address)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_kernel_lists_loopback() {
        let table = LinkTable::read(&HostFiles::default()).await.unwrap();
        let lo = table.links.iter().find(|link| link.name == "lo").unwrap();
        assert_eq!(lo.kind, "device");
        assert!(lo.flags.contains(&"loopback"), "{lo:?}");
        assert!(lo.addresses.contains(&"127.0.0.1/8".parse().unwrap()));
        assert_eq!(lo.mac_address, "");
        assert!(table.outgoing().all(|link| link.name != "lo"));
    }
}
