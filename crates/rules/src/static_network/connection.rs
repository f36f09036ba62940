//! The keyfile of one interface. Source: nmstate, rust/src/lib/nm/settings/ and nm/nm_dbus/gen_conf/.

use sha1::{Digest as _, Sha1};
use uuid::{Builder, Uuid};

use super::keyfile::{Keyfile, KeyfileSection};
use super::profile::{ConnectionProfile, Profiles};
use super::state::{Duplex, Identifier, Interface, InterfaceKind, InterfaceState};
use super::{ip, link};

/// Renders the profile.
///
/// Errors: the part that cannot be rendered.
pub(super) fn keyfile(profile: &ConnectionProfile, profiles: &Profiles) -> Result<Keyfile, String> {
    let interface = &profile.interface;
    let id = interface.profile_name.clone();
    let id = id.unwrap_or_else(|| interface.name.clone());
    let mut sections = vec![connection(profile, profiles, &id)];
    let at = |reason: String| format!("interface {}: {reason}", interface.name);
    match interface.kind {
        InterfaceKind::Bond => sections.push(link::bond(interface).map_err(at)?),
        InterfaceKind::LinuxBridge => sections.push(link::bridge(interface).map_err(at)?),
        _ => {}
    }
    sections.extend(link::port(profile, profiles).map_err(at)?);
    if profile.controller.is_none() {
        sections.push(ip::v4(profile).map_err(at)?);
        sections.push(ip::v6(profile).map_err(at)?);
    }
    let wired = wired(interface);
    if !wired.is_empty() {
        sections.push(wired);
    }
    if let Some(vlan) = &interface.vlan {
        let parent = profiles
            .get(&vlan.base_iface)
            .map(|parent| &parent.interface);
        sections.push(link::vlan(vlan, parent).map_err(at)?);
    }
    if let Some(text) = interface.description.as_ref() {
        let mut user = KeyfileSection::new("user");
        if !text.is_empty() {
            user.set("nmstate.interface.description", text);
        }
        sections.push(user);
    }
    Ok(Keyfile { id, sections })
}

fn connection(profile: &ConnectionProfile, profiles: &Profiles, id: &str) -> KeyfileSection {
    let interface = &profile.interface;
    let mut section = KeyfileSection::new("connection");
    let is_controller = matches!(
        interface.kind,
        InterfaceKind::Bond | InterfaceKind::LinuxBridge
    );
    section.set("autoconnect", interface.state == InterfaceState::Up);
    section.set("autoconnect-slaves", if is_controller { 1 } else { -1 });
    section.set("id", id);
    section.set("uuid", stable_uuid(interface));
    section.set("type", kind_name(interface.kind));
    if interface.identifier == Identifier::Name {
        section.set("interface-name", &interface.name);
    }
    if let Some(controller) = profile.controller.as_deref() {
        section.set("master", controller);
        let kind = profiles.get(controller);
        section.set_some(
            "slave-type",
            kind.map(|controller| kind_name(controller.interface.kind)),
        );
    }
    section.set_some(
        "lldp",
        interface.lldp.as_ref().map(|lldp| u8::from(lldp.enabled.0)),
    );
    section
}

/// The id that nmstate gives a connection, which is the same on each host and at each boot.
pub(super) fn stable_uuid(interface: &Interface) -> Uuid {
    let kind = match interface.kind {
        InterfaceKind::Ethernet => "ethernet",
        InterfaceKind::Bond => "bond",
        InterfaceKind::Dummy => "dummy",
        InterfaceKind::LinuxBridge => "linux-bridge",
        InterfaceKind::Vlan => "vlan",
    };
    // Version 5 by RFC 9562: the feature of the crate would bring a second SHA-1.
    let hash = Sha1::new_with_prefix(Uuid::NAMESPACE_URL.as_bytes())
        .chain_update(format!("{kind}://{}", interface.name))
        .finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    Builder::from_sha1_bytes(bytes).into_uuid()
}

fn kind_name(kind: InterfaceKind) -> &'static str {
    match kind {
        InterfaceKind::Ethernet => "802-3-ethernet",
        InterfaceKind::Bond => "bond",
        InterfaceKind::Dummy => "dummy",
        InterfaceKind::LinuxBridge => "bridge",
        InterfaceKind::Vlan => "vlan",
    }
}

fn wired(interface: &Interface) -> KeyfileSection {
    let mut section = KeyfileSection::new("ethernet");
    // A bond in this mode has the address of its active port.
    let follows_port = link::is_mac_of_port(interface);
    if let Some(mac) = interface.mac_address.as_ref().filter(|_| !follows_port) {
        let key = match interface.identifier {
            Identifier::MacAddress => "mac-address",
            Identifier::Name => "cloned-mac-address",
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
