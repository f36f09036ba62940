//! Distributes a configuration over its interfaces: ports, peers, MAC addresses, routes, rules and name servers.

use std::collections::BTreeSet;

use crate::dns;
use crate::ovs;
use crate::profile::{
    ConnectionProfile, PortController, Profiles, add_loopback_addresses, located,
};
use crate::routes;
use crate::state::{
    Bond, BridgePort, Identifier, Interface, InterfaceKind, InterfaceState, Ipv4, Ipv6,
    NetworkState, PartMembers,
};
use crate::unrenderable::Unrenderable;

/// Distributes the configuration over its interfaces.
///
/// Errors: the part that contradicts another one.
pub(crate) fn profiles(state: NetworkState) -> Result<Profiles, Unrenderable> {
    let mut profiles = Profiles::default();
    for (index, mut interface) in state.interfaces.into_iter().enumerate() {
        if !matches!(interface.state, InterfaceState::Up | InterfaceState::Down) {
            continue;
        }
        interface.index = Some(index);
        complete(&mut interface);
        let inserted = profiles.insert(interface);
        inserted.map_err(|error| error.below_item("interfaces", index))?;
    }
    imply_peers(&mut profiles)?;
    attach_ports(&mut profiles)?;
    for profile in profiles.iter() {
        check(profile).map_err(|error| located(&profile.interface, error))?;
    }
    copy_macs(&mut profiles)?;
    routes::attach_routes(&mut profiles, state.routes.config.unwrap_or_default())?;
    routes::attach_rules(&mut profiles, state.route_rules.config.unwrap_or_default())?;
    let resolver = state.dns_resolver.config.unwrap_or_default();
    dns::attach(&mut profiles, resolver)
        .map_err(|reason| Unrenderable::member("config", reason).below("dns-resolver"))?;
    Ok(profiles)
}

/// Adds members that an interface of its kind has without a word.
fn complete(interface: &mut Interface) {
    match interface.kind {
        InterfaceKind::Loopback => add_loopback_addresses(interface),
        // A bridge without ports cannot be: it gets an interface of its own name.
        InterfaceKind::OvsBridge if interface.state == InterfaceState::Up => {
            let bridge = interface.bridge.get_or_insert_default();
            let ports = bridge.port.get_or_insert_default();
            if ports.is_empty() {
                ports.push(BridgePort {
                    name: interface.name.clone(),
                    ..Default::default()
                });
            }
        }
        // A VRF is of layer 3: it has no address of a NIC, and no frames to accept.
        InterfaceKind::Vrf => {
            interface.mac_address = None;
            let accepts = interface.accept_all_mac_addresses;
            interface.accept_all_mac_addresses = accepts.filter(|flag| flag.0);
        }
        _ => {}
    }
}

/// Adds the other end of each pair of virtual interfaces, so that both are up.
fn imply_peers(profiles: &mut Profiles) -> Result<(), Unrenderable> {
    let pairs: Vec<(String, String, InterfaceState)> = profiles
        .iter()
        .filter_map(|profile| {
            let interface = &profile.interface;
            let peer = text(interface.veth.as_ref()?, "peer")?;
            Some((interface.name.clone(), peer.to_owned(), interface.state))
        })
        .collect();
    for (name, peer, state) in pairs {
        if profiles.get(&peer).is_none() {
            let mut interface = Interface::unlisted(peer, InterfaceKind::VethPeer);
            interface.state = state;
            interface.veth = Some(PartMembers::from([("peer".to_owned(), name.into())]));
            interface.ipv4 = Some(Ipv4::default());
            interface.ipv6 = Some(Ipv6::default());
            profiles.insert(interface)?;
        }
    }
    Ok(())
}

/// Gives interfaces the MAC addresses of others that they name, and those of a PRP pair one.
fn copy_macs(profiles: &mut Profiles) -> Result<(), Unrenderable> {
    let mut copies: Vec<(String, String)> = Vec::new();
    for profile in profiles.iter() {
        let interface = &profile.interface;
        // nmstate reads the member of these kinds alone.
        let copies_mac = matches!(
            interface.kind,
            InterfaceKind::Bond | InterfaceKind::LinuxBridge | InterfaceKind::OvsInterface
        );
        if let Some(source) = interface.copy_mac_from.as_ref().filter(|_| copies_mac) {
            let other = profiles.get(source).map(|profile| &profile.interface);
            let mac = other.and_then(|it| {
                let permanent = it.permanent_mac_address.as_ref();
                permanent.or(it.mac_address.as_ref())
            });
            let Some(mac) = mac else {
                let reason =
                    format!("the MAC address of {source} is unknown: add mac-address to {source}");
                let error = Unrenderable::member("copy-mac-from", reason);
                return Err(located(interface, error));
            };
            copies.push((interface.name.clone(), mac.clone()));
        }
        let Some(hsr) = &interface.hsr else {
            continue;
        };
        if hsr.get("protocol").is_none_or(|protocol| protocol != "prp") {
            continue;
        }
        let names = [
            Some(interface.name.as_str()),
            text(hsr, "port1"),
            text(hsr, "port2"),
        ];
        let names: Vec<&str> = names.into_iter().flatten().collect();
        let macs = names.iter().filter_map(|name| {
            let profile = profiles.get(name)?;
            profile.interface.mac_address.as_ref()
        });
        let macs: Vec<&String> = macs.collect();
        let Some(mac) = macs.first() else {
            continue;
        };
        if macs.iter().any(|other| !other.eq_ignore_ascii_case(mac)) {
            let reason =
                "the interface and its ports have different MAC addresses, and PRP needs one";
            return Err(located(interface, Unrenderable::member("hsr", reason)));
        }
        copies.extend(
            names
                .iter()
                .map(|name| ((*name).to_owned(), (*mac).clone())),
        );
    }
    for (name, mac) in copies {
        if let Some(profile) = profiles.get_mut(&name) {
            profile.interface.mac_address = Some(mac);
        }
    }
    Ok(())
}

fn text<'a>(members: &'a PartMembers, name: &str) -> Option<&'a str> {
    members.get(name).and_then(|value| value.as_str())
}

/// An interface that is a port.
struct AttachedPort {
    name: String,
    controller: PortController,
    /// Name of the interface that lists it.
    owner: String,
    /// Place of the interface that says so.
    index: Option<usize>,
}

/// Sets the controllers of ports. Ports that are not listed are ethernet interfaces, as in nmstate.
fn attach_ports(profiles: &mut Profiles) -> Result<(), Unrenderable> {
    let mut attached = Vec::new();
    for profile in profiles.iter() {
        let interface = &profile.interface;
        let ports = ports(interface).map_err(|error| located(interface, error))?;
        attached.extend(ports.into_iter().map(|(name, controller)| AttachedPort {
            name,
            controller: PortController {
                name: controller,
                kind: interface.kind,
            },
            owner: interface.name.clone(),
            index: interface.index,
        }));
    }
    let listed: BTreeSet<(String, String)> = attached
        .iter()
        .map(|port| (port.owner.clone(), port.name.clone()))
        .collect();
    for profile in profiles.iter() {
        let interface = &profile.interface;
        let name = interface.controller.as_deref().unwrap_or_default();
        if name.is_empty() {
            continue;
        }
        let port = &interface.name;
        let controller = profiles.controller(name);
        let Some(controller) = controller.filter(|_| name != port) else {
            let reason = format!(
                "the controller {name} of {port} is no bond, bridge or VRF of this configuration"
            );
            let error = Unrenderable::member("controller", reason);
            return Err(located(interface, error));
        };
        let kind = controller.interface.kind;
        let is_listed = || listed.contains(&(name.to_owned(), port.clone()));
        if kind == InterfaceKind::OvsBridge && !is_listed() {
            let reason = format!("{port} is no port of {name}: add it to bridge.port of {name}");
            let error = Unrenderable::member("controller", reason);
            return Err(located(interface, error));
        }
        if kind != InterfaceKind::OvsBridge {
            attached.push(AttachedPort {
                name: port.clone(),
                controller: PortController {
                    name: name.to_owned(),
                    kind,
                },
                owner: name.to_owned(),
                index: interface.index,
            });
        }
    }
    for port in attached {
        attach(profiles, port)?;
    }
    Ok(())
}

fn attach(profiles: &mut Profiles, port: AttachedPort) -> Result<(), Unrenderable> {
    let AttachedPort {
        name,
        controller,
        owner,
        index,
    } = port;
    let at = |error: Unrenderable| match index {
        Some(index) => error.below_item("interfaces", index),
        None => error,
    };
    let is_bridge = controller.kind == InterfaceKind::OvsBridge;
    if name == owner && !is_bridge {
        return Err(at(format!("{name} is a port of itself").into()));
    }
    if profiles.get(&name).is_none() {
        let kind = if is_bridge && name == owner {
            InterfaceKind::OvsInterface
        } else {
            InterfaceKind::Ethernet
        };
        profiles.insert(Interface::unlisted(name.clone(), kind))?;
    }
    let Some(profile) = profiles.get_mut(&name) else {
        return Ok(());
    };
    match &profile.controller {
        Some(other) if *other != controller => {
            let (first, second) = (&other.name, &controller.name);
            let reason = format!("{name} is a port of both {first} and {second}");
            Err(at(reason.into()))
        }
        _ => {
            profile.controller = Some(controller);
            Ok(())
        }
    }
}

/// Ports of an interface, each with the name of its controller.
fn ports(interface: &Interface) -> Result<Vec<(String, String)>, Unrenderable> {
    let own = |names: Vec<String>| {
        let names = names.into_iter();
        names.map(|name| (name, interface.name.clone())).collect()
    };
    match interface.kind {
        InterfaceKind::Bond => {
            let bond = interface.link_aggregation.as_ref();
            Ok(own(bond.map_or(Ok(Vec::new()), bond_ports)?))
        }
        InterfaceKind::LinuxBridge => {
            let ports = interface.bridge.iter().flat_map(|bridge| &bridge.port);
            Ok(own(ports.flatten().map(|port| port.name.clone()).collect()))
        }
        InterfaceKind::OvsBridge => {
            let mut found = Vec::new();
            let ports = interface.bridge.iter().flat_map(|bridge| &bridge.port);
            for (index, port) in ports.flatten().enumerate() {
                let members = ovs::members_of(port);
                let members =
                    members.map_err(|error| error.below_item("port", index).below("bridge"))?;
                found.extend(members.into_iter().map(|name| (name, port.name.clone())));
            }
            Ok(found)
        }
        InterfaceKind::Vrf => {
            let Some(vrf) = &interface.vrf else {
                return Ok(Vec::new());
            };
            let Some(list) = vrf.get("port").or_else(|| vrf.get("ports")) else {
                return Ok(Vec::new());
            };
            let names: Option<Vec<String>> = list.as_array().and_then(|list| {
                let names = list.iter().map(|name| name.as_str().map(str::to_owned));
                names.collect()
            });
            let refused = || Unrenderable::member("port", "port is no list of names").below("vrf");
            Ok(own(names.ok_or_else(refused)?))
        }
        InterfaceKind::Hsr => {
            let ports = interface.hsr.iter();
            let ports = ports.flat_map(|hsr| [text(hsr, "port1"), text(hsr, "port2")]);
            Ok(own(ports.flatten().map(str::to_owned).collect()))
        }
        _ => Ok(Vec::new()),
    }
}

fn bond_ports(bond: &Bond) -> Result<Vec<String>, Unrenderable> {
    let configured: Option<Vec<String>> = bond
        .ports_config
        .as_ref()
        .map(|ports| ports.iter().map(|port| port.name.clone()).collect());
    match (bond.port.clone(), configured) {
        (Some(mut ports), Some(mut configured)) => {
            let listed = ports.clone();
            ports.sort();
            configured.sort();
            if ports == configured {
                return Ok(listed);
            }
            let reason = "port and ports-config list different ports";
            Err(Unrenderable::member("link-aggregation", reason))
        }
        (ports, configured) => Ok(ports.or(configured).unwrap_or_default()),
    }
}

/// Parts that do not belong to the kind of interface, or miss.
fn check(profile: &ConnectionProfile) -> Result<(), Unrenderable> {
    let interface = &profile.interface;
    let kind = interface.kind;
    let is_bridge = matches!(kind, InterfaceKind::LinuxBridge | InterfaceKind::OvsBridge);
    let is_ovs = kind == InterfaceKind::OvsInterface;
    for (part, is_set, is_of_kind) in [
        (
            "link-aggregation",
            interface.link_aggregation.is_some(),
            kind == InterfaceKind::Bond,
        ),
        (
            "vlan",
            interface.vlan.is_some(),
            kind == InterfaceKind::Vlan,
        ),
        ("bridge", interface.bridge.is_some(), is_bridge),
        (
            "ethernet",
            interface.ethernet.is_some(),
            kind == InterfaceKind::Ethernet,
        ),
        (
            "libreswan",
            interface.libreswan.is_some(),
            kind == InterfaceKind::Ipsec,
        ),
        ("patch", interface.patch.is_some(), is_ovs),
        ("dpdk", interface.dpdk.is_some(), is_ovs),
    ] {
        if is_set && !is_of_kind {
            let reason = format!("has {part}, which belongs to another type");
            return Err(Unrenderable::member(part, reason));
        }
    }
    if kind == InterfaceKind::Vlan && interface.vlan.is_none() {
        return Err("has no vlan, which its type needs".into());
    }
    match interface.identifier {
        Identifier::MacAddress if interface.mac_address.is_none() => {
            Err("is identified by its MAC address: add \"mac-address:\"".into())
        }
        Identifier::PciAddress if interface.pci_address.is_none() => {
            Err("is identified by its PCI address: add \"pci-address:\"".into())
        }
        _ if kind == InterfaceKind::Loopback => check_loopback(interface),
        _ => Ok(()),
    }
}

/// The loopback interface has static addresses of both families.
fn check_loopback(interface: &Interface) -> Result<(), Unrenderable> {
    let ipv4 = interface.ipv4.as_ref();
    let ipv6 = interface.ipv6.as_ref();
    let families = [
        ("ipv4", ipv4.map(|ip| (ip.enabled.0, ip.dhcp.0))),
        (
            "ipv6",
            ipv6.map(|ip| (ip.enabled.0, ip.dhcp.0 || ip.autoconf.0)),
        ),
    ];
    for (family, state) in families {
        if let Some((is_enabled, is_automatic)) = state
            && (!is_enabled || is_automatic)
        {
            let reason = format!("the loopback interface needs {family} with static addresses");
            return Err(Unrenderable::member(family, reason));
        }
    }
    Ok(())
}
