//! Interfaces with the routes, rules, name servers and controllers that other parts of the configuration give them.

use std::collections::BTreeMap;

use crate::state::{Family, Interface, InterfaceKind, Ipv4, Ipv6, StaticAddress};
use crate::unrenderable::Unrenderable;

/// The loopback interface, which every host has.
pub(crate) const LOOPBACK: &str = "lo";

/// An interface that gets a keyfile.
#[derive(Debug, Default)]
pub(crate) struct ConnectionProfile {
    pub(crate) interface: Interface,
    /// The interface that this is a port of.
    pub(crate) controller: Option<PortController>,
    /// Lines `key=value` of routes and rules by family.
    pub(crate) v4: Attached,
    pub(crate) v6: Attached,
}

/// The controller of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PortController {
    /// Name of the interface; in a bridge of Open vSwitch, that of the port between them.
    pub(crate) name: String,
    pub(crate) kind: InterfaceKind,
}

/// Parts of one family that are stored with an interface.
#[derive(Debug, Default)]
pub(crate) struct Attached {
    pub(crate) routes: Vec<RouteLine>,
    pub(crate) rules: Vec<(i64, String)>,
    pub(crate) servers: Option<Servers>,
}

/// A route as a keyfile has it.
#[derive(Debug)]
pub(crate) struct RouteLine {
    /// Destination, next hop, metric.
    pub(crate) line: String,
    pub(crate) options: String,
    pub(crate) table: u32,
    /// Order of the routes of an interface.
    pub(crate) key: (String, String, u32),
}

/// Name servers of one family.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    pub(crate) addresses: Vec<String>,
    pub(crate) search: Vec<String>,
    pub(crate) options: Vec<String>,
    pub(crate) priority: i32,
}

impl ConnectionProfile {
    pub(crate) fn attached(&mut self, family: Family) -> &mut Attached {
        match family {
            Family::V4 => &mut self.v4,
            Family::V6 => &mut self.v6,
        }
    }

    /// Whether it may have addresses, as a port has only in a VRF or as an interface of Open vSwitch.
    pub(crate) fn has_addresses(&self) -> bool {
        self.interface.kind == InterfaceKind::OvsInterface
            || self
                .controller
                .as_ref()
                .is_none_or(|controller| controller.kind == InterfaceKind::Vrf)
    }

    /// Whether the family is switched on.
    pub(crate) fn is_enabled(&self, family: Family) -> bool {
        let interface = &self.interface;
        self.has_addresses()
            && interface.kind != InterfaceKind::OvsBridge
            && match family {
                Family::V4 => interface.ipv4.as_ref().is_some_and(|ip| ip.enabled.0),
                Family::V6 => interface.ipv6.as_ref().is_some_and(|ip| ip.enabled.0),
            }
    }

    /// Whether addresses of the family are assigned by the network.
    pub(crate) fn is_automatic(&self, family: Family) -> bool {
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
    pub(crate) fn is_static(&self, family: Family) -> bool {
        let interface = &self.interface;
        let has_addresses = match family {
            Family::V4 => interface.ipv4.as_ref().map(|ip| ip.address.is_empty()),
            Family::V6 => interface.ipv6.as_ref().map(|ip| ip.address.is_empty()),
        } == Some(false);
        self.is_enabled(family) && !self.is_automatic(family) && has_addresses
    }
}

/// Profiles in the order of the configuration; implied interfaces follow.
#[derive(Debug, Default)]
pub(crate) struct Profiles {
    all: Vec<ConnectionProfile>,
    by_name: BTreeMap<String, usize>,
    /// Bridges of Open vSwitch, which may share their names with interfaces.
    bridges: BTreeMap<String, usize>,
}

impl Profiles {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ConnectionProfile> {
        self.all.iter()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&ConnectionProfile> {
        self.by_name.get(name).map(|index| &self.all[*index])
    }

    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut ConnectionProfile> {
        self.by_name.get(name).map(|index| &mut self.all[*index])
    }

    /// The interface of this name that has ports.
    pub(crate) fn controller(&self, name: &str) -> Option<&ConnectionProfile> {
        let bridge = self.bridges.get(name).map(|index| &self.all[*index]);
        bridge.or_else(|| self.get(name)).filter(|profile| {
            let kind = profile.interface.kind;
            kind.is_controller()
        })
    }

    /// Name of the first profile with the property.
    pub(crate) fn first(&self, is: impl Fn(&ConnectionProfile) -> bool) -> Option<String> {
        let profile = self.all.iter().find(|profile| is(profile));
        profile.map(|profile| profile.interface.name.clone())
    }

    /// The loopback interface, which routes without a next hop belong to.
    pub(crate) fn loopback(&mut self) -> Result<&mut ConnectionProfile, Unrenderable> {
        if !self.by_name.contains_key(LOOPBACK) {
            let mut interface = Interface::unlisted(LOOPBACK.to_owned(), InterfaceKind::Loopback);
            add_loopback_addresses(&mut interface);
            self.insert(interface)?;
        }
        self.get_mut(LOOPBACK)
            .ok_or_else(|| "has no loopback interface".into())
    }

    pub(crate) fn insert(&mut self, interface: Interface) -> Result<(), Unrenderable> {
        let name = interface.name.clone();
        if name.is_empty() {
            return Err("an interface has no name: add \"name:\"".into());
        }
        let index = self.all.len();
        let by_name = match interface.kind {
            InterfaceKind::OvsBridge => &mut self.bridges,
            _ => &mut self.by_name,
        };
        if by_name.insert(name.clone(), index).is_some() {
            return Err(format!("interface {name} is listed twice").into());
        }
        self.all.push(ConnectionProfile {
            interface,
            ..ConnectionProfile::default()
        });
        Ok(())
    }
}

/// The refusal with the place of the interface.
pub(crate) fn located(interface: &Interface, error: Unrenderable) -> Unrenderable {
    match interface.index {
        Some(index) => error.below_item("interfaces", index),
        None => error,
    }
}

pub(crate) fn add_loopback_addresses(interface: &mut Interface) {
    use std::net::{Ipv4Addr, Ipv6Addr};
    let ipv4 = || Ipv4::of_address(StaticAddress::new(Ipv4Addr::LOCALHOST.into(), 8));
    let ipv6 = || Ipv6::of_address(StaticAddress::new(Ipv6Addr::LOCALHOST.into(), 128));
    interface.ipv4.get_or_insert_with(ipv4);
    interface.ipv6.get_or_insert_with(ipv6);
}
