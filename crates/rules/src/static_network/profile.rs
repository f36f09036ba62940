//! Interfaces with the routes, rules, name servers and controllers that other parts of the configuration give them.

use std::collections::BTreeMap;

use super::dns::{self, Servers};
use super::routes;
use super::state::{
    Bond, Bridge, Family, Identifier, Interface, InterfaceKind, InterfaceState, NetworkState,
};

/// An interface that gets a keyfile.
#[derive(Debug, Default)]
pub(super) struct ConnectionProfile {
    pub(super) interface: Interface,
    /// Name of the bond or bridge that this is a port of.
    pub(super) controller: Option<String>,
    /// Lines `key=value` of routes and rules by family.
    pub(super) v4: Attached,
    pub(super) v6: Attached,
}

/// Parts of one family that are stored with an interface.
#[derive(Debug, Default)]
pub(super) struct Attached {
    pub(super) routes: Vec<routes::RouteLine>,
    pub(super) rules: Vec<(i64, String)>,
    pub(super) servers: Option<Servers>,
}

impl ConnectionProfile {
    pub(super) fn attached(&mut self, family: Family) -> &mut Attached {
        match family {
            Family::V4 => &mut self.v4,
            Family::V6 => &mut self.v6,
        }
    }

    /// Whether the family is switched on.
    pub(super) fn is_enabled(&self, family: Family) -> bool {
        let interface = &self.interface;
        self.controller.is_none()
            && match family {
                Family::V4 => interface.ipv4.as_ref().is_some_and(|ip| ip.enabled.0),
                Family::V6 => interface.ipv6.as_ref().is_some_and(|ip| ip.enabled.0),
            }
    }

    /// Whether addresses of the family are assigned by the network.
    pub(super) fn is_automatic(&self, family: Family) -> bool {
        let interface = &self.interface;
        self.is_enabled(family)
            && match family {
                Family::V4 => interface.ipv4.as_ref().is_some_and(|ip| ip.dhcp.0),
                Family::V6 => {
                    let ip = interface.ipv6.as_ref();
                    ip.is_some_and(|ip| ip.dhcp.0 || ip.autoconf.0)
                }
            }
    }

    /// Whether the family has addresses of this configuration alone.
    pub(super) fn is_static(&self, family: Family) -> bool {
        let interface = &self.interface;
        let has_addresses = match family {
            Family::V4 => interface.ipv4.as_ref().map(|ip| ip.address.is_empty()),
            Family::V6 => interface.ipv6.as_ref().map(|ip| ip.address.is_empty()),
        } == Some(false);
        self.is_enabled(family) && !self.is_automatic(family) && has_addresses
    }
}

/// Profiles in the order of the configuration; assumed ports follow.
#[derive(Debug)]
pub(super) struct Profiles {
    all: Vec<ConnectionProfile>,
    by_name: BTreeMap<String, usize>,
}

impl Profiles {
    pub(super) fn iter(&self) -> impl Iterator<Item = &ConnectionProfile> {
        self.all.iter()
    }

    pub(super) fn get(&self, name: &str) -> Option<&ConnectionProfile> {
        self.by_name.get(name).map(|index| &self.all[*index])
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut ConnectionProfile> {
        self.by_name.get(name).map(|index| &mut self.all[*index])
    }

    /// Name of the first profile with the property.
    pub(super) fn first(&self, is: impl Fn(&ConnectionProfile) -> bool) -> Option<String> {
        let profile = self.all.iter().find(|profile| is(profile));
        profile.map(|profile| profile.interface.name.clone())
    }

    fn insert(&mut self, interface: Interface) -> Result<(), String> {
        let name = interface.name.clone();
        if name.is_empty() {
            return Err("an interface has no name: add \"name:\"".to_owned());
        }
        let index = self.all.len();
        if self.by_name.insert(name.clone(), index).is_some() {
            return Err(format!("interface {name} is listed twice"));
        }
        self.all.push(ConnectionProfile {
            interface,
            ..ConnectionProfile::default()
        });
        Ok(())
    }
}

/// Distributes the configuration over its interfaces.
///
/// Errors: the part that contradicts another one.
pub(super) fn profiles(state: NetworkState) -> Result<Profiles, String> {
    let mut profiles = Profiles {
        all: Vec::new(),
        by_name: BTreeMap::new(),
    };
    for interface in state.interfaces {
        if matches!(interface.state, InterfaceState::Up | InterfaceState::Down) {
            profiles.insert(interface)?;
        }
    }
    attach_ports(&mut profiles)?;
    for profile in profiles.iter() {
        check(profile)?;
    }
    routes::attach_routes(&mut profiles, state.routes.config.unwrap_or_default())?;
    routes::attach_rules(&mut profiles, state.route_rules.config.unwrap_or_default())?;
    dns::attach(&mut profiles, state.dns_resolver.config.unwrap_or_default())?;
    Ok(profiles)
}

/// Sets the controllers of ports. Ports that are not listed are ethernet interfaces, as in nmstate.
fn attach_ports(profiles: &mut Profiles) -> Result<(), String> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for profile in profiles.iter() {
        let interface = &profile.interface;
        let ports = ports(interface)?;
        pairs.extend(ports.into_iter().map(|port| (port, interface.name.clone())));
        if let Some(controller) = interface
            .controller
            .as_deref()
            .filter(|name| !name.is_empty())
        {
            pairs.push((interface.name.clone(), controller.to_owned()));
        }
    }
    for (port, controller) in pairs {
        let is_controller = profiles.get(&controller).is_some_and(|profile| {
            matches!(
                profile.interface.kind,
                InterfaceKind::Bond | InterfaceKind::LinuxBridge
            )
        });
        if !is_controller || port == controller {
            return Err(format!(
                "the controller {controller} of {port} is no bond or bridge of this configuration"
            ));
        }
        if profiles.get(&port).is_none() {
            profiles.insert(Interface::unlisted(port.clone()))?;
        }
        let Some(profile) = profiles.get_mut(&port) else {
            continue;
        };
        match &profile.controller {
            Some(other) if *other != controller => {
                return Err(format!("{port} is a port of both {other} and {controller}"));
            }
            _ => profile.controller = Some(controller),
        }
    }
    Ok(())
}

fn ports(interface: &Interface) -> Result<Vec<String>, String> {
    let of_bond = |bond: &Bond| {
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
                    Ok(listed)
                } else {
                    let name = &interface.name;
                    Err(format!(
                        "port and ports-config of {name} list different ports"
                    ))
                }
            }
            (ports, configured) => Ok(ports.or(configured).unwrap_or_default()),
        }
    };
    let of_bridge = |bridge: &Bridge| {
        let ports = bridge.port.iter().flatten();
        ports.map(|port| port.name.clone()).collect()
    };
    match interface.kind {
        InterfaceKind::Bond => interface
            .link_aggregation
            .as_ref()
            .map_or(Ok(Vec::new()), of_bond),
        InterfaceKind::LinuxBridge => {
            Ok(interface.bridge.as_ref().map(of_bridge).unwrap_or_default())
        }
        _ => Ok(Vec::new()),
    }
}

/// Parts that do not belong to the kind of interface, or miss.
fn check(profile: &ConnectionProfile) -> Result<(), String> {
    let interface = &profile.interface;
    let name = &interface.name;
    let kind = interface.kind;
    for (part, is_set, of) in [
        (
            "link-aggregation",
            interface.link_aggregation.is_some(),
            InterfaceKind::Bond,
        ),
        ("vlan", interface.vlan.is_some(), InterfaceKind::Vlan),
        (
            "bridge",
            interface.bridge.is_some(),
            InterfaceKind::LinuxBridge,
        ),
    ] {
        if is_set && kind != of {
            return Err(format!("interface {name} has {part}, but another type"));
        }
    }
    if kind == InterfaceKind::Vlan && interface.vlan.is_none() {
        return Err(format!("interface {name} of type vlan has no vlan"));
    }
    if interface.identifier == Identifier::MacAddress && interface.mac_address.is_none() {
        return Err(format!(
            "interface {name} is identified by its MAC address: add \"mac-address:\""
        ));
    }
    Ok(())
}
