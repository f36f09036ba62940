//! Kinds of interfaces whose own part becomes one section: tables of their options.
//!
//! nmstate renders no section of HSR, IP VLANs, IP tunnels and loopbacks, so that NetworkManager refuses the keyfile or
//! loses the part; here they have the keys that NetworkManager documents. Source: nmstate, rust/src/lib/ifaces/ and
//! nm/settings/; NetworkManager, nm-settings-keyfile(5).

use crate::keyfile::{KeyfileSection, stable_uuid};
use crate::options::OptionKind::{
    Bits, Choice, Number, NumberUnless, Secret, Text, Truth, Unwritten, Word,
};
use crate::options::{OptionRow, set_options};
use crate::profile::Profiles;
use crate::scalar::integer;
use crate::state::{Identifier, Interface, InterfaceKind, PartMembers};
use crate::unrenderable::Unrenderable;

const U8: i64 = u8::MAX as i64;
const U16: i64 = u16::MAX as i64;
const U32: i64 = u32::MAX as i64;
/// The key of the whole InfiniBand fabric, that of an interface without a parent.
const DEFAULT_PKEY: i64 = U16;
const VXLAN_ID: i64 = 0xff_ffff;
const FLOW_LABEL: i64 = 0xf_ffff;
const MACSEC_PORT: i64 = i32::MAX as i64;
/// Length of a MACsec key. Units: hexadecimal digits.
const CAK_LENGTH: usize = 32;
/// Longest name of a MACsec key. Units: hexadecimal digits.
const CKN_LENGTH: usize = 64;

/// The part of an interface's kind, and the section that it becomes.
#[derive(Debug)]
struct KindPart {
    member: &'static str,
    kind: InterfaceKind,
    section: &'static str,
    options: &'static [OptionRow],
    needed: &'static [&'static str],
}

static MAC_VLAN: &[OptionRow] = &[
    ("base-iface", "parent", Text),
    (
        "mode",
        "mode",
        Choice(&[
            ("vepa", "1"),
            ("bridge", "2"),
            ("private", "3"),
            ("passthru", "4"),
            ("source", "5"),
        ]),
    ),
    ("promiscuous", "promiscuous", Truth),
    ("accept-all-mac", "promiscuous", Truth),
];

static PARTS: &[KindPart] = &[
    KindPart {
        member: "hsr",
        kind: InterfaceKind::Hsr,
        section: "hsr",
        options: &[
            ("port1", "port1", Text),
            ("port2", "port2", Text),
            ("interlink", "interlink", Text),
            ("supervision-address", "", Unwritten),
            ("multicast-spec", "multicast-spec", NumberUnless(U8, 0)),
            (
                "protocol",
                "prp",
                Choice(&[
                    ("hsr", "false"),
                    ("hsr-2010", "false"),
                    ("hsr-2012", "false"),
                    ("prp", "true"),
                ]),
            ),
            (
                "protocol",
                "protocol-version",
                Choice(&[
                    ("hsr", ""),
                    ("hsr-2010", ""),
                    ("hsr-2012", "1"),
                    ("prp", ""),
                ]),
            ),
        ],
        needed: &["port1", "port2", "multicast-spec", "protocol"],
    },
    KindPart {
        member: "infiniband",
        kind: InterfaceKind::Infiniband,
        section: "infiniband",
        options: &[
            ("base-iface", "parent", Text),
            ("mode", "transport-mode", Word(&["datagram", "connected"])),
            ("pkey", "p-key", NumberUnless(U16, DEFAULT_PKEY)),
        ],
        needed: &["mode"],
    },
    KindPart {
        member: "ip-tunnel",
        kind: InterfaceKind::IpTunnel,
        section: "ip-tunnel",
        options: &[
            ("base-iface", "parent", Text),
            (
                "mode",
                "mode",
                Choice(&[("ipip", "1"), ("sit", "3"), ("ip6ip6", "6"), ("ipip6", "7")]),
            ),
            ("local", "local", Text),
            ("remote", "remote", Text),
            ("ttl", "ttl", Number(U8)),
            ("tos", "tos", Number(U8)),
            ("flow-label", "flow-label", Number(FLOW_LABEL)),
            ("pmtu-disc", "path-mtu-discovery", Truth),
            ("encap-limit", "encapsulation-limit", Number(U8)),
            ("fwmark", "fwmark", Number(U32)),
            (
                "ip6tun-flags",
                "flags",
                Bits(&[
                    ("ign-encap-limit", 0x1),
                    ("use-orig-tclass", 0x2),
                    ("use-orig-flowlabel", 0x4),
                    ("mip6-dev", 0x8),
                    ("rcv-dscp-copy", 0x10),
                    ("use-orig-fw-mark", 0x20),
                    ("allow-local-remote", 0x40),
                    // Reports of the kernel.
                    ("cap-xmit", 0),
                    ("cap-rcv", 0),
                    ("cap-per-packet", 0),
                ]),
            ),
        ],
        needed: &["mode", "remote"],
    },
    KindPart {
        member: "ipvlan",
        kind: InterfaceKind::IpVlan,
        section: "ipvlan",
        options: &[
            ("base-iface", "parent", Text),
            (
                "mode",
                "mode",
                Choice(&[("l2", "1"), ("l3", "2"), ("l3s", "3")]),
            ),
            ("private", "private", Truth),
            ("vepa", "vepa", Truth),
        ],
        needed: &["base-iface"],
    },
    KindPart {
        member: "mac-vlan",
        kind: InterfaceKind::MacVlan,
        section: "macvlan",
        options: MAC_VLAN,
        needed: &["base-iface", "mode"],
    },
    KindPart {
        member: "mac-vtap",
        kind: InterfaceKind::MacVtap,
        section: "macvlan",
        options: MAC_VLAN,
        needed: &["base-iface", "mode"],
    },
    KindPart {
        member: "macsec",
        kind: InterfaceKind::Macsec,
        section: "macsec",
        options: &[
            ("base-iface", "parent", Text),
            ("encrypt", "encrypt", Truth),
            ("mka-cak", "mka-cak", Secret),
            ("mka-ckn", "mka-ckn", Text),
            ("port", "port", NumberUnless(MACSEC_PORT, 0)),
            (
                "validation",
                "validation",
                Choice(&[("disabled", "0"), ("check", "1"), ("strict", "2")]),
            ),
            ("send-sci", "send-sci", Truth),
            (
                "offload",
                "offload",
                Choice(&[("off", "0"), ("phy", "1"), ("mac", "2")]),
            ),
        ],
        needed: &["base-iface", "encrypt", "port", "validation", "send-sci"],
    },
    KindPart {
        member: "veth",
        kind: InterfaceKind::Ethernet,
        section: "veth",
        options: &[("peer", "peer", Text)],
        needed: &["peer"],
    },
    KindPart {
        member: "vrf",
        kind: InterfaceKind::Vrf,
        section: "vrf",
        options: &[
            ("route-table-id", "table", Number(U32)),
            ("port", "", Unwritten),
            ("ports", "", Unwritten),
        ],
        needed: &["route-table-id"],
    },
    KindPart {
        member: "vxlan",
        kind: InterfaceKind::Vxlan,
        section: "vxlan",
        options: &[
            ("base-iface", "parent", Text),
            ("id", "id", Number(VXLAN_ID)),
            ("learning", "learning", Truth),
            ("local", "local", Text),
            ("remote", "remote", Text),
            ("destination-port", "destination-port", Number(U16)),
        ],
        needed: &["id"],
    },
];

/// The section of the interface's kind; none for kinds without a part here.
///
/// Errors: a part of another kind, or one that is missing or wrong.
pub(crate) fn section(
    interface: &Interface,
    profiles: &Profiles,
) -> Result<Option<KeyfileSection>, Unrenderable> {
    let kind = match interface.kind {
        InterfaceKind::VethPeer => InterfaceKind::Ethernet,
        kind => kind,
    };
    for (member, values) in interface.parts() {
        let part = PARTS.iter().find(|part| part.member == member);
        if values.is_some() && part.is_none_or(|part| part.kind != kind) {
            let reason = format!("has {member}, which belongs to another type");
            return Err(Unrenderable::member(member, reason));
        }
    }
    let Some(part) = PARTS.iter().find(|part| part.kind == kind) else {
        return Ok(None);
    };
    let values = interface.parts().into_iter();
    let values = values
        .filter(|(member, _)| *member == part.member)
        .find_map(|(_, values)| values);
    let Some(values) = values else {
        // An ethernet interface is seldom one of a pair.
        return match kind {
            InterfaceKind::Ethernet => Ok(None),
            _ => Err(format!("has no {}, which its type needs", part.member).into()),
        };
    };
    let section = rendered(part, values, interface, profiles);
    section.map(Some).map_err(|error| error.below(part.member))
}

fn rendered(
    part: &KindPart,
    values: &PartMembers,
    interface: &Interface,
    profiles: &Profiles,
) -> Result<KeyfileSection, Unrenderable> {
    if let Some(name) = part.needed.iter().find(|name| !values.contains_key(**name)) {
        return Err(format!("has no {name}, which its type needs").into());
    }
    let mut section = KeyfileSection::new(part.section);
    set_options(&mut section, values, part.options)?;
    // A parent that has no certain name has a certain id.
    let base = values.get("base-iface").and_then(|base| base.as_str());
    let parent = base.and_then(|name| profiles.get(name));
    if let Some(parent) = parent.filter(|it| it.interface.identifier != Identifier::Name) {
        section.set("parent", stable_uuid(&parent.interface));
    }
    let is = |name: &str, word: &str| values.get(name).is_some_and(|value| value == word);
    let flag = |name: &str| values.get(name).and_then(crate::scalar::boolean);
    match interface.kind {
        InterfaceKind::Infiniband => {
            section.set_some("mtu", interface.mtu.map(|mtu| mtu.0));
            // Without a name the profile would fit any interface of its kind.
            let is_by_mac = interface.identifier == Identifier::MacAddress;
            let mac = interface.mac_address.as_ref().filter(|_| is_by_mac);
            section.set_some("mac-address", mac.map(|mac| mac.to_ascii_uppercase()));
        }
        InterfaceKind::Hsr if is("protocol", "prp") && values.contains_key("interlink") => {
            return Err(Unrenderable::member(
                "interlink",
                "PRP has no interlink: remove it",
            ));
        }
        InterfaceKind::IpVlan => {
            if flag("private") == Some(true) && flag("vepa") == Some(true) {
                return Err("private and vepa exclude each other".into());
            }
            if !values.contains_key("mode") {
                section.set("mode", 2);
            }
        }
        InterfaceKind::MacVlan | InterfaceKind::MacVtap => {
            section.set("tap", interface.kind == InterfaceKind::MacVtap);
            let promiscuous = flag("promiscuous").or(flag("accept-all-mac"));
            if promiscuous == Some(false) && !is("mode", "passthru") {
                return Err("promiscuous can be false in the mode passthru alone".into());
            }
        }
        InterfaceKind::Macsec => macsec_keys(values)?,
        InterfaceKind::Vrf if values.get("route-table-id").and_then(integer) == Some(0) => {
            return Err(Unrenderable::member(
                "route-table-id",
                "is 0: a VRF needs a table of its own",
            ));
        }
        _ => {}
    }
    Ok(section)
}

/// Checks the lengths of a MACsec key and its name, which come together.
fn macsec_keys(values: &PartMembers) -> Result<(), Unrenderable> {
    let text = |name: &str| values.get(name).and_then(|value| value.as_str());
    match (text("mka-cak"), text("mka-ckn")) {
        (None, None) => Ok(()),
        (Some(key), Some(name)) => {
            if key.len() != CAK_LENGTH {
                let reason = format!("mka-cak needs {CAK_LENGTH} hexadecimal digits");
                return Err(Unrenderable::member("mka-cak", reason));
            }
            if name.len() < 2 || name.len() > CKN_LENGTH || !name.len().is_multiple_of(2) {
                let reason =
                    format!("mka-ckn needs 2 to {CKN_LENGTH} hexadecimal digits, an even number");
                return Err(Unrenderable::member("mka-ckn", reason));
            }
            Ok(())
        }
        _ => Err("mka-cak and mka-ckn come together".into()),
    }
}

/// The section of the loopback interface, which has an MTU alone.
pub(crate) fn loopback(interface: &Interface) -> Option<KeyfileSection> {
    let mtu = interface
        .mtu
        .filter(|_| interface.kind == InterfaceKind::Loopback)?;
    let mut section = KeyfileSection::new("loopback");
    section.set("mtu", mtu.0);
    Some(section)
}
