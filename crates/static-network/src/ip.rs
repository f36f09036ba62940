//! The sections of addresses. Source: nmstate, rust/src/lib/nm/settings/ip.rs and ip.rs (`sanitize`).

use std::net::IpAddr;

use crate::keyfile::KeyfileSection;
use crate::profile::{Attached, ConnectionProfile};
use crate::scalar::{Flag, Integer};
use crate::state::{AddressGeneration, Family, InterfaceKind, StaticAddress, WaitIp};
use crate::unrenderable::Unrenderable;

/// NetworkManager's largest timeout: it never gives an interface up. Units: seconds.
const FOREVER: i32 = i32::MAX;
/// Least MTU of IPv6. Units: bytes.
const IPV6_MTU: u32 = 1280;

/// The members of automatic addresses that both families have.
struct Automatic<'a> {
    dns: Option<Flag>,
    gateway: Option<Flag>,
    routes: Option<Flag>,
    table: Option<Integer<u32>>,
    metric: Option<Integer<u32>>,
    send_hostname: Option<Flag>,
    hostname: Option<&'a str>,
}

impl Automatic<'_> {
    /// `hostname_key` is the key of the custom host name.
    fn set(&self, section: &mut KeyfileSection, hostname_key: &str) {
        let ignored = |flag: Option<Flag>| !flag.is_none_or(|flag| flag.0);
        section.set("ignore-auto-dns", ignored(self.dns));
        section.set("never-default", ignored(self.gateway));
        section.set("ignore-auto-routes", ignored(self.routes));
        section.set_some("route-table", self.table.map(|table| table.0));
        section.set_some("route-metric", self.metric.map(|metric| metric.0));
        let sends = self.send_hostname.is_none_or(|flag| flag.0);
        section.set("dhcp-send-hostname", sends);
        let hostname = self.hostname.filter(|name| sends && !name.is_empty());
        section.set_some(hostname_key, hostname);
    }
}

/// The sections of addresses; none of a port without them.
pub(crate) fn sections(profile: &ConnectionProfile) -> Result<Vec<KeyfileSection>, Unrenderable> {
    let controller = profile.controller.as_ref().map(|it| it.kind);
    if controller == Some(InterfaceKind::Hsr) {
        // Its ports are no ports of NetworkManager, and would get addresses.
        let mut ipv6 = disabled(profile, Family::V6);
        ipv6.set("addr-gen-mode", 0);
        return Ok(vec![disabled(profile, Family::V4), ipv6]);
    }
    // The device of a bridge of Open vSwitch is an interface of its own.
    if profile.interface.kind == InterfaceKind::OvsBridge {
        return Ok(vec![
            disabled(profile, Family::V4),
            disabled(profile, Family::V6),
        ]);
    }
    if !profile.has_addresses() {
        return Ok(Vec::new());
    }
    let ipv4 = v4(profile).map_err(|reason| Unrenderable::member("ipv4", reason))?;
    let ipv6 = v6(profile).map_err(|reason| Unrenderable::member("ipv6", reason))?;
    Ok(vec![ipv4, ipv6])
}

/// The section of a family that the interface does not name.
fn disabled(profile: &ConnectionProfile, family: Family) -> KeyfileSection {
    let mut section = KeyfileSection::new(match family {
        Family::V4 => "ipv4",
        Family::V6 => "ipv6",
    });
    section.set("dhcp-timeout", FOREVER);
    section.set("method", "disabled");
    section.set_some("may-fail", may_fail(profile, family));
    section
}

/// Whether the connection is up without this family; none if the configuration does not wait for one.
fn may_fail(profile: &ConnectionProfile, family: Family) -> Option<bool> {
    let awaited = match profile.interface.wait_ip? {
        WaitIp::Any => return Some(true),
        WaitIp::Both => return Some(false),
        WaitIp::Ipv4 => Family::V4,
        WaitIp::Ipv6 => Family::V6,
    };
    Some(awaited != family)
}

/// The section `ipv4`.
fn v4(profile: &ConnectionProfile) -> Result<KeyfileSection, String> {
    let mut section = KeyfileSection::new("ipv4");
    section.set("dhcp-timeout", FOREVER);
    let Some(ip) = &profile.interface.ipv4 else {
        return Ok(disabled(profile, Family::V4));
    };
    let enabled = ip.enabled.0;
    let automatic = profile.is_automatic(Family::V4);
    let addresses = addresses(&ip.address, Family::V4)?;
    let method = if automatic {
        "auto"
    } else if enabled && !(addresses.is_empty() && profile.v4.routes.is_empty()) {
        "manual"
    } else {
        "disabled"
    };
    section.set("method", method);
    if enabled {
        set_addresses(&mut section, &addresses);
        let metric = ip.prefix_route_metric.map(|metric| metric.0);
        section.set_some("route-metric", metric);
    }
    if let Some(forwarding) = ip.forwarding
        && (enabled || !forwarding.0)
    {
        section.set("forwarding", u8::from(forwarding.0));
    }
    if automatic {
        let client = match ip.dhcp_client_id.as_deref() {
            None | Some("ll") => "mac",
            Some("iaid+duid") => "duid",
            Some(other) => other,
        };
        section.set("dhcp-client-id", client);
        let hostname = ip.dhcp_custom_hostname.as_deref();
        let is_full = hostname.is_some_and(|name| name.contains('.'));
        let part = Automatic {
            dns: ip.auto_dns,
            gateway: ip.auto_gateway,
            routes: ip.auto_routes,
            table: ip.auto_route_table_id,
            metric: ip.auto_route_metric,
            send_hostname: ip.dhcp_send_hostname,
            hostname,
        };
        part.set(
            &mut section,
            if is_full {
                "dhcp-fqdn"
            } else {
                "dhcp-hostname"
            },
        );
    }
    attach(&mut section, &profile.v4);
    section.set_some("may-fail", may_fail(profile, Family::V4));
    Ok(section)
}

/// The section `ipv6`.
fn v6(profile: &ConnectionProfile) -> Result<KeyfileSection, String> {
    let mut section = KeyfileSection::new("ipv6");
    section.set("dhcp-timeout", FOREVER);
    let Some(ip) = &profile.interface.ipv6 else {
        return Ok(disabled(profile, Family::V6));
    };
    let enabled = ip.enabled.0;
    let automatic = profile.is_automatic(Family::V6);
    let addresses = addresses(&ip.address, Family::V6)?;
    let method = match (enabled, ip.dhcp.0, ip.autoconf.0) {
        (false, ..) => "disabled",
        (true, true, true) => "auto",
        (true, true, false) => "dhcp",
        (true, false, true) => {
            return Err("ipv6 has autoconf without dhcp, which keyfiles cannot express".to_owned());
        }
        (true, false, false) if addresses.is_empty() && profile.v6.routes.is_empty() => {
            "link-local"
        }
        (true, false, false) => "manual",
    };
    section.set("method", method);
    let generation = match ip.addr_gen_mode {
        Some(AddressGeneration::StablePrivacy) => 1,
        Some(AddressGeneration::Eui64) | None => 0,
    };
    section.set("addr-gen-mode", generation);
    if enabled {
        if profile.interface.mtu.is_some_and(|mtu| mtu.0 < IPV6_MTU) {
            return Err(format!("with ipv6 the mtu is at least {IPV6_MTU}"));
        }
        set_addresses(&mut section, &addresses);
    }
    if automatic {
        section.set("ra-timeout", FOREVER);
        section.set("dhcp-duid", ip.dhcp_duid.as_deref().unwrap_or("ll"));
        section.set("dhcp-iaid", "mac");
        let token = ip.token.as_deref();
        section.set_some("token", token.filter(|token| !matches!(*token, "" | "::")));
        let part = Automatic {
            dns: ip.auto_dns,
            gateway: ip.auto_gateway,
            routes: ip.auto_routes,
            table: ip.auto_route_table_id,
            metric: ip.auto_route_metric,
            send_hostname: ip.dhcp_send_hostname,
            hostname: ip.dhcp_custom_hostname.as_deref(),
        };
        part.set(&mut section, "dhcp-hostname");
    }
    attach(&mut section, &profile.v6);
    section.set_some("may-fail", may_fail(profile, Family::V6));
    Ok(section)
}

/// Addresses with prefixes. Link-local ones of IPv6 exist without a configuration, and leased ones come from a server:
/// nmstate drops both.
fn addresses(list: &[StaticAddress], family: Family) -> Result<Vec<String>, String> {
    let longest = match family {
        Family::V4 => 32,
        Family::V6 => 128,
    };
    let mut texts = Vec::new();
    for StaticAddress {
        ip,
        prefix_length,
        valid_life_time,
        ..
    } in list
    {
        if Family::of(*ip) != family {
            return Err(format!("{ip} is an address of the other family"));
        }
        if prefix_length.0 > longest {
            return Err(format!(
                "the prefix length {} of {ip} is above {longest}",
                prefix_length.0
            ));
        }
        let is_link_local = matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
        let is_leased = valid_life_time.as_ref().is_some_and(|it| it != "forever");
        if !is_link_local && !is_leased {
            texts.push(format!("{ip}/{}", prefix_length.0));
        }
    }
    Ok(texts)
}

fn set_addresses(section: &mut KeyfileSection, addresses: &[String]) {
    for (index, address) in addresses.iter().enumerate() {
        section.set(format!("address{index}"), address);
    }
}

fn attach(section: &mut KeyfileSection, attached: &Attached) {
    for (index, route) in attached.routes.iter().enumerate() {
        section.set(format!("route{index}"), &route.line);
        section.set(format!("route{index}_options"), &route.options);
    }
    for (index, (_, rule)) in attached.rules.iter().enumerate() {
        section.set(format!("routing-rule{index}"), rule);
    }
    if let Some(servers) = &attached.servers {
        section.set_list("dns", &servers.addresses);
        section.set_list("dns-search", &servers.search);
        section.set_list("dns-options", &servers.options);
        section.set("dns-priority", servers.priority);
    }
}
