//! Static networks of hosts, read from nmstate's format as far as mistakes are looked for: addresses, routes, name
//! servers, and the interfaces below bonds, bridges and VLANs. Members of other shapes are skipped; the API refuses them.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::Value;
use static_network::{boolean, integer};

/// MTU of an interface without one. Units: bytes.
const DEFAULT_MTU: u64 = 1500;

/// The static network of a host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostNetwork {
    /// Interfaces in the order of the file.
    pub interfaces: Vec<NetworkInterface>,
    /// Static routes.
    pub routes: Vec<NetworkRoute>,
    /// Addresses of name servers.
    pub dns_servers: Vec<String>,
}

/// An interface of a static network.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NetworkInterface {
    /// Name.
    pub name: String,
    /// Type, such as `ethernet` or `bond`.
    pub kind: String,
    /// Its own MAC address, in lower case.
    pub mac_address: Option<String>,
    /// Units: bytes.
    pub mtu: u64,
    /// Static addresses with their prefixes.
    pub addresses: Vec<IpNet>,
    /// Families of which the network gives it an address.
    pub automatic: AutomaticFamilies,
    /// Names of the interfaces below it.
    pub ports: Vec<String>,
}

/// Address families that an interface gets from DHCP or router advertisements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AutomaticFamilies {
    /// DHCP of IPv4.
    pub v4: bool,
    /// DHCP or autoconfiguration of IPv6.
    pub v6: bool,
}

impl AutomaticFamilies {
    /// Whether an address of any family is given.
    pub fn is_any(self) -> bool {
        self.v4 || self.v6
    }

    /// Whether the family of `address` is given.
    pub fn has(self, address: IpAddr) -> bool {
        if address.is_ipv4() { self.v4 } else { self.v6 }
    }
}

/// A static route.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkRoute {
    /// Network that is reached.
    pub destination: IpNet,
    /// Address of the router; none for networks on the link.
    pub gateway: Option<IpAddr>,
    /// Interface of the route.
    pub interface: String,
}

impl HostNetwork {
    /// Reads a configuration.
    pub fn read(config: &Value) -> Self {
        let interfaces = list(&config["interfaces"]).filter(|one| one["state"] != "absent");
        let routes = list(&config["routes"]["config"]);
        Self {
            interfaces: interfaces.map(interface).collect(),
            routes: routes.filter_map(route).collect(),
            dns_servers: texts(&config["dns-resolver"]["config"]["server"]),
        }
    }

    /// Static addresses of all interfaces.
    pub fn addresses(&self) -> impl Iterator<Item = IpNet> {
        let interfaces = self.interfaces.iter();
        interfaces.flat_map(|one| one.addresses.iter().copied())
    }

    /// Whether some address is given by a server on the network.
    pub fn is_automatic(&self) -> bool {
        self.interfaces.iter().any(|one| one.automatic.is_any())
    }

    /// Whether packets to an address have a way out: its network is on a link, or a route leads there.
    pub fn reaches(&self, address: IpAddr) -> bool {
        let is_near = |network: IpNet| network.contains(&address);
        self.addresses().any(is_near) || self.routes.iter().any(|one| is_near(one.destination))
    }

    /// The router of the default route of the first such family.
    pub fn gateway(&self) -> Option<IpAddr> {
        let mut defaults = self.routes.iter().filter(|one| one.is_default());
        defaults.find_map(|route| route.gateway)
    }
}

impl NetworkRoute {
    /// Whether it leads to every address of its family.
    pub fn is_default(&self) -> bool {
        self.destination.prefix_len() == 0
    }
}

fn interface(value: &Value) -> NetworkInterface {
    let is_true = |value: &Value| boolean(value) == Some(true);
    let is_on = |family: &&Value| boolean(&family["enabled"]) != Some(false);
    let [v4, v6] = ["ipv4", "ipv6"].map(|name| Some(&value[name]).filter(is_on));
    let families = [v4, v6].into_iter().flatten();
    let addresses = families.flat_map(|family| list(&family["address"]));
    let address = |one: &Value| {
        let prefix = u8::try_from(integer(&one["prefix-length"])?).ok()?;
        IpNet::new(one["ip"].as_str()?.parse().ok()?, prefix).ok()
    };
    let is_dynamic = |family: &Value| is_true(&family["dhcp"]) || is_true(&family["autoconf"]);
    NetworkInterface {
        name: text(&value["name"]),
        kind: text(&value["type"]),
        mac_address: value["mac-address"].as_str().map(str::to_lowercase),
        mtu: integer(&value["mtu"])
            .and_then(|mtu| u64::try_from(mtu).ok())
            .unwrap_or(DEFAULT_MTU),
        addresses: addresses.filter_map(address).collect(),
        automatic: AutomaticFamilies {
            v4: v4.is_some_and(is_dynamic),
            v6: v6.is_some_and(is_dynamic),
        },
        ports: ports(value),
    }
}

/// Names of the interfaces below one: ports of bonds, bridges and VRFs, and parents.
fn ports(value: &Value) -> Vec<String> {
    let mut names = Vec::new();
    for controller in ["link-aggregation", "bond", "vrf", "bridge"] {
        for member in ["port", "ports", "slaves"] {
            for port in list(&value[controller][member]) {
                add_ports(port, &mut names);
            }
        }
    }
    for child in ["vlan", "vxlan", "mac-vlan", "mac-vtap", "infiniband"] {
        let parent = value[child]["base-iface"].as_str();
        names.extend(parent.filter(|it| !it.is_empty()).map(str::to_owned));
    }
    names
}

/// A port by its name; a bond in a bridge of Open vSwitch is no interface, and has ports of its own.
fn add_ports(port: &Value, names: &mut Vec<String>) {
    let bond = [&port["link-aggregation"], &port["bond"]];
    let inner: Vec<&Value> = bond
        .into_iter()
        .flat_map(|bond| list(&bond["port"]).chain(list(&bond["ports"])))
        .collect();
    if inner.is_empty() {
        let name = port.as_str().or_else(|| port["name"].as_str());
        names.extend(name.map(str::to_owned));
    }
    for port in inner {
        add_ports(port, names);
    }
}

fn route(value: &Value) -> Option<NetworkRoute> {
    let gateway = value["next-hop-address"].as_str();
    Some(NetworkRoute {
        destination: value["destination"].as_str()?.parse().ok()?,
        gateway: gateway.and_then(|text| text.parse().ok()),
        interface: text(&value["next-hop-interface"]),
    })
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    let texts = list(value).filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}
