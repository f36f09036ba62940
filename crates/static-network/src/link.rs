//! Bonds, bridges, their ports, and VLANs: options as tables.
//!
//! Source: nmstate, rust/src/lib/ifaces/{bond,linux_bridge,bridge_vlan}.rs and nm/settings/{bond,bridge,vlan}.rs.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::keyfile::{KeyfileSection, stable_uuid};
use crate::options::OptionKind::{
    Digit, Index, MacBytes, Number, Text, Texts, Truth, Unwritten, Word,
};
use crate::options::{OptionRow, set_options, written};
use crate::profile::{ConnectionProfile, Profiles};
use crate::scalar::integer;
use crate::state::{
    BridgePort, Identifier, Interface, InterfaceKind, PortVlan, PortVlanMode, PriorityPair,
    RegistrationProtocol, TrunkTag, Vlan, VlanProtocol,
};
use crate::unrenderable::Unrenderable;

const U8: i64 = u8::MAX as i64;
const U16: i64 = u16::MAX as i64;
const U32: i64 = u32::MAX as i64;

/// Modes of bonds, in the order of their numbers.
pub(crate) const BOND_MODES: &[&str] = &[
    "balance-rr",
    "active-backup",
    "balance-xor",
    "broadcast",
    "802.3ad",
    "balance-tlb",
    "balance-alb",
];
/// Values of `arp_validate`, likewise.
pub(crate) const ARP_VALIDATIONS: &[&str] = &[
    "none",
    "active",
    "backup",
    "all",
    "filter",
    "filter_active",
    "filter_backup",
];
/// Values of `xmit_hash_policy`, likewise.
pub(crate) const HASH_POLICIES: &[&str] = &[
    "layer2",
    "layer3+4",
    "layer2+3",
    "encap2+3",
    "encap3+4",
    "vlan+srcmac",
];

static BOND_OPTIONS: &[OptionRow] = &[
    ("ad_actor_sys_prio", "ad_actor_sys_prio", Number(U16)),
    ("ad_actor_system", "ad_actor_system", Text),
    (
        "ad_select",
        "ad_select",
        Word(&["stable", "bandwidth", "count"]),
    ),
    ("ad_user_port_key", "ad_user_port_key", Number(U16)),
    (
        "all_slaves_active",
        "all_slaves_active",
        Index(&["dropped", "delivered"]),
    ),
    ("arp_all_targets", "arp_all_targets", Word(&["any", "all"])),
    ("arp_interval", "arp_interval", Number(U32)),
    ("arp_ip_target", "arp_ip_target", Text),
    ("arp_missed_max", "arp_missed_max", Number(U8)),
    ("arp_validate", "arp_validate", Word(ARP_VALIDATIONS)),
    ("balance_slb", "balance-slb", Digit),
    ("balance-slb", "balance-slb", Digit),
    ("downdelay", "downdelay", Number(U32)),
    (
        "fail_over_mac",
        "fail_over_mac",
        Word(&["none", "active", "follow"]),
    ),
    ("lacp_active", "lacp_active", Digit),
    ("lacp_rate", "lacp_rate", Word(&["slow", "fast"])),
    ("lp_interval", "lp_interval", Number(U32)),
    ("miimon", "miimon", Number(U32)),
    ("min_links", "min_links", Number(U32)),
    ("ns_ip6_target", "ns_ip6_target", Texts),
    ("num_grat_arp", "num_grat_arp", Number(U8)),
    ("num_unsol_na", "num_unsol_na", Number(U8)),
    ("packets_per_slave", "packets_per_slave", Number(U32)),
    ("primary", "primary", Text),
    (
        "primary_reselect",
        "primary_reselect",
        Word(&["always", "better", "failure"]),
    ),
    ("resend_igmp", "resend_igmp", Number(U32)),
    ("tlb_dynamic_lb", "tlb_dynamic_lb", Digit),
    ("updelay", "updelay", Number(U32)),
    ("use_carrier", "use_carrier", Digit),
    ("xmit_hash_policy", "xmit_hash_policy", Word(HASH_POLICIES)),
];

static BRIDGE_OPTIONS: &[OptionRow] = &[
    ("gc-timer", "", Unwritten),
    ("group-addr", "group-address", MacBytes),
    ("group-forward-mask", "group-forward-mask", Number(U16)),
    ("group-fwd-mask", "group-forward-mask", Number(U16)),
    ("hash-max", "multicast-hash-max", Number(U32)),
    ("hello-timer", "", Unwritten),
    ("mac-ageing-time", "ageing-time", Number(U32)),
    (
        "multicast-last-member-count",
        "multicast-last-member-count",
        Number(U32),
    ),
    (
        "multicast-last-member-interval",
        "multicast-last-member-interval",
        Number(i64::MAX),
    ),
    (
        "multicast-membership-interval",
        "multicast-membership-interval",
        Number(i64::MAX),
    ),
    ("multicast-querier", "multicast-querier", Truth),
    (
        "multicast-querier-interval",
        "multicast-querier-interval",
        Number(i64::MAX),
    ),
    (
        "multicast-query-interval",
        "multicast-query-interval",
        Number(i64::MAX),
    ),
    (
        "multicast-query-response-interval",
        "multicast-query-response-interval",
        Number(i64::MAX),
    ),
    (
        "multicast-query-use-ifaddr",
        "multicast-query-use-ifaddr",
        Truth,
    ),
    (
        "multicast-router",
        "multicast-router",
        Word(&["disabled", "auto", "enabled"]),
    ),
    ("multicast-snooping", "multicast-snooping", Truth),
    (
        "multicast-startup-query-count",
        "multicast-startup-query-count",
        Number(U32),
    ),
    (
        "multicast-startup-query-interval",
        "multicast-startup-query-interval",
        Number(i64::MAX),
    ),
    ("vlan-default-pvid", "vlan-default-pvid", Number(U16)),
];

static STP_OPTIONS: &[OptionRow] = &[
    ("enabled", "stp", Truth),
    ("forward-delay", "forward-delay", Number(U8)),
    ("hello-time", "hello-time", Number(U8)),
    ("max-age", "max-age", Number(U8)),
    ("priority", "priority", Number(U16)),
];

/// The section of a bond.
pub(crate) fn bond(interface: &Interface) -> Result<KeyfileSection, Unrenderable> {
    bond_options(interface).map_err(|error| error.below("link-aggregation"))
}

fn bond_options(interface: &Interface) -> Result<KeyfileSection, Unrenderable> {
    let mut section = KeyfileSection::new("bond");
    let bond = interface.link_aggregation.as_ref();
    let Some((bond, mode)) = bond.and_then(|bond| Some((bond, bond.mode.as_ref()?))) else {
        return Err("a bond needs link-aggregation with a mode".into());
    };
    let mode = if mode == "lacp" {
        Some("802.3ad".to_owned())
    } else {
        written(Word(BOND_MODES), mode)
    };
    section.set(
        "mode",
        mode.ok_or_else(|| Unrenderable::member("mode", "its bond has an unknown mode"))?,
    );
    // Two is the kernel's own value, which old NetworkManagers cannot set.
    let options = bond
        .options
        .iter()
        .filter(|(name, value)| *name != "arp_missed_max" || integer(value) != Some(2));
    let upper: BTreeMap<String, Value> = options
        .map(|(name, value)| match (name.as_str(), value.as_str()) {
            ("ad_actor_system", Some(mac)) => (name.clone(), mac.to_ascii_uppercase().into()),
            _ => (name.clone(), value.clone()),
        })
        .collect();
    let set = set_options(&mut section, &upper, BOND_OPTIONS);
    set.map_err(|error| error.below("options"))?;
    Ok(section)
}

/// Whether the bond has the MAC address of its active port, so that its own one is ignored.
pub(crate) fn is_mac_of_port(interface: &Interface) -> bool {
    let word = |words, value: Option<&Value>| value.and_then(|value| written(Word(words), value));
    interface.link_aggregation.as_ref().is_some_and(|bond| {
        let fail_over = bond.options.get("fail_over_mac");
        word(BOND_MODES, bond.mode.as_ref()).as_deref() == Some("active-backup")
            && word(&["none", "active", "follow"], fail_over).as_deref() == Some("active")
    })
}

/// The section of a bridge.
pub(crate) fn bridge(interface: &Interface) -> Result<KeyfileSection, Unrenderable> {
    let mut section = KeyfileSection::new("bridge");
    let Some(bridge) = &interface.bridge else {
        return Ok(section);
    };
    let at = |error: Unrenderable| error.below("options").below("bridge");
    let apart = ["stp", "vlan-protocol"];
    let options = bridge.options.iter();
    let options = options.filter(|(name, _)| !apart.contains(&name.as_str()));
    set_options(&mut section, options, BRIDGE_OPTIONS).map_err(at)?;
    match bridge.options.get("vlan-protocol").map(Value::as_str) {
        None => {}
        Some(Some("802.1q")) => section.set("vlan-protocol", "802.1Q"),
        Some(Some("802.1ad")) => section.set("vlan-protocol", "802.1ad"),
        Some(_) => {
            let reason = "vlan-protocol is neither 802.1q nor 802.1ad";
            return Err(at(Unrenderable::member("vlan-protocol", reason)));
        }
    }
    match bridge.options.get("stp") {
        None => {}
        Some(Value::Object(stp)) => {
            set_options(&mut section, stp, STP_OPTIONS).map_err(|error| at(error.below("stp")))?;
        }
        Some(_) => {
            let reason = "stp is no list of options: write \"stp: {enabled: true}\"";
            return Err(at(Unrenderable::member("stp", reason)));
        }
    }
    if let Some(ports) = &bridge.port {
        let bonded = ports.iter().position(|it| it.link_aggregation.is_some());
        if let Some(index) = bonded {
            let reason = "a bond in a port belongs to bridges of Open vSwitch: list a bond";
            let error = Unrenderable::member("link-aggregation", reason);
            return Err(error.below_item("port", index).below("bridge"));
        }
        section.set("vlan-filtering", ports.iter().any(filters_vlans));
    }
    Ok(section)
}

fn filters_vlans(port: &BridgePort) -> bool {
    port.vlan.as_ref().is_some_and(|vlan| {
        vlan.enable_native.is_some()
            || vlan.mode.is_some()
            || vlan.tag.is_some()
            || vlan.trunk_tags.is_some()
    })
}

/// The section of a port of a bond or bridge.
pub(crate) fn port(
    profile: &ConnectionProfile,
    profiles: &Profiles,
) -> Result<Option<KeyfileSection>, Unrenderable> {
    let interface = &profile.interface;
    let controller = profile.controller.as_ref();
    let controller = controller.map(|it| it.name.as_str());
    // nmstate finds the port's options by the name in its connection.
    let by_name = interface.identifier == Identifier::Name;
    let Some(controller) = controller
        .and_then(|name| profiles.get(name))
        .filter(|_| by_name)
    else {
        return Ok(None);
    };
    let controller = &controller.interface;
    match controller.kind {
        InterfaceKind::Bond => {
            let bond = controller.link_aggregation.as_ref();
            let ports = bond.and_then(|bond| bond.ports_config.as_ref());
            let port =
                ports.and_then(|ports| ports.iter().find(|port| port.name == interface.name));
            let priority = port
                .and_then(|port| port.priority)
                .filter(|number| number.0 != 0);
            let queue = port.and_then(|port| port.queue_id);
            if priority.is_none() && queue.is_none_or(|queue| queue.0 == 0) {
                return Ok(None);
            }
            let mut section = KeyfileSection::new("bond-port");
            section.set_some("prio", priority.map(|number| number.0));
            section.set_some("queue-id", queue.map(|queue| queue.0));
            Ok(Some(section))
        }
        InterfaceKind::LinuxBridge => {
            let bridge = controller.bridge.as_ref();
            let ports = bridge.and_then(|bridge| bridge.port.as_ref());
            let port =
                ports.and_then(|ports| ports.iter().find(|port| port.name == interface.name));
            let Some(port) = port else {
                return Ok(None);
            };
            let mut section = KeyfileSection::new("bridge-port");
            section.set_some("hairpin-mode", port.stp_hairpin_mode.map(|flag| flag.0));
            section.set_some("path-cost", port.stp_path_cost.map(|cost| cost.0));
            section.set_some("priority", port.stp_priority.map(|number| number.0));
            if let Some(vlan) = &port.vlan {
                let vlans = port_vlans(vlan)?;
                if !vlans.is_empty() {
                    section.set("vlans", vlans);
                }
            }
            Ok(Some(section))
        }
        _ => Ok(None),
    }
}

/// VLANs of a bridge's port: ranges, and the untagged one.
fn port_vlans(vlan: &PortVlan) -> Result<String, Unrenderable> {
    let tag = vlan
        .tag
        .map(|tag| (tag.0, format!("{} pvid untagged", tag.0)));
    let mut vlans = trunk_tags(vlan)?;
    if vlan.mode.is_some() {
        vlans.extend(tag);
    }
    vlans.sort_by_key(|(id, _)| *id);
    let texts: Vec<String> = vlans.into_iter().map(|(_, text)| text).collect();
    Ok(texts.join(","))
}

/// The ranges of a trunk, each with its first VLAN, in order.
pub(crate) fn trunk_tags(vlan: &PortVlan) -> Result<Vec<(u16, String)>, Unrenderable> {
    let mut vlans = Vec::new();
    if vlan.mode != Some(PortVlanMode::Trunk) {
        return Ok(vlans);
    }
    if vlan.tag.is_some() && !vlan.enable_native.is_some_and(|flag| flag.0) {
        return Err("a trunk port has a tag without enable-native".into());
    }
    for trunk in vlan.trunk_tags.iter().flatten() {
        match *trunk {
            TrunkTag::Id(id) => vlans.push((id.0, id.0.to_string())),
            TrunkTag::IdRange { min, max } if min == max => {
                vlans.push((min.0, min.0.to_string()));
            }
            TrunkTag::IdRange { min, max } if min < max => {
                vlans.push((min.0, format!("{}-{}", min.0, max.0)));
            }
            TrunkTag::IdRange { min, max } => {
                let reason = format!("the trunk tags {} to {} are no range", min.0, max.0);
                return Err(reason.into());
            }
        }
    }
    vlans.sort_by_key(|(id, _)| *id);
    Ok(vlans)
}

/// The section of a VLAN. A parent that is found by its MAC address has no certain name, but a certain id.
pub(crate) fn vlan(
    vlan: &Vlan,
    parent: Option<&Interface>,
) -> Result<KeyfileSection, Unrenderable> {
    const REORDER_HEADERS: u8 = 1;
    const GVRP: u8 = 2;
    const LOOSE_BINDING: u8 = 4;
    const MVRP: u8 = 8;
    if vlan.id.0 > 4094 {
        let reason = format!("{} is no VLAN id: it is above 4094", vlan.id.0);
        return Err(Unrenderable::member("id", reason));
    }
    let mut section = KeyfileSection::new("vlan");
    let mut flags = 0;
    if vlan.reorder_headers.is_none_or(|flag| flag.0) {
        flags |= REORDER_HEADERS;
    }
    if vlan.loose_binding.is_some_and(|flag| flag.0) {
        flags |= LOOSE_BINDING;
    }
    flags |= match vlan.registration_protocol {
        Some(RegistrationProtocol::Gvrp) => GVRP,
        Some(RegistrationProtocol::Mvrp) => MVRP,
        Some(RegistrationProtocol::None) | None => 0,
    };
    section.set("flags", flags);
    section.set("id", vlan.id.0);
    match parent.filter(|parent| parent.identifier != Identifier::Name) {
        Some(parent) => section.set("parent", stable_uuid(parent)),
        None => section.set("parent", &vlan.base_iface),
    }
    section.set_some(
        "protocol",
        vlan.protocol.map(|protocol| match protocol {
            VlanProtocol::Dot1Q => "802.1Q",
            VlanProtocol::Dot1Ad => "802.1ad",
        }),
    );
    for (member, key, pairs, is_frame) in [
        (
            "ingress-qos-map",
            "ingress-priority-map",
            &vlan.ingress_qos_map,
            false,
        ),
        (
            "egress-qos-map",
            "egress-priority-map",
            &vlan.egress_qos_map,
            true,
        ),
    ] {
        section.set_list(key, &priorities(member, pairs, is_frame)?);
    }
    Ok(section)
}

/// Pairs of priorities; those of frames are bounded, on the side that `to_frames` says.
fn priorities(
    member: &str,
    pairs: &[PriorityPair],
    to_frames: bool,
) -> Result<Vec<String>, Unrenderable> {
    const MOST: u32 = 7;
    let mut pairs = pairs.to_vec();
    pairs.sort_unstable();
    let too_high = pairs
        .iter()
        .map(|pair| if to_frames { pair.to.0 } else { pair.from.0 })
        .find(|priority| *priority > MOST);
    if let Some(priority) = too_high {
        let reason = format!("{priority} is no priority of a VLAN: it is above {MOST}");
        return Err(Unrenderable::member(member, reason));
    }
    let text = |pair: &PriorityPair| format!("{}:{}", pair.from.0, pair.to.0);
    Ok(pairs.iter().map(text).collect())
}
