//! Sections of any interface with a NIC's abilities: SR-IOV, 802.1X and ethtool.
//!
//! Source: nmstate, rust/src/lib/ifaces/{sriov,ethtool}.rs, ieee8021x.rs, and nm/settings/{sriov,ethtool,ieee8021x}.rs.

use crate::keyfile::KeyfileSection;
use crate::options::OptionKind::{
    Capitals, Digit, Number, Secret, Text, TextList, Truth, Unwritten, Word,
};
use crate::options::{OptionKind, OptionRow, refused, set_options, written};
use crate::scalar::{described, integer};
use crate::state::{Interface, PartMembers};
use crate::unrenderable::Unrenderable;

const U32: i64 = u32::MAX as i64;
/// Largest VLAN id of a virtual function. Source: nm-settings(5).
const VLAN_ID: i64 = 4095;

static SR_IOV: &[OptionRow] = &[
    ("total-vfs", "total-vfs", Number(U32)),
    ("drivers-autoprobe", "autoprobe-drivers", Digit),
    ("max-vfs", "", Unwritten),
    ("vfs", "", Unwritten),
];

/// Options of a virtual function, in the order of its line.
static FUNCTION: &[OptionRow] = &[
    ("mac-address", "mac", Capitals),
    ("spoof-check", "spoof-check", Truth),
    ("trust", "trust", Truth),
    ("min-tx-rate", "min-tx-rate", Number(U32)),
    ("max-tx-rate", "max-tx-rate", Number(U32)),
];
/// Options that the line joins, and reports.
static FUNCTION_OTHERS: &[OptionRow] = &[
    ("id", "", Number(U32)),
    ("iface-name", "", Unwritten),
    ("vlan-id", "", Number(VLAN_ID)),
    ("qos", "", Number(U32)),
    ("vlan-proto", "", Word(&["802.1q", "802.1ad"])),
];

/// The section of virtual functions; none where there are to be none.
pub(crate) fn sr_iov(interface: &Interface) -> Result<Option<KeyfileSection>, Unrenderable> {
    let Some(values) = interface
        .ethernet
        .as_ref()
        .and_then(|it| it.sr_iov.as_ref())
    else {
        return Ok(None);
    };
    let section = functions(values);
    section.map_err(|error| error.below("sr-iov").below("ethernet"))
}

fn functions(values: &PartMembers) -> Result<Option<KeyfileSection>, Unrenderable> {
    let mut section = KeyfileSection::new("sriov");
    set_options(&mut section, values, SR_IOV)?;
    if values.get("total-vfs").and_then(integer) == Some(0) {
        return Ok(None);
    }
    let Some(list) = values.get("vfs") else {
        return Ok(Some(section));
    };
    let Some(list) = list.as_array() else {
        let reason = format!("vfs is {}: write a list", described(list));
        return Err(Unrenderable::member("vfs", reason));
    };
    for (index, function) in list.iter().enumerate() {
        let at = |error: Unrenderable| error.below_item("vfs", index);
        let Some(members) = function.as_object() else {
            let reason = format!("is {}: write an object with an id", described(function));
            return Err(at(reason.into()));
        };
        let members: PartMembers = members.clone().into_iter().collect();
        let (id, line) = function_line(&members).map_err(at)?;
        if !line.is_empty() {
            section.set(format!("vf.{id}"), line);
        }
    }
    Ok(Some(section))
}

/// The number of a virtual function, and its options as one text.
fn function_line(members: &PartMembers) -> Result<(String, String), Unrenderable> {
    let rows = || FUNCTION.iter().chain(FUNCTION_OTHERS);
    if let Some(name) = members
        .keys()
        .find(|name| rows().all(|row| row.0 != **name))
    {
        let reason = format!("the option {name} cannot be rendered");
        return Err(Unrenderable::member(name, reason));
    }
    let text = |row: &OptionRow| -> Result<Option<String>, Unrenderable> {
        let Some(value) = members.get(row.0) else {
            return Ok(None);
        };
        let text = written(row.2, value).ok_or_else(|| refused(row.0, row.2, value))?;
        Ok(Some(text))
    };
    let mut parts = Vec::new();
    for row in FUNCTION {
        parts.extend(text(row)?.map(|text| format!("{}={text}", row.1)));
    }
    let mut others = Vec::new();
    for row in FUNCTION_OTHERS {
        others.push(text(row)?);
    }
    let [id, _, vlan, qos, protocol] = &others[..] else {
        return Ok((String::new(), String::new()));
    };
    let Some(id) = id else {
        return Err("has no id: number the function from 0".into());
    };
    let (qos, is_outer) = (
        qos.as_deref().unwrap_or("0"),
        protocol.as_deref() == Some("802.1ad"),
    );
    match vlan {
        Some(vlan) => {
            let protocol = if is_outer { "ad" } else { "q" };
            parts.push(format!("vlans={vlan}.{qos}.{protocol}"));
        }
        None if is_outer && qos == "0" => {
            let reason = "vlan-proto 802.1ad needs a vlan-id or qos";
            return Err(Unrenderable::member("vlan-proto", reason));
        }
        None => {}
    }
    Ok((id.clone(), parts.join(" ")))
}

static PORT_ACCESS: &[OptionRow] = &[
    ("ca-cert", "ca-cert", Text),
    ("client-cert", "client-cert", Text),
    ("eap-methods", "eap", TextList),
    ("identity", "identity", Text),
    ("password", "password", Secret),
    ("phase2-auth", "phase2-auth", Text),
    ("private-key", "private-key", Text),
    ("private-key-password", "private-key-password", Secret),
];

/// The section of 802.1X.
pub(crate) fn port_access(interface: &Interface) -> Result<Option<KeyfileSection>, Unrenderable> {
    const PART: &str = "802.1x";
    let Some(values) = &interface.port_access else {
        return Ok(None);
    };
    let mut section = KeyfileSection::new("802-1x");
    let set = set_options(&mut section, values, PORT_ACCESS);
    set.map_err(|error| error.below(PART))?;
    Ok(Some(section))
}

static PAUSE: &[OptionRow] = &[
    ("autoneg", "pause-autoneg", Truth),
    ("rx", "pause-rx", Truth),
    ("tx", "pause-tx", Truth),
];

static COALESCE: &[OptionRow] = &[
    ("adaptive-rx", "coalesce-adaptive-rx", Digit),
    ("adaptive-tx", "coalesce-adaptive-tx", Digit),
    ("pkt-rate-high", "coalesce-pkt-rate-high", Number(U32)),
    ("pkt-rate-low", "coalesce-pkt-rate-low", Number(U32)),
    ("rx-frames", "coalesce-rx-frames", Number(U32)),
    ("rx-frames-high", "coalesce-rx-frames-high", Number(U32)),
    ("rx-frames-irq", "coalesce-rx-frames-irq", Number(U32)),
    ("rx-frames-low", "coalesce-rx-frames-low", Number(U32)),
    ("rx-usecs", "coalesce-rx-usecs", Number(U32)),
    ("rx-usecs-high", "coalesce-rx-usecs-high", Number(U32)),
    ("rx-usecs-irq", "coalesce-rx-usecs-irq", Number(U32)),
    ("rx-usecs-low", "coalesce-rx-usecs-low", Number(U32)),
    ("sample-interval", "coalesce-sample-interval", Number(U32)),
    (
        "stats-block-usecs",
        "coalesce-stats-block-usecs",
        Number(U32),
    ),
    ("tx-frames", "coalesce-tx-frames", Number(U32)),
    ("tx-frames-high", "coalesce-tx-frames-high", Number(U32)),
    ("tx-frames-irq", "coalesce-tx-frames-irq", Number(U32)),
    ("tx-frames-low", "coalesce-tx-frames-low", Number(U32)),
    ("tx-usecs", "coalesce-tx-usecs", Number(U32)),
    ("tx-usecs-high", "coalesce-tx-usecs-high", Number(U32)),
    ("tx-usecs-irq", "coalesce-tx-usecs-irq", Number(U32)),
    ("tx-usecs-low", "coalesce-tx-usecs-low", Number(U32)),
];

static RING: &[OptionRow] = &[
    ("rx", "ring-rx", Number(U32)),
    ("rx-jumbo", "ring-rx-jumbo", Number(U32)),
    ("rx-mini", "ring-rx-mini", Number(U32)),
    ("tx", "ring-tx", Number(U32)),
    ("rx-max", "", Unwritten),
    ("rx-jumbo-max", "", Unwritten),
    ("rx-mini-max", "", Unwritten),
    ("tx-max", "", Unwritten),
];

/// Bits of NetworkManager's fec-mode.
static FEC_MODES: &[(&str, &str)] = &[("off", "4"), ("rs", "8"), ("baser", "16"), ("llrs", "32")];
const FEC_AUTO: &str = "2";
const FEC_OFF: &str = "4";

/// Names of features in nmstate and ethtool, each with NetworkManager's.
static FEATURE_NAMES: &[(&str, &str)] = &[
    ("rx", "rx"),
    ("rx-checksum", "rx"),
    ("rx-checksumming", "rx"),
    ("tx-scatter-gather", "sg"),
    ("tx-tcp-segmentation", "tso"),
    ("tso", "tso"),
    ("tcp-segmentation-offload", "tso"),
    ("rx-gro", "gro"),
    ("gro", "gro"),
    ("generic-receive-offload", "gro"),
    ("tx-generic-segmentation", "gso"),
    ("gso", "gso"),
    ("generic-segmentation-offload", "gso"),
    ("rx-hashing", "rxhash"),
    ("rxhash", "rxhash"),
    ("receive-hashing", "rxhash"),
    ("rx-lro", "lro"),
    ("lro", "lro"),
    ("large-receive-offload", "lro"),
    ("rx-ntuple-filter", "ntuple"),
    ("ntuple", "ntuple"),
    ("ntuple-filters", "ntuple"),
    ("rx-vlan-hw-parse", "rxvlan"),
    ("rxvlan", "rxvlan"),
    ("rx-vlan-offload", "rxvlan"),
    ("tx-vlan-hw-insert", "txvlan"),
    ("txvlan", "txvlan"),
    ("tx-vlan-offload", "txvlan"),
];

/// Features that have the same name in NetworkManager; it refuses a profile with another one. Source: nm-settings(5).
static FEATURES: &[&str] = &[
    "esp-hw-offload",
    "esp-tx-csum-hw-offload",
    "fcoe-mtu",
    "highdma",
    "hw-tc-offload",
    "l2-fwd-offload",
    "loopback",
    "macsec-hw-offload",
    "rx-all",
    "rx-fcs",
    "rx-gro-hw",
    "rx-gro-list",
    "rx-udp-gro-forwarding",
    "rx-udp_tunnel-port-offload",
    "rx-vlan-filter",
    "rx-vlan-stag-filter",
    "rx-vlan-stag-hw-parse",
    "sg",
    "tls-hw-record",
    "tls-hw-rx-offload",
    "tls-hw-tx-offload",
    "tx",
    "tx-checksum-fcoe-crc",
    "tx-checksum-ip-generic",
    "tx-checksum-ipv4",
    "tx-checksum-ipv6",
    "tx-checksum-sctp",
    "tx-esp-segmentation",
    "tx-fcoe-segmentation",
    "tx-gre-csum-segmentation",
    "tx-gre-segmentation",
    "tx-gso-list",
    "tx-gso-partial",
    "tx-gso-robust",
    "tx-ipxip4-segmentation",
    "tx-ipxip6-segmentation",
    "tx-nocache-copy",
    "tx-scatter-gather-fraglist",
    "tx-sctp-segmentation",
    "tx-tcp-ecn-segmentation",
    "tx-tcp-mangleid-segmentation",
    "tx-tcp6-segmentation",
    "tx-tunnel-remcsum-segmentation",
    "tx-udp-segmentation",
    "tx-udp_tnl-csum-segmentation",
    "tx-udp_tnl-segmentation",
    "tx-vlan-stag-hw-insert",
];

/// The section of ethtool.
pub(crate) fn ethtool(interface: &Interface) -> Result<Option<KeyfileSection>, Unrenderable> {
    let Some(parts) = &interface.ethtool else {
        return Ok(None);
    };
    let mut section = KeyfileSection::new("ethtool");
    for (part, values) in parts {
        let set = set_ethtool(&mut section, part, values);
        set.map_err(|error| error.below(part).below("ethtool"))?;
    }
    Ok(Some(section))
}

fn set_ethtool(
    section: &mut KeyfileSection,
    part: &str,
    values: &PartMembers,
) -> Result<(), Unrenderable> {
    match part {
        "pause" => {
            let is_negotiated = values.get("autoneg").and_then(crate::scalar::boolean);
            // Negotiated directions are no setting.
            let set = values
                .iter()
                .filter(|(name, _)| *name == "autoneg" || is_negotiated == Some(false));
            set_options(section, set, PAUSE)
        }
        "coalesce" => set_options(section, values, COALESCE),
        "ring" => set_options(section, values, RING),
        "fec" => set_fec(section, values),
        "feature" => set_features(section, values),
        _ => Err("keyfiles cannot express this part of ethtool".into()),
    }
}

fn set_fec(section: &mut KeyfileSection, values: &PartMembers) -> Result<(), Unrenderable> {
    const ROWS: &[OptionRow] = &[
        ("auto", "auto", Truth),
        ("mode", "mode", OptionKind::Choice(FEC_MODES)),
    ];
    let mut read = KeyfileSection::new("fec");
    set_options(&mut read, values, ROWS)?;
    let mode = match (read.get("auto"), read.get("mode")) {
        (Some("true"), _) => Some(FEC_AUTO),
        (_, Some(mode)) => Some(mode),
        (Some(_), None) => Some(FEC_OFF),
        (None, None) => None,
    };
    section.set_some("fec-mode", mode);
    Ok(())
}

fn set_features(section: &mut KeyfileSection, values: &PartMembers) -> Result<(), Unrenderable> {
    for (name, value) in values {
        let renamed = FEATURE_NAMES.iter().find(|(known, _)| known == name);
        let same = || FEATURES.iter().find(|known| **known == name.as_str());
        let Some(key) = renamed.map(|(_, key)| *key).or_else(|| same().copied()) else {
            let reason = format!("the feature {name} is unknown to NetworkManager");
            return Err(Unrenderable::member(name, reason));
        };
        let text = written(Truth, value).ok_or_else(|| refused(name, Truth, value))?;
        section.set(format!("feature-{key}"), text);
    }
    Ok(())
}
