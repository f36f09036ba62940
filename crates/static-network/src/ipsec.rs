//! Connections of Libreswan, which NetworkManager has as VPNs.
//!
//! Source: nmstate, rust/src/lib/ifaces/ipsec.rs, nm/settings/vpn.rs and nm/nm_dbus/gen_conf/vpn.rs.

use crate::keyfile::KeyfileSection;
use crate::options::OptionKind::{Choice, FalseAsNo, Number, Secret, Text, Unwritten, YesNo};
use crate::options::{OptionRow, set_options};
use crate::state::Interface;
use crate::unrenderable::Unrenderable;

const SERVICE: &str = "org.freedesktop.NetworkManager.libreswan";
const U64: i64 = i64::MAX;
static FAMILIES: &[(&str, &str)] = &[("ipv4", "ipv4"), ("ipv6", "ipv6")];

static LIBRESWAN: &[OptionRow] = &[
    ("nm-auto-defaults", "nm-auto-defaults", FalseAsNo),
    ("right", "right", Text),
    ("rightid", "rightid", Text),
    ("rightrsasigkey", "rightrsasigkey", Text),
    ("rightcert", "rightcert", Text),
    ("rightsubnet", "rightsubnet", Text),
    ("rightsubnets", "rightsubnets", Text),
    ("rightca", "rightca", Text),
    ("rightprotoport", "rightprotoport", Text),
    ("left", "left", Text),
    ("leftid", "leftid", Text),
    ("leftrsasigkey", "leftrsasigkey", Text),
    ("leftcert", "leftcert", Text),
    ("leftsubnet", "leftsubnet", Text),
    ("leftsubnets", "leftsubnets", Text),
    ("leftsendcert", "leftsendcert", Text),
    ("leftprotoport", "leftprotoport", Text),
    ("leftmodecfgclient", "leftmodecfgclient", YesNo),
    ("ikev2", "ikev2", Text),
    ("ikelifetime", "ikelifetime", Text),
    ("salifetime", "salifetime", Text),
    ("ike", "ike", Text),
    ("esp", "esp", Text),
    ("dpddelay", "dpddelay", Number(U64)),
    ("dpdtimeout", "dpdtimeout", Number(U64)),
    ("dpdaction", "dpdaction", Text),
    ("ipsec-interface", "ipsec-interface", Text),
    ("authby", "authby", Text),
    (
        "type",
        "type",
        Choice(&[("tunnel", "tunnel"), ("transport", "transport")]),
    ),
    ("hostaddrfamily", "hostaddrfamily", Choice(FAMILIES)),
    ("clientaddrfamily", "clientaddrfamily", Choice(FAMILIES)),
    (
        "require-id-on-certificate",
        "require-id-on-certificate",
        YesNo,
    ),
    // In a section of its own.
    ("psk", "", Unwritten),
];

/// The sections of a connection, and of its secret.
pub(crate) fn sections(interface: &Interface) -> Result<Vec<KeyfileSection>, Unrenderable> {
    const PART: &str = "libreswan";
    let at = |error: Unrenderable| error.below(PART);
    let Some(values) = &interface.libreswan else {
        return Err("has no libreswan, which its type needs".into());
    };
    let mut section = KeyfileSection::new("vpn");
    set_options(&mut section, values, LIBRESWAN).map_err(at)?;
    if section.get("right").is_none() {
        return Err(at("has no right, the other end".into()));
    }
    section.set("service-type", SERVICE);
    let mut sections = vec![section];
    if let Some(secret) = values.get("psk") {
        let mut section = KeyfileSection::new("vpn-secrets");
        let name = "psk".to_owned();
        let row: OptionRow = ("psk", "pskvalue", Secret);
        set_options(&mut section, [(&name, secret)], &[row]).map_err(at)?;
        sections.push(section);
    }
    Ok(sections)
}
