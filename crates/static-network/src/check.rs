//! Checks of an nmstate configuration that need no machine: each mistake that nmstate would refuse on the host, which then has
//! no network to report it, is refused here with its position. Kinds of interfaces that are not known pass.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;
use located_yaml::Position;
use located_yaml::v1_2::{ConfigNode, NodeValue};
use model::nearest;
use serde_json::Value;

use crate::check_table::{DOCUMENT, INTERFACE, NEEDED, NetworkShape, SECTIONS, TYPES, WordIndex};
use crate::scalar::{boolean, integer};

/// Longest name of an interface. Source: Linux, IFNAMSIZ. Units: bytes.
const NAME_BYTES: usize = 15;
/// Wrong letters of a name that still suggest a known one.
const TYPOS: usize = 2;
/// Mistakes of one configuration that are listed; looking for more costs time.
const MAX_PROBLEMS: usize = 100;
/// Least MTU of an interface with IPv6. Source: RFC 8200, 5.
const IPV6_MTU: i64 = 1280;
/// Lengths of hardware addresses: of Ethernet and of InfiniBand. Units: bytes.
const MAC_BYTES: [usize; 2] = [6, 20];
/// The loopback interface, which every host has.
const LOOPBACK: &str = "lo";

/// A mistake in a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkProblem {
    /// Its position in the text.
    pub at: Position,
    /// Path of the member, with a dot or an index in front.
    pub path: String,
    /// The mistake, and an acceptable value.
    pub reason: String,
    /// Names of interfaces that do not fit together; each value alone is right.
    pub is_disagreement: bool,
}

impl fmt::Display for NetworkProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            at, path, reason, ..
        } = self;
        match path.trim_start_matches('.') {
            "" => write!(f, "{at}: {reason}"),
            path => write!(f, "{at}: {path}: {reason}"),
        }
    }
}

/// The mistakes of a configuration. `nics` are logical names, which the host replaces by those of its NICs; none where
/// the configuration has the names of the machine.
pub fn problems(document: &ConfigNode, nics: Option<&BTreeSet<&str>>) -> Vec<NetworkProblem> {
    let mut check = NetworkCheck {
        nics,
        problems: Vec::new(),
        names: BTreeMap::new(),
        controllers: BTreeMap::new(),
    };
    check.document(document);
    check.problems
}

struct NetworkCheck<'a> {
    nics: Option<&'a BTreeSet<&'a str>>,
    problems: Vec<NetworkProblem>,
    /// Interfaces of the document by name.
    names: BTreeMap<String, &'a ConfigNode>,
    /// Controllers by port.
    controllers: BTreeMap<String, String>,
}

impl<'a> NetworkCheck<'a> {
    fn refuse(&mut self, at: Position, path: &str, reason: impl Into<String>) {
        if self.problems.len() == MAX_PROBLEMS {
            return;
        }
        self.problems.push(NetworkProblem {
            at,
            path: path.to_owned(),
            reason: reason.into(),
            is_disagreement: false,
        });
    }

    /// Adds a refusal of names that do not fit together.
    fn disagree(&mut self, at: Position, path: &str, reason: String) {
        if self.problems.len() == MAX_PROBLEMS {
            return;
        }
        self.problems.push(NetworkProblem {
            at,
            path: path.to_owned(),
            reason,
            is_disagreement: true,
        });
    }

    /// Whether it is a logical name of a NIC.
    fn is_nic(&self, name: &str) -> bool {
        self.nics.is_some_and(|nics| nics.contains(name))
    }

    /// Whether the machine may have such a NIC.
    fn is_found(&self, name: &str) -> bool {
        self.nics.is_none_or(|nics| nics.contains(name)) || is_predictable(name)
    }

    fn document(&mut self, document: &'a ConfigNode) {
        self.value(document, NetworkShape::Object(DOCUMENT), "");
        let Some(list) = document.get("interfaces") else {
            let reason =
                "has no list of interfaces: write \"interfaces:\" and one item for each interface";
            return self.refuse(document.at, "", reason);
        };
        let NodeValue::List(interfaces) = &list.value else {
            let reason = "is no list: write one item for each interface";
            return self.refuse(list.at, ".interfaces", reason);
        };
        for (index, interface) in interfaces.iter().enumerate() {
            self.interface(interface, &format!(".interfaces[{index}]"));
        }
        for (index, interface) in interfaces.iter().enumerate() {
            if !is_absent(interface) {
                self.links(interface, &format!(".interfaces[{index}]"));
            }
        }
        self.routes(document);
        self.servers(document);
    }

    fn interface(&mut self, interface: &'a ConfigNode, path: &str) {
        let name = text(interface, "name");
        if name.is_empty() {
            let reason = "has no name: add \"name:\", a number in quotes";
            return self.refuse(interface.at, path, reason);
        }
        let kind = text(interface, "type");
        // An Open vSwitch bridge may share its name with its own interface.
        if kind != "ovs-bridge" && self.names.insert(name.to_owned(), interface).is_some() {
            let reason =
                format!("{name:?} is the name of an interface above: nmstate keeps one of them");
            self.refuse(interface.at, path, reason);
        }
        if is_absent(interface) {
            return;
        }
        let is_bad = |letter: char| letter == '/' || letter.is_whitespace();
        if !self.is_nic(name) && (name.len() > NAME_BYTES || name.contains(is_bad)) {
            let reason = format!(
                "{name:?} is no name of an interface: use at most {NAME_BYTES} bytes without blanks and slashes"
            );
            self.refuse(interface.at, &format!("{path}.name"), reason);
        }
        let is_nic = matches!(kind, "" | "ethernet" | "802-3-ethernet");
        if is_nic && text(interface, "identifier") != "mac-address" && !self.is_found(name) {
            let reason = format!(
                "{name:?} is not in mac_interface_map: add its MAC address there (in agent-config.yaml, to interfaces)"
            );
            self.disagree(interface.at, &format!("{path}.name"), reason);
        }
        self.sections(interface, kind, path);
        if !kind.is_empty() && !TYPES.contains(&kind) {
            return;
        }
        self.value(interface, NetworkShape::Object(INTERFACE), path);
        self.needed(interface, kind, path);
        for family in ["ipv4", "ipv6"] {
            if let Some(node) = interface.get(family) {
                self.addresses(node, family, &format!("{path}.{family}"));
            }
        }
        self.mtu(interface, path);
        self.mac_address(interface, path);
        self.bond_monitors(interface, path);
    }

    fn mac_address(&mut self, interface: &ConfigNode, path: &str) {
        let Some((node, text)) = interface
            .get("mac-address")
            .and_then(|node| Some((node, node.as_text()?)))
        else {
            return;
        };
        let mut bytes = text.split([':', '-']);
        let is_hex = |byte: &str| byte.len() == 2 && u8::from_str_radix(byte, 16).is_ok();
        let is_long = MAC_BYTES.contains(&bytes.clone().count());
        let is_address = is_long && bytes.all(is_hex);
        if !is_address && !text.is_empty() {
            let reason = format!(
                "{:?} is no MAC address: write 52:54:00:12:34:56",
                shortened(text)
            );
            self.refuse(node.at, &format!("{path}.mac-address"), reason);
        }
    }

    /// Source: nmstate, rust/src/lib/ifaces/bond.rs, validate_miimon_and_arp_interval.
    fn bond_monitors(&mut self, interface: &ConfigNode, path: &str) {
        let mut sections = ["link-aggregation", "bond"].into_iter();
        let Some(options) = sections.find_map(|section| interface.find(&[section, "options"]))
        else {
            return;
        };
        let is_set = |name: &str| {
            options
                .get(name)
                .and_then(number)
                .is_some_and(|value| value > 0)
        };
        if is_set("miimon") && is_set("arp_interval") {
            let reason = "has miimon and arp_interval: a bond watches its links in one way";
            let path = format!("{path}.link-aggregation.options");
            self.refuse(options.at, &path, reason);
        }
    }

    /// Sections of another type: nmstate refuses them, also in an interface of a type that it does not know.
    fn sections(&mut self, interface: &ConfigNode, kind: &str, path: &str) {
        let kind = if kind.is_empty() { "ethernet" } else { kind };
        for member in interface.members() {
            let row = SECTIONS.iter().find(|(name, _)| *name == member.name);
            if let Some((name, types)) = row.filter(|(_, types)| !types.contains(&kind)) {
                let types = types.join(" or ");
                let reason = format!("belongs to type {types}, and the type is {kind}");
                self.refuse(member.at, &format!("{path}.{name}"), reason);
            }
        }
    }

    /// Sections and members that the type of an interface needs.
    fn needed(&mut self, interface: &ConfigNode, kind: &str, path: &str) {
        let Some((_, section, members)) = NEEDED.iter().find(|(name, _, _)| *name == kind) else {
            return;
        };
        let aliases = [*section, if kind == "bond" { "bond" } else { section }];
        let Some(node) = aliases.iter().find_map(|name| interface.get(name)) else {
            let reason = format!("has no {section}, which an interface of type {kind} needs");
            return self.refuse(interface.at, path, reason);
        };
        for member in *members {
            if node.get(member).is_none() {
                let reason = format!("has no {member}, which an interface of type {kind} needs");
                self.refuse(node.at, &format!("{path}.{section}"), reason);
            }
        }
    }

    fn addresses(&mut self, node: &ConfigNode, family: &str, path: &str) {
        let bits = if family == "ipv4" { 32 } else { 128 };
        let addresses = node.get("address").map(ConfigNode::items);
        for (index, entry) in addresses.unwrap_or_default().iter().enumerate() {
            let path = format!("{path}.address[{index}]");
            for member in ["ip", "prefix-length"] {
                if entry.get(member).is_none() {
                    self.refuse(entry.at, &path, format!("has no {member}"));
                }
            }
            if let Some((ip, node)) = address(entry, "ip")
                && ip.is_ipv4() != (family == "ipv4")
            {
                let reason = format!("{ip} is of the other family");
                self.refuse(node.at, &format!("{path}.ip"), reason);
            }
            if let Some(node) = entry.get("prefix-length")
                && number(node).is_some_and(|prefix| prefix > bits && prefix <= 255)
            {
                let reason = format!("is too long: {family} has at most {bits} bits");
                self.refuse(node.at, &format!("{path}.prefix-length"), reason);
            }
        }
    }

    fn mtu(&mut self, interface: &ConfigNode, path: &str) {
        let is_ipv6 = is_enabled(interface, "ipv6");
        if let Some(node) = interface.get("mtu")
            && is_ipv6
            && number(node).is_some_and(|mtu| mtu < IPV6_MTU)
        {
            let reason = format!("is too small: IPv6 needs at least {IPV6_MTU}");
            self.refuse(node.at, &format!("{path}.mtu"), reason);
        }
    }

    /// Interfaces below this one: each is there, and belongs to one controller, once.
    fn links(&mut self, interface: &'a ConfigNode, path: &str) {
        let name = text(interface, "name").to_owned();
        for (port, below) in ports(interface) {
            let path = format!("{path}.{below}");
            if port.name == name && text(interface, "type") != "ovs-bridge" {
                let reason = format!("{name:?} is a port of itself");
                self.refuse(port.at, &path, reason);
                continue;
            }
            self.lower(&port, &path);
            if let Some(other) = self.controllers.insert(port.name.to_owned(), name.clone()) {
                let reason = if other == name {
                    format!("{:?} is a port of {name} twice", port.name)
                } else {
                    format!(
                        "{:?} is a port of {other}, too: a port has one controller",
                        port.name
                    )
                };
                self.refuse(port.at, &path, reason);
            }
        }
        for section in ["vlan", "vxlan", "mac-vlan", "mac-vtap", "infiniband"] {
            let base = interface
                .get(section)
                .and_then(|node| node.get("base-iface"));
            if let Some((base, lower)) = base.and_then(|base| Some((base, base.as_text()?))) {
                let path = format!("{path}.{section}.base-iface");
                if lower == name {
                    self.refuse(base.at, &path, format!("{name:?} is based on itself"));
                    continue;
                }
                let at = base.at;
                self.lower(&Port { name: lower, at }, &path);
            }
        }
    }

    /// Refuses an interface that neither the document nor the machine has.
    fn lower(&mut self, port: &Port<'_>, path: &str) {
        let name = port.name;
        match self.names.get(name) {
            Some(interface) if is_absent(interface) => {
                let reason = format!("{name:?} is absent by this configuration");
                self.disagree(port.at, path, reason);
            }
            None if !self.is_found(name) => {
                let reason = format!(
                    "{name:?} is no interface of this configuration, and not in mac_interface_map: define it, or add its MAC address there (in agent-config.yaml, to interfaces)"
                );
                self.disagree(port.at, path, reason);
            }
            _ => {}
        }
    }

    fn routes(&mut self, document: &ConfigNode) {
        let routes = document.find(&["routes", "config"]);
        let routes = routes.map(ConfigNode::items).unwrap_or_default();
        for (index, route) in routes.iter().enumerate() {
            let path = format!(".routes.config[{index}]");
            let is_special = route.get("route-type").is_some();
            if text(route, "state") == "absent" || is_special {
                continue;
            }
            let destination = text(route, "destination");
            if let Some((hop, node)) = address(route, "next-hop-address")
                && is_network(destination)
                && hop.is_ipv6() != destination.contains(':')
            {
                let reason = format!("{hop} is of another family than {destination}");
                self.refuse(node.at, &format!("{path}.next-hop-address"), reason);
            }
            let name = text(route, "next-hop-interface");
            let at = route
                .get("next-hop-interface")
                .map_or(route.at, |node| node.at);
            let path = format!("{path}.next-hop-interface");
            if name.is_empty() {
                let reason = "is missing: name the interface of the route";
                self.refuse(at, &path, reason);
                continue;
            }
            let family = if destination.contains(':') {
                "ipv6"
            } else {
                "ipv4"
            };
            match self.names.get(name) {
                Some(interface) if is_absent(interface) => {
                    let reason = format!("{name:?} is absent by this configuration");
                    self.disagree(at, &path, reason);
                }
                Some(interface) if !is_enabled(interface, family) => {
                    let reason =
                        format!("{name:?} has no {family}: set {family}.enabled of the interface");
                    self.disagree(at, &path, reason);
                }
                Some(_) => {}
                None if name == LOOPBACK => {}
                None => {
                    let reason = format!("{name:?} is no interface of this configuration");
                    self.disagree(at, &path, reason);
                }
            }
        }
    }

    fn servers(&mut self, document: &ConfigNode) {
        let list = document.find(&["dns-resolver", "config", "server"]);
        let servers = list.map(ConfigNode::items).unwrap_or_default();
        for (index, server) in servers.iter().enumerate() {
            let Some(text) = server.as_text() else {
                continue;
            };
            let is_scoped = text
                .split_once('%')
                .is_some_and(|(ip, _)| ip.parse::<Ipv6Addr>().is_ok());
            if !is_scoped && text.parse::<IpAddr>().is_err() {
                let path = format!(".dns-resolver.config.server[{index}]");
                self.refuse(
                    server.at,
                    &path,
                    format!("{text:?} is no address of a DNS server"),
                );
            }
        }
    }

    /// Compares a value with its shape.
    fn value(&mut self, node: &ConfigNode, shape: NetworkShape, path: &str) {
        if node.is_null() {
            return;
        }
        let wanted = match shape {
            NetworkShape::Any => return,
            NetworkShape::Object(members) => match &node.value {
                NodeValue::Object(_) => return self.object(node, members, path),
                _ => "an object".to_owned(),
            },
            NetworkShape::List(item) => match &node.value {
                NodeValue::List(items) => {
                    for (index, inner) in items.iter().enumerate() {
                        let path = format!("{path}[{index}]");
                        if inner.is_null() {
                            self.refuse(inner.at, &path, "is null: leave the item out");
                        }
                        self.value(inner, *item, &path);
                    }
                    return;
                }
                _ => "a list".to_owned(),
            },
            NetworkShape::Text if node.as_text().is_some() => return,
            NetworkShape::Text => "text, a number in quotes".to_owned(),
            NetworkShape::Flag if flag(node).is_some() => return,
            NetworkShape::Flag => "true or false".to_owned(),
            NetworkShape::Number(least, most) => match number(node) {
                Some(value) if (least..=most).contains(&value) => return,
                _ if least == i64::MIN => "a whole number".to_owned(),
                _ => format!("a number from {least} to {most}"),
            },
            NetworkShape::Word(words, index) => {
                let count = i64::try_from(words.len()).unwrap_or(i64::MAX);
                let is_index = number(node).is_some_and(|value| (0..count).contains(&value));
                let is_word = node.as_text().is_some_and(|text| words.contains(&text));
                if is_word || is_index && index == WordIndex::Allowed {
                    return;
                }
                format!("one of [{}]", words.join(" "))
            }
            NetworkShape::Address => match node.as_text() {
                Some(text) if text.parse::<IpAddr>().is_ok() => return,
                _ => "an address, without the prefix".to_owned(),
            },
            NetworkShape::Network => match node.as_text() {
                // Empty is absent.
                Some(text) if text.is_empty() || is_network(text) => return,
                _ => "a network, such as 10.0.0.0/8 or 0.0.0.0/0".to_owned(),
            },
        };
        let found = match &node.value {
            NodeValue::Scalar { text, .. } => format!("{:?}", shortened(text)),
            _ => node.type_name().to_owned(),
        };
        self.refuse(node.at, path, format!("is {found}: write {wanted}"));
    }

    fn object(
        &mut self,
        node: &ConfigNode,
        members: &'static [(&'static str, NetworkShape)],
        path: &str,
    ) {
        for member in node.members() {
            if self.problems.len() == MAX_PROBLEMS {
                return;
            }
            let path = format!("{path}.{}", shortened(&member.name));
            let known = members.iter().find(|(name, _)| *name == member.name);
            if let Some((_, shape)) = known {
                self.value(&member.node, *shape, &path);
                continue;
            }
            let reason = match member.name.as_str() {
                // Names of older versions, and of other members.
                "slaves" => "is unknown: its name is port",
                "route-table-id" => "is unknown here: its name is table-id",
                _ => {
                    let names = members.iter().map(|(name, _)| *name);
                    let close = nearest(&shortened(&member.name), names, TYPOS);
                    let reason = close.map_or_else(
                        || "is unknown to nmstate".to_owned(),
                        |name| format!("is unknown: its name is {name}"),
                    );
                    self.refuse(member.at, &path, reason);
                    continue;
                }
            };
            self.refuse(member.at, &path, reason);
        }
    }
}

struct Port<'a> {
    name: &'a str,
    at: Position,
}

/// Ports of a bond, bridge or VRF, each with its path.
fn ports(interface: &ConfigNode) -> Vec<(Port<'_>, String)> {
    let mut found = Vec::new();
    for section in ["link-aggregation", "bond", "vrf", "bridge"] {
        for member in ["port", "ports", "slaves"] {
            let list = interface.find(&[section, member]);
            let items = list.map(ConfigNode::items).unwrap_or_default();
            for (index, item) in items.iter().enumerate() {
                let path = format!("{section}.{member}[{index}]");
                add_ports(item, path, &mut found);
            }
        }
    }
    found
}

/// A port by name, or as an object; that of an Open vSwitch bond has ports of its own.
fn add_ports<'a>(item: &'a ConfigNode, path: String, found: &mut Vec<(Port<'a>, String)>) {
    let bond = item.get("link-aggregation").or_else(|| item.get("bond"));
    if let Some(members) = bond.and_then(|bond| bond.get("port").or_else(|| bond.get("ports"))) {
        for member in members.items() {
            add_ports(member, format!("{path}.link-aggregation"), found);
        }
        return;
    }
    let name = item.as_text().or_else(|| item.get("name")?.as_text());
    if let Some(name) = name {
        found.push((Port { name, at: item.at }, path));
    }
}

/// Whether the kernel gives a NIC this name by its place in the machine, so that it needs no MAC address. Source:
/// systemd.net-naming-scheme(7).
fn is_predictable(name: &str) -> bool {
    let place = name.strip_prefix("en").and_then(|rest| rest.bytes().next());
    place.is_some_and(|byte| b"PsvxXbucaipod".contains(&byte))
}

fn text<'a>(node: &'a ConfigNode, member: &str) -> &'a str {
    let text = node.get(member).and_then(ConfigNode::as_text);
    text.unwrap_or_default()
}

fn is_absent(interface: &ConfigNode) -> bool {
    matches!(text(interface, "state"), "absent" | "ignore")
}

fn is_enabled(interface: &ConfigNode, family: &str) -> bool {
    let enabled = interface.find(&[family, "enabled"]);
    enabled.and_then(flag).unwrap_or_default()
}

fn address<'a>(node: &'a ConfigNode, member: &str) -> Option<(IpAddr, &'a ConfigNode)> {
    let found = node.get(member)?;
    Some((found.as_text()?.parse().ok()?, found))
}

fn is_network(text: &str) -> bool {
    text.parse::<IpNet>().is_ok() || text.parse::<IpAddr>().is_ok()
}

/// The number that a scalar holds or spells.
fn number(node: &ConfigNode) -> Option<i64> {
    integer(&scalar(node)?)
}

/// The truth value that a scalar holds or spells.
fn flag(node: &ConfigNode) -> Option<bool> {
    boolean(&scalar(node)?)
}

fn scalar(node: &ConfigNode) -> Option<Value> {
    matches!(node.value, NodeValue::Scalar { .. }).then(|| node.to_json())
}

fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}
