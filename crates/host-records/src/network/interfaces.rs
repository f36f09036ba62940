//! The interfaces of a configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::families::{self, FamilyMethod, FamilySettings};
use super::links::{self, NodeLink};
use super::source::{InterfaceSource, domains};
use crate::check::finding::{FindingList, shown};
use crate::{MacAddress, RecordNode};

/// Most interfaces of a node.
pub const MAX_INTERFACES: usize = 256;

/// An interface with its keyfile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NodeInterface {
    pub(super) name: String,
    pub(super) link: NodeLink,
    /// The bond that this is a port of.
    pub(super) controller: Option<String>,
    pub(super) mac: Option<MacAddress>,
    /// Units: bytes.
    pub(super) mtu: Option<u32>,
    /// IPv4 and IPv6.
    pub(super) families: [FamilySettings; 2],
}

/// Reads the interfaces; ports that only their bond names are added behind it.
pub(super) fn read(node: &RecordNode<'_>, findings: &mut FindingList<'_>) -> Vec<NodeInterface> {
    let count = node.list(&["interfaces"]).len();
    if count == 0 || count > MAX_INTERFACES {
        // A missing list is a finding of the schema.
        if node.get(&["interfaces"]).is_some() {
            let reason = format!("has {count} interfaces");
            let remedy = format!("write 1 to {MAX_INTERFACES}");
            findings.error(node, &["interfaces"], reason, remedy);
        }
        return Vec::new();
    }
    let sources: Vec<_> = (0..count)
        .map(|index| InterfaceSource {
            node,
            index: index.to_string(),
        })
        .collect();
    common(&sources[0], findings);
    let controllers = controllers(&sources, findings);
    let parents: BTreeSet<&str> = sources
        .iter()
        .map(|it| it.text(&["vlan", "parent"]))
        .collect();
    let listed: BTreeSet<&str> = sources.iter().map(|it| it.text(&["name"])).collect();
    let mut interfaces = Vec::new();
    for source in &sources {
        let interface = interface(source, &controllers, &parents, findings);
        let ports = source.port_names();
        let name = interface.name.clone();
        interfaces.push(interface);
        let unlisted = ports.into_iter().filter(|port| !listed.contains(port));
        interfaces.extend(unlisted.map(|port| NodeInterface {
            name: port.to_owned(),
            link: NodeLink::Ethernet,
            controller: Some(name.clone()),
            mac: None,
            mtu: None,
            families: Default::default(),
        }));
    }
    duplicates(&sources, findings);
    interfaces
}

fn interface(
    source: &InterfaceSource<'_>,
    controllers: &BTreeMap<&str, &str>,
    parents: &BTreeSet<&str>,
    findings: &mut FindingList<'_>,
) -> NodeInterface {
    let name = source.text(&["name"]);
    links::check_name(source, &["name"], findings);
    let controller = controllers.get(name).map(|it| (*it).to_owned());
    let mut families = families::read(source, findings);
    let is_unset = families.iter().all(|it| it.method == FamilyMethod::Unset);
    if controller.is_some() && !is_unset {
        let reason = "is a port, which has no addresses of its own";
        source.error(&["name"], reason, "move them to the bond", findings);
    }
    if controller.is_none() {
        let is_used = parents.contains(name) || source.get(&["bond"]).is_some();
        if is_unset && !is_used {
            let reason = "has neither addresses nor dhcp";
            source.error(&["name"], reason, "add addresses or dhcp: true", findings);
        }
        let [v4, v6] = &mut families;
        // NetworkManager asks DHCP where the section of IPv4 is missing.
        if v4.method == FamilyMethod::Unset {
            v4.method = FamilyMethod::Disabled;
        }
        if is_unset {
            v6.method = FamilyMethod::Disabled;
        }
    }
    NodeInterface {
        name: name.to_owned(),
        link: links::read(source, findings),
        controller,
        mac: links::mac(source, findings),
        mtu: links::mtu(source, findings),
        families,
    }
}

/// Bonds by the names of their ports.
fn controllers<'a>(
    sources: &[InterfaceSource<'a>],
    findings: &mut FindingList<'_>,
) -> BTreeMap<&'a str, &'a str> {
    let mut controllers = BTreeMap::new();
    for source in sources {
        for (index, port) in source.port_names().into_iter().enumerate() {
            let path = ["bond", "ports", &index.to_string()];
            links::check_name(source, &path, findings);
            if controllers.insert(port, source.text(&["name"])).is_some() {
                let reason = format!("{} is a port already", shown(port));
                source.error(&path, &reason, "remove one of them", findings);
            }
        }
        if source.get(&["bond", "ports"]).is_some() && source.port_names().is_empty() {
            source.error(&["bond", "ports"], "is empty", "add a port", findings);
        }
    }
    controllers
}

/// Names and addresses that are given twice.
fn duplicates(sources: &[InterfaceSource<'_>], findings: &mut FindingList<'_>) {
    let (mut names, mut addresses) = (BTreeSet::new(), BTreeSet::new());
    for source in sources {
        let name = source.text(&["name"]);
        if !name.is_empty() && !names.insert(name) {
            source.error(&["name"], "is given twice", "rename one of them", findings);
        }
        for number in (0..source.list(&["addresses"]).len()).map(|it| it.to_string()) {
            let path = ["addresses", &number];
            let address = source.text(&path).split('/').next().unwrap_or_default();
            let Ok(address) = address.parse::<IpAddr>() else {
                continue;
            };
            if !addresses.insert(address) {
                let reason = format!("{address} is given twice");
                source.error(&path, &reason, "correct one of them", findings);
            }
        }
    }
}

/// Reports mistakes in the members of all interfaces.
fn common(source: &InterfaceSource<'_>, findings: &mut FindingList<'_>) {
    let node = source.node;
    for number in (0..node.list(&["dns"]).len()).map(|it| it.to_string()) {
        let path = ["dns", &number];
        if node.text(&path).parse::<IpAddr>().is_err() && !node.text(&path).is_empty() {
            let reason = format!("{} is no IP address", shown(node.text(&path)));
            findings.error(node, &path, reason, "write it as 10.0.0.2");
        }
    }
    domains(node, &["search"], findings);
}
