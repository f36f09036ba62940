//! The keyfile of one interface. Source: nmstate, rust/src/lib/nm/settings/ and nm/nm_dbus/gen_conf/.

use crate::keyfile::{Keyfile, KeyfileSection, stable_uuid};
use crate::options::{OptionKind, refused, written};
use crate::profile::{ConnectionProfile, Profiles, located};
use crate::state::{Duplex, Identifier, Interface, InterfaceKind, InterfaceState};
use crate::unrenderable::Unrenderable;
use crate::{ethernet, ip, ipsec, link, ovs, parts};

/// Bits of NetworkManager's mptcp-flags. Source: nm-settings(5).
static MPTCP_FLAGS: OptionKind = OptionKind::Bits(&[
    ("signal", 0x10),
    ("subflow", 0x20),
    ("backup", 0x40),
    ("fullmesh", 0x80),
]);
const MPTCP_DISABLED: u32 = 0x1;
/// Flags that the kernel refuses together. Source: nmstate, rust/src/lib/mptcp.rs.
const MPTCP_EXCLUSIVE: u32 = 0x10 | 0x80;
/// The flags hold without a default route, too.
const MPTCP_ALWAYS: u32 = 0x8;

/// Renders the profile, and those of a bridge's ports.
///
/// Errors: the part that cannot be rendered.
pub(crate) fn keyfiles(
    profile: &ConnectionProfile,
    profiles: &Profiles,
) -> Result<Vec<Keyfile>, Unrenderable> {
    let rendered = || {
        let mut keyfiles = vec![keyfile(profile, profiles)?];
        if profile.interface.kind == InterfaceKind::OvsBridge {
            keyfiles.extend(ovs::ports(&profile.interface)?);
        }
        Ok(keyfiles)
    };
    rendered().map_err(|error| located(&profile.interface, error))
}

/// Sections come in nmstate's order.
fn keyfile(profile: &ConnectionProfile, profiles: &Profiles) -> Result<Keyfile, Unrenderable> {
    let interface = &profile.interface;
    let kind = interface.kind;
    let id = interface.profile_name.clone();
    let id = id.unwrap_or_else(|| format!("{}{}", interface.name, ovs::suffix(kind)));
    let mut sections = vec![connection(profile, &id)?];
    match kind {
        InterfaceKind::Bond => sections.push(link::bond(interface)?),
        InterfaceKind::LinuxBridge => sections.push(link::bridge(interface)?),
        _ => {}
    }
    sections.extend(link::port(profile, profiles)?);
    sections.extend(ip::sections(profile)?);
    match kind {
        InterfaceKind::OvsBridge => sections.push(ovs::bridge(interface)?),
        InterfaceKind::OvsInterface => sections.extend(ovs::interface(interface)?),
        _ => {}
    }
    // These have no Ethernet frames, or no device at all.
    if !matches!(
        kind,
        InterfaceKind::Infiniband | InterfaceKind::Loopback | InterfaceKind::OvsBridge
    ) {
        sections.push(wired(interface));
        sections.retain(|section| !(section.is_named("ethernet") && section.is_empty()));
    }
    if let Some(vlan) = &interface.vlan {
        let parent = profiles
            .get(&vlan.base_iface)
            .map(|parent| &parent.interface);
        let section = link::vlan(vlan, parent);
        sections.push(section.map_err(|error| error.below("vlan"))?);
    }
    sections.extend(ethernet::sr_iov(interface)?);
    sections.extend(parts::section(interface, profiles)?);
    sections.extend(parts::loopback(interface));
    if let Some(text) = interface.description.as_ref() {
        let mut user = KeyfileSection::new("user");
        if !text.is_empty() {
            user.set("nmstate.interface.description", text);
        }
        sections.push(user);
    }
    sections.extend(ethernet::port_access(interface)?);
    sections.extend(ethernet::ethtool(interface)?);
    let is_in_database = kind == InterfaceKind::OvsBridge
        || profile
            .controller
            .as_ref()
            .is_some_and(|controller| controller.kind == InterfaceKind::OvsBridge);
    if let Some(values) = interface.ovs_db.as_ref().filter(|_| is_in_database) {
        sections.extend(ovs::database(values));
    }
    if kind == InterfaceKind::Ipsec {
        sections.extend(ipsec::sections(interface)?);
    }
    if let Some(address) = &interface.pci_address
        && interface.identifier == Identifier::PciAddress
    {
        let mut section = KeyfileSection::new("match");
        section.set("path", format!("pci-{address}"));
        sections.push(section);
    }
    Ok(Keyfile { id, sections })
}

fn connection(profile: &ConnectionProfile, id: &str) -> Result<KeyfileSection, Unrenderable> {
    let interface = &profile.interface;
    let kind = interface.kind;
    let mut section = KeyfileSection::new("connection");
    section.set("autoconnect", interface.state == InterfaceState::Up);
    section.set(
        "autoconnect-slaves",
        if kind.is_controller() { 1 } else { -1 },
    );
    section.set("id", id);
    section.set("uuid", stable_uuid(interface));
    section.set("type", connection_type(interface));
    // A VPN has no device of its own.
    if interface.identifier == Identifier::Name && kind != InterfaceKind::Ipsec {
        section.set("interface-name", &interface.name);
    }
    // An HSR interface names its ports, not the reverse.
    if let Some(controller) = &profile.controller
        && controller.kind != InterfaceKind::Hsr
    {
        section.set("master", &controller.name);
        section.set("slave-type", port_type(controller.kind));
    }
    section.set_some(
        "lldp",
        interface.lldp.as_ref().map(|lldp| u8::from(lldp.enabled.0)),
    );
    let flags = interface
        .mptcp
        .as_ref()
        .and_then(|mptcp| mptcp.address_flags.as_ref());
    if let Some(flags) = flags {
        let refused = || refused("address-flags", MPTCP_FLAGS, flags).below("mptcp");
        let bits = written(MPTCP_FLAGS, flags).ok_or_else(refused)?;
        let bits = bits.parse::<u32>().ok();
        if bits.is_some_and(|bits| bits & MPTCP_EXCLUSIVE == MPTCP_EXCLUSIVE) {
            let reason = "address-flags has both signal and fullmesh: leave one of them out";
            return Err(Unrenderable::member("address-flags", reason).below("mptcp"));
        }
        section.set(
            "mptcp-flags",
            bits.map_or(MPTCP_DISABLED, |bits| bits | MPTCP_ALWAYS),
        );
    }
    Ok(section)
}

fn connection_type(interface: &Interface) -> &'static str {
    match interface.kind {
        InterfaceKind::Ethernet if interface.veth.is_none() => "802-3-ethernet",
        InterfaceKind::Ethernet | InterfaceKind::VethPeer => "veth",
        InterfaceKind::Ipsec => "vpn",
        InterfaceKind::LinuxBridge => "bridge",
        InterfaceKind::MacVlan | InterfaceKind::MacVtap => "macvlan",
        kind => kind.word(),
    }
}

/// The type of a port's controller. Between a bridge of Open vSwitch and an interface is the profile of a port.
fn port_type(controller: InterfaceKind) -> &'static str {
    match controller {
        InterfaceKind::LinuxBridge => "bridge",
        InterfaceKind::OvsBridge => "ovs-port",
        kind => kind.word(),
    }
}

fn wired(interface: &Interface) -> KeyfileSection {
    let mut section = KeyfileSection::new("ethernet");
    // A bond in this mode has the address of its active port.
    let follows_port = link::is_mac_of_port(interface);
    if let Some(mac) = interface.mac_address.as_ref().filter(|_| !follows_port) {
        let key = match interface.identifier {
            Identifier::MacAddress => "mac-address",
            Identifier::Name | Identifier::PciAddress => "cloned-mac-address",
        };
        section.set(key, mac.to_ascii_uppercase());
    }
    section.set_some("mtu", interface.mtu.map(|mtu| mtu.0));
    section.set_some(
        "accept-all-mac-addresses",
        interface
            .accept_all_mac_addresses
            .map(|flag| u8::from(flag.0)),
    );
    let ethernet = interface.ethernet.as_ref();
    if let Some((ethernet, negotiated)) =
        ethernet.and_then(|ethernet| Some((ethernet, ethernet.auto_negotiation?.0)))
    {
        section.set("auto-negotiate", negotiated);
        if !negotiated {
            section.set_some("speed", ethernet.speed.map(|speed| speed.0));
            let duplex = ethernet.duplex.map(|duplex| match duplex {
                Duplex::Full => "full",
                Duplex::Half => "half",
            });
            section.set_some("duplex", duplex);
        }
    }
    section
}
