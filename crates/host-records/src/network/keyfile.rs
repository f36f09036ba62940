//! Keyfiles of a node, and those of its interfaces. Source: NetworkManager, nm-settings-keyfile(5).

use std::fmt::{Display, Write as _};

use static_network::NetworkFile;

use super::families::{FamilyMethod, FamilySettings};
use super::interfaces::NodeInterface;
use super::links::NodeLink;

/// Folder of keyfiles on a node.
pub const KEYFILE_FOLDER: &str = "/etc/NetworkManager/system-connections";
/// Mode of keyfiles: NetworkManager ignores those that others can read.
pub const KEYFILE_MODE: u32 = 0o600;

/// The network of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeNetwork {
    /// Name of the host.
    pub hostname: Option<String>,
    /// Keyfiles, in the order of the interfaces; for [`KEYFILE_FOLDER`], with [`KEYFILE_MODE`].
    pub keyfiles: Vec<NetworkFile>,
}

/// The keyfile of an interface. Its values are addresses, numbers and checked names: none can end a line.
pub(super) fn of(interface: &NodeInterface) -> NetworkFile {
    let mut text = KeyfileWriter::default();
    text.section("connection");
    text.set("id", &interface.name);
    text.set("type", interface.link.name());
    text.set("interface-name", &interface.name);
    if let Some(controller) = &interface.controller {
        text.set("master", controller);
        text.set("slave-type", "bond");
    }
    if interface.mac.is_some() || interface.mtu.is_some() {
        text.section("ethernet");
        if let Some(mac) = interface.mac {
            text.set("mac-address", mac.to_string().to_ascii_uppercase());
        }
        if let Some(mtu) = interface.mtu {
            text.set("mtu", mtu);
        }
    }
    match &interface.link {
        NodeLink::Ethernet => {}
        NodeLink::Bond { mode, options } => {
            text.section("bond");
            text.set("mode", mode);
            for (name, value) in options {
                text.set(name, value);
            }
        }
        NodeLink::Vlan { parent, id } => {
            text.section("vlan");
            text.set("id", id);
            text.set("parent", parent);
        }
    }
    for (name, family) in ["ipv4", "ipv6"].iter().zip(&interface.families) {
        write_family(name, family, &mut text);
    }
    NetworkFile {
        name: format!("{}.nmconnection", interface.name),
        content: text.text,
    }
}

fn write_family(name: &str, family: &FamilySettings, text: &mut KeyfileWriter) {
    let method = match family.method {
        FamilyMethod::Unset => return,
        FamilyMethod::Manual => "manual",
        FamilyMethod::Auto => "auto",
        FamilyMethod::Disabled => "disabled",
    };
    text.section(name);
    for (number, (address, gateway)) in (1..).zip(&family.addresses) {
        let gateway = gateway.map(|it| format!(",{it}")).unwrap_or_default();
        text.set(&format!("address{number}"), format!("{address}{gateway}"));
    }
    text.set_list("dns", &family.dns);
    text.set_list("dns-search", &family.search);
    // The node is online when its static addresses are there.
    if family.method == FamilyMethod::Manual {
        text.set("may-fail", false);
    }
    text.set("method", method);
    for (number, route) in (1..).zip(&family.routes) {
        let via = route.via.map(|it| it.to_string());
        let value = match (via, route.metric) {
            (Some(via), Some(metric)) => format!("{},{via},{metric}", route.to),
            (Some(via), None) => format!("{},{via}", route.to),
            (None, Some(metric)) => format!("{},,{metric}", route.to),
            (None, None) => route.to.to_string(),
        };
        text.set(&format!("route{number}"), value);
    }
}

/// Sections of keys, in the order of writing.
#[derive(Default)]
struct KeyfileWriter {
    text: String,
}

impl KeyfileWriter {
    fn section(&mut self, name: &str) {
        let blank = if self.text.is_empty() { "" } else { "\n" };
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{blank}[{name}]");
    }

    fn set(&mut self, key: &str, value: impl Display) {
        let _ = writeln!(self.text, "{key}={value}");
    }

    /// A list; each value ends with a semicolon, and an empty list is left out.
    fn set_list(&mut self, key: &str, values: &[impl Display]) {
        if !values.is_empty() {
            let values: Vec<String> = values.iter().map(|value| format!("{value};")).collect();
            self.set(key, values.concat());
        }
    }
}
