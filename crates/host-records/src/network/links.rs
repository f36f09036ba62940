//! Links below the addresses: ethernet, bond, VLAN.

use located_yaml::v1_1::Value;

use super::source::InterfaceSource;
use crate::check::finding::{FindingList, shown};
use crate::{MacAddress, MacAddressError};

/// Longest name of an interface. Units: bytes. Source: kernel, `IFNAMSIZ`.
const MAX_NAME: usize = 15;
/// Largest VLAN id.
const MAX_VLAN: u16 = 4094;
/// Largest MTU. Units: bytes.
const MAX_MTU: u32 = 65_536;

/// A link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NodeLink {
    Ethernet,
    Bond {
        mode: String,
        /// Sorted by name.
        options: Vec<(String, String)>,
    },
    Vlan {
        parent: String,
        id: u16,
    },
}

impl NodeLink {
    /// Type of the connection.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Ethernet => "ethernet",
            Self::Bond { .. } => "bond",
            Self::Vlan { .. } => "vlan",
        }
    }
}

pub(super) fn read(source: &InterfaceSource<'_>, findings: &mut FindingList<'_>) -> NodeLink {
    let has = |member: &str| source.get(&[member]).is_some();
    if has("bond") && has("vlan") {
        let reason = "is given beside bond, and an interface is one of both";
        source.error(&["vlan"], reason, "write two interfaces", findings);
    }
    if has("bond") {
        return NodeLink::Bond {
            mode: source.text(&["bond", "mode"]).to_owned(),
            options: options(source, findings),
        };
    }
    if !has("vlan") {
        return NodeLink::Ethernet;
    }
    let parent = source.text(&["vlan", "parent"]).to_owned();
    check_name(source, &["vlan", "parent"], findings);
    NodeLink::Vlan {
        parent,
        id: vlan_id(source, findings),
    }
}

fn vlan_id(source: &InterfaceSource<'_>, findings: &mut FindingList<'_>) -> u16 {
    let path = &["vlan", "id"];
    let Some(Value::Integer(id)) = source.get(path).map(|it| &it.value) else {
        return 0;
    };
    match u16::try_from(*id) {
        Ok(id) if id <= MAX_VLAN => id,
        _ => {
            let reason = format!("{id} is no VLAN id");
            let remedy = format!("write 1 to {MAX_VLAN}");
            source.error(path, &reason, &remedy, findings);
            0
        }
    }
}

/// Options of a bond, as the kernel names them.
fn options(source: &InterfaceSource<'_>, findings: &mut FindingList<'_>) -> Vec<(String, String)> {
    let of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let of_value = |c: char| c.is_ascii_alphanumeric() || "_.:,+-".contains(c);
    let mut options = Vec::new();
    for (name, value) in source.texts(&["bond", "options"]) {
        let is_good = name.chars().all(of_name) && value.chars().all(of_value);
        if name == "mode" || !is_good || value.is_empty() {
            let reason = "is no option of a bond with a value";
            let remedy = "write it as the kernel names it, as miimon: \"100\"";
            source.error(&["bond", "options", name], reason, remedy, findings);
        }
        options.push((name.to_owned(), value.to_owned()));
    }
    options.sort();
    options
}

/// Checks the name of an interface, which is also that of its file.
pub(super) fn check_name(
    source: &InterfaceSource<'_>,
    path: &[&str],
    findings: &mut FindingList<'_>,
) {
    let name = source.text(path);
    // A missing name is a finding of the schema.
    if name.is_empty() {
        return;
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-@".contains(c);
    let is_good = name.len() <= MAX_NAME && name.chars().all(is_plain);
    if !is_good || name.starts_with(['.', '-']) {
        let reason = format!("{} is no name of an interface", shown(name));
        let remedy = format!("use at most {MAX_NAME} letters, digits, dots, hyphens");
        source.error(path, &reason, &remedy, findings);
    }
}

pub(super) fn mac(
    source: &InterfaceSource<'_>,
    findings: &mut FindingList<'_>,
) -> Option<MacAddress> {
    let text = source.text(&["mac"]);
    if text.is_empty() {
        return None;
    }
    match text.parse() {
        Ok(mac) => Some(mac),
        Err(error) => {
            let remedy = match &error {
                MacAddressError::Form(meant) => format!("write {meant}"),
                _ => "write it as 52:54:00:00:00:10".to_owned(),
            };
            let reason = format!("{} {error}", shown(text));
            source.error(&["mac"], &reason, &remedy, findings);
            None
        }
    }
}

pub(super) fn mtu(source: &InterfaceSource<'_>, findings: &mut FindingList<'_>) -> Option<u32> {
    let Value::Integer(mtu) = source.get(&["mtu"])?.value else {
        return None;
    };
    let fitting = u32::try_from(mtu).ok().filter(|mtu| *mtu <= MAX_MTU);
    if fitting.is_none() {
        let remedy = format!("write at most {MAX_MTU}");
        source.error(&["mtu"], "is no MTU", &remedy, findings);
    }
    fitting
}
