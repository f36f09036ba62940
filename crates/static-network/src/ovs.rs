//! Bridges of Open vSwitch: a profile of the bridge, one of each port, and those of the interfaces in the ports.
//!
//! Source: nmstate, rust/src/lib/ifaces/ovs.rs, ovs.rs, nm/settings/ovs.rs and nm/nm_dbus/gen_conf/ovs.rs.

use serde_json::Value;

use crate::keyfile::{Keyfile, KeyfileSection, uuid_of};
use crate::link::trunk_tags;
use crate::options::OptionKind::{Choice, Digit, Number, Text, Truth, Unwritten};
use crate::options::{OptionRow, set_options};
use crate::scalar::boolean;
use crate::state::{
    BridgePort, Interface, InterfaceKind, InterfaceState, OvsDb, PartMembers, PortVlanMode,
};
use crate::unrenderable::Unrenderable;

const U32: i64 = u32::MAX as i64;
/// Most descriptors of a DPDK queue, whose number is a power of two.
const DPDK_DESCRIPTORS: i64 = 4096;

static BRIDGE_OPTIONS: &[OptionRow] = &[
    ("rstp", "rstp-enable", Truth),
    ("mcast-snooping-enable", "mcast-snooping-enable", Truth),
    ("fail-mode", "fail-mode", Text),
    ("datapath", "datapath-type", Text),
];

static BOND_OPTIONS: &[OptionRow] = &[
    (
        "mode",
        "lacp",
        Choice(&[
            ("active-backup", "off"),
            ("balance-slb", "off"),
            ("balance-tcp", "active"),
            ("lacp", "active"),
        ]),
    ),
    (
        "mode",
        "bond-mode",
        Choice(&[
            ("active-backup", "active-backup"),
            ("balance-slb", "balance-slb"),
            ("balance-tcp", "balance-tcp"),
            ("lacp", ""),
        ]),
    ),
    ("bond-downdelay", "bond-downdelay", Number(U32)),
    ("bond-updelay", "bond-updelay", Number(U32)),
    ("port", "", Unwritten),
    ("ports", "", Unwritten),
    ("ovs-db", "", Unwritten),
];

static DPDK_OPTIONS: &[OptionRow] = &[
    ("devargs", "devargs", Text),
    ("rx-queue", "n-rxq", Number(U32)),
    ("n_rxq", "n-rxq", Number(U32)),
    ("n_rxq_desc", "n-rxq-desc", Number(DPDK_DESCRIPTORS)),
    ("n_txq_desc", "n-txq-desc", Number(DPDK_DESCRIPTORS)),
    ("lsc-interrupt", "lsc-interrupt", Digit),
    ("dpdk-lsc-interrupt", "lsc-interrupt", Digit),
];

/// Interfaces of a port: those of its bond, or the one that it is named after.
///
/// Errors: a bond without a list of ports.
pub(crate) fn members_of(port: &BridgePort) -> Result<Vec<String>, Unrenderable> {
    let Some(bond) = &port.link_aggregation else {
        return Ok(vec![port.name.clone()]);
    };
    let list = bond.get("port").or_else(|| bond.get("ports"));
    let Some(list) = list.and_then(Value::as_array) else {
        return Err(format!("the bond {} has no list of ports", port.name).into());
    };
    let name = |item: &Value| item.get("name").and_then(Value::as_str).map(str::to_owned);
    let names: Option<Vec<String>> = list.iter().map(name).collect();
    names.ok_or_else(|| format!("the bond {} has a port without a name", port.name).into())
}

/// The section of a bridge.
pub(crate) fn bridge(interface: &Interface) -> Result<KeyfileSection, Unrenderable> {
    let mut section = KeyfileSection::new("ovs-bridge");
    if interface.mac_address.is_some() {
        let reason = "a bridge of Open vSwitch has no MAC address: set that of its ovs-interface";
        return Err(Unrenderable::member("mac-address", reason));
    }
    let Some(bridge) = &interface.bridge else {
        return Ok(section);
    };
    let at = |error: Unrenderable| error.below("options").below("bridge");
    let options = bridge.options.iter().filter(|(name, _)| *name != "stp");
    set_options(&mut section, options, BRIDGE_OPTIONS).map_err(at)?;
    if let Some(stp) = bridge.options.get("stp") {
        let enabled = match stp {
            Value::Object(members) => members.get("enabled").map(boolean),
            _ => Some(boolean(stp)),
        };
        let refused = || at(Unrenderable::member("stp", "stp is neither true nor false"));
        let enabled = enabled.map(|flag| flag.ok_or_else(refused)).transpose()?;
        section.set_some("stp-enable", enabled);
    }
    Ok(section)
}

/// The profiles of a bridge's ports.
pub(crate) fn ports(interface: &Interface) -> Result<Vec<Keyfile>, Unrenderable> {
    let ports = interface
        .bridge
        .as_ref()
        .and_then(|bridge| bridge.port.as_ref());
    let ports = ports.into_iter().flatten().enumerate();
    let keyfiles = ports.map(|(index, port)| {
        let keyfile = port_keyfile(interface, port);
        keyfile.map_err(|error| error.below_item("port", index).below("bridge"))
    });
    keyfiles.collect()
}

fn port_keyfile(bridge: &Interface, port: &BridgePort) -> Result<Keyfile, Unrenderable> {
    let id = format!("{}-port", port.name);
    let mut connection = KeyfileSection::new("connection");
    connection.set("autoconnect", bridge.state == InterfaceState::Up);
    connection.set("autoconnect-slaves", 1);
    connection.set("id", &id);
    connection.set("uuid", uuid_of("ovs-port", &port.name));
    connection.set("type", "ovs-port");
    connection.set("interface-name", &port.name);
    connection.set("master", &bridge.name);
    connection.set("slave-type", "ovs-bridge");
    let mut section = KeyfileSection::new("ovs-port");
    let mut sections = vec![connection];
    let mut database = Vec::new();
    if let Some(bond) = &port.link_aggregation {
        let at = |error: Unrenderable| error.below("link-aggregation");
        set_options(&mut section, bond, BOND_OPTIONS).map_err(at)?;
        if let Some(values) = bond.get("ovs-db") {
            let read = serde_path_to_error::deserialize(values.clone());
            let read: OvsDb =
                read.map_err(|error| at(Unrenderable::from_serde(error).below("ovs-db")))?;
            database = self::database(&read);
        }
    }
    if let Some(vlan) = &port.vlan {
        section.set_some("tag", vlan.tag.map(|tag| tag.0));
        section.set_some(
            "vlan-mode",
            vlan.mode.map(|mode| match mode {
                PortVlanMode::Trunk => "trunk",
                PortVlanMode::Access => "access",
            }),
        );
        let trunks = trunk_tags(vlan).map_err(|error| error.below("vlan"))?;
        let texts: Vec<String> = trunks.into_iter().map(|(_, text)| text).collect();
        section.set_some("trunks", (!texts.is_empty()).then(|| texts.join(",")));
    }
    sections.push(section);
    sections.extend(database);
    Ok(Keyfile { id, sections })
}

/// The sections of an interface of Open vSwitch: its type, and the other end of a patch or the device of DPDK.
pub(crate) fn interface(interface: &Interface) -> Result<Vec<KeyfileSection>, Unrenderable> {
    let mut own = KeyfileSection::new("ovs-interface");
    if let Some(patch) = &interface.patch {
        let is_enabled = |enabled: Option<bool>| enabled == Some(true);
        if is_enabled(interface.ipv4.as_ref().map(|ip| ip.enabled.0))
            || is_enabled(interface.ipv6.as_ref().map(|ip| ip.enabled.0))
            || interface.mtu.is_some()
        {
            return Err(Unrenderable::member(
                "patch",
                "a patch has neither addresses nor an MTU",
            ));
        }
        own.set("type", "patch");
        let mut section = KeyfileSection::new("ovs-patch");
        let set = set_options(&mut section, patch, &[("peer", "peer", Text)]);
        set.map_err(|error| error.below("patch"))?;
        if section.is_empty() {
            return Err(Unrenderable::member("patch", "the patch has no peer"));
        }
        return Ok(vec![own, section]);
    }
    if let Some(dpdk) = &interface.dpdk {
        own.set("type", "dpdk");
        let mut section = KeyfileSection::new("ovs-dpdk");
        let set = set_options(&mut section, dpdk, DPDK_OPTIONS);
        set.map_err(|error| error.below("dpdk"))?;
        for name in ["n_rxq_desc", "n_txq_desc"] {
            let count = dpdk.get(name).and_then(crate::scalar::integer);
            if count.is_some_and(|count| count & (count - 1) != 0) {
                let reason = format!("{name} is no power of two");
                return Err(Unrenderable::member(name, reason).below("dpdk"));
            }
        }
        if section.get("devargs").is_none() {
            return Err(Unrenderable::member("dpdk", "the device has no devargs"));
        }
        return Ok(vec![own, section]);
    }
    own.set("type", "internal");
    Ok(vec![own])
}

/// The sections of an entry's keys in the database of Open vSwitch.
pub(crate) fn database(values: &OvsDb) -> Vec<KeyfileSection> {
    let section = |name, values: &PartMembers| {
        let mut section = KeyfileSection::new(name);
        for (key, value) in values {
            match value {
                Value::String(text) => section.set(format!("data.{key}"), text),
                Value::Number(_) | Value::Bool(_) => section.set(format!("data.{key}"), value),
                Value::Null | Value::Array(_) | Value::Object(_) => {}
            }
        }
        section
    };
    let sections = [
        section("ovs-external-ids", &values.external_ids),
        section("ovs-other-config", &values.other_config),
    ];
    sections.into_iter().filter(|it| !it.is_empty()).collect()
}

/// The end of a profile's name, in which a bridge differs from its interface of the same name.
pub(crate) fn suffix(kind: InterfaceKind) -> &'static str {
    match kind {
        InterfaceKind::OvsBridge => "-br",
        InterfaceKind::OvsInterface => "-if",
        _ => "",
    }
}
