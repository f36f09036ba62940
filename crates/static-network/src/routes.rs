//! Routes and routing rules, which keyfiles hold with an interface.
//!
//! Source: nmstate, rust/src/lib/{route,route_rule}.rs, nm/route_rule.rs and nm/nm_dbus/gen_conf/{route,route_rule}.rs.

use std::fmt::Write as _;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::profile::{LOOPBACK, Profiles, RouteLine};
use crate::scalar::Integer;
use crate::state::{Family, Interface, InterfaceKind, RouteRule, RouteState, StaticRoute};
use crate::unrenderable::Unrenderable;

const MAIN_TABLE: u32 = 254;
const DEFAULT_METRIC: i64 = -1;
/// The kernel's own metric of IPv6 routes; that of IPv4 is 0.
const IPV6_METRIC: i64 = 1024;
/// Priority of the first rule that names none.
const RULE_PRIORITY: i64 = 30000;

/// Gives each route to its next hop's interface; those that drop packets have none, and belong to the loopback interface.
///
/// Errors: no such interface, or none of that family.
pub(crate) fn attach_routes(
    profiles: &mut Profiles,
    routes: Vec<StaticRoute>,
) -> Result<(), Unrenderable> {
    for (index, route) in routes.into_iter().enumerate() {
        if route.state.is_none() {
            let attached = attach_route(profiles, route);
            attached.map_err(|error| error.below_item("config", index).below("routes"))?;
        }
    }
    Ok(())
}

fn attach_route(profiles: &mut Profiles, mut route: StaticRoute) -> Result<(), Unrenderable> {
    let destination = route.destination.clone().unwrap_or_default();
    let at = |reason: &str| Unrenderable::from(format!("the route to {destination:?} {reason}"));
    let network = network(&destination).ok_or_else(|| at("has no valid destination"))?;
    let name = match (route.next_hop_interface.clone(), route.route_type) {
        (Some(name), None) => name,
        (None, None) => return Err(at("needs a next-hop-interface")),
        (name, Some(kind)) => {
            let has_next_hop = name.is_some_and(|name| name != LOOPBACK);
            if has_next_hop || route.next_hop_address.is_some() {
                let reason = format!("is of type {}, which has no next hop", kind.word());
                return Err(at(&reason));
            }
            profiles.loopback()?;
            LOOPBACK.to_owned()
        }
    };
    if let Some(vrf) = &route.vrf_name {
        let table = vrf_table(profiles, vrf);
        let table = table.ok_or_else(|| at(&format!("names {vrf}, which is no VRF that is up")))?;
        if route.table_id.is_some_and(|own| own.0 != table) {
            return Err(at(&format!("has another table-id than {vrf}, {table}")));
        }
        route.table_id = Some(Integer(table));
    }
    let family = Family::of(network.addr());
    for address in [route.next_hop_address, route.source].into_iter().flatten() {
        if Family::of(address) != family {
            return Err(at("mixes IPv4 and IPv6"));
        }
    }
    if family == Family::V6 && route.weight.is_some() {
        return Err(at("has a weight, which IPv6 routes cannot have"));
    }
    let Some(profile) = profiles.get_mut(&name) else {
        return Err(at(&format!("leaves by {name}, which is not in interfaces")));
    };
    if !profile.is_enabled(family) {
        return Err(at(&format!(
            "leaves by {name}, which has that family disabled"
        )));
    }
    let line = line(&route, network).ok_or_else(|| at("has a metric out of range"))?;
    let attached = &mut profile.attached(family).routes;
    if !attached
        .iter()
        .any(|other| (&other.line, &other.options) == (&line.line, &line.options))
    {
        attached.push(line);
        attached.sort_by(|left, right| left.key.cmp(&right.key));
    }
    Ok(())
}

/// The table of a VRF.
fn vrf_table(profiles: &Profiles, name: &str) -> Option<u32> {
    let is_up = |interface: &&Interface| {
        use crate::state::InterfaceState;
        interface.kind == InterfaceKind::Vrf && interface.state == InterfaceState::Up
    };
    let vrf = profiles.get(name).map(|profile| &profile.interface);
    let table = vrf.filter(is_up)?.vrf.as_ref()?.get("route-table-id")?;
    crate::scalar::integer(table).and_then(|table| u32::try_from(table).ok())
}

/// A network with its host bits cleared; an address alone is one host.
fn network(text: &str) -> Option<IpNet> {
    let network: Option<IpNet> = text.parse().ok();
    let host = || text.parse::<IpAddr>().ok().map(IpNet::from);
    Some(network.or_else(host)?.trunc())
}

fn line(route: &StaticRoute, network: IpNet) -> Option<RouteLine> {
    let default_metric = if network.addr().is_ipv6() {
        IPV6_METRIC
    } else {
        0
    };
    let metric = match route.metric {
        None | Some(Integer(DEFAULT_METRIC)) => default_metric,
        Some(Integer(metric)) => metric,
    };
    let metric = u32::try_from(metric).ok()?;
    let via = route
        .next_hop_address
        .filter(|address| !address.is_unspecified());
    let via = via.map(|address| address.to_string()).unwrap_or_default();
    let table = match route.table_id {
        None | Some(Integer(0)) => MAIN_TABLE,
        Some(Integer(table)) => table,
    };
    let mut options = format!("table={table}");
    let mut option = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = write!(options, ",{name}={value}");
        }
    };
    let number = |value: Option<Integer<u32>>| value.map(|value| value.0.to_string());
    option("weight", route.weight.map(|weight| weight.0.to_string()));
    option("type", route.route_type.map(|kind| kind.word().to_owned()));
    option("cwnd", number(route.cwnd));
    option("lock-cwnd", route.cwnd.map(|_| true.to_string()));
    option("src", route.source.map(|address| address.to_string()));
    option("initcwnd", number(route.initcwnd));
    option("initrwnd", number(route.initrwnd));
    option("mtu", number(route.mtu));
    option("lock-mtu", route.lock_mtu.map(|flag| flag.0.to_string()));
    option("quickack", route.quickack.map(|flag| flag.0.to_string()));
    option("advmss", number(route.advmss));
    Some(RouteLine {
        line: format!("{network},{via},{metric}"),
        options,
        table,
        key: (network.to_string(), via, table),
    })
}

/// Gives each rule to an interface, the loopback one where no other has its family; all of them apply to the whole host.
///
/// Errors: a rule without a family, or no interface of the name that it has.
pub(crate) fn attach_rules(
    profiles: &mut Profiles,
    rules: Vec<RouteRule>,
) -> Result<(), Unrenderable> {
    let rules: Vec<(usize, RouteRule)> = rules
        .into_iter()
        .enumerate()
        .filter(|(_, rule)| rule.state != Some(RouteState::Absent))
        .collect();
    let named = rules.iter().filter_map(|(_, rule)| rule.priority);
    let highest = named.map(|priority| priority.0).max().unwrap_or_default();
    let mut next = highest.max(RULE_PRIORITY - 1);
    for (index, rule) in rules {
        let priority = match rule.priority {
            Some(Integer(priority)) if priority >= 0 => priority,
            _ => {
                next += 1;
                next
            }
        };
        let at = |reason: &str| {
            let reason = format!("the route rule of priority {priority} {reason}");
            Unrenderable::from(reason)
                .below_item("config", index)
                .below("route-rules")
        };
        let (family, text) = rule_line(&rule, priority).map_err(at)?;
        let profile = match rule_interface(profiles, &rule, family) {
            Some(name) => profiles.get_mut(&name),
            None => Some(profiles.loopback()?),
        };
        let Some(profile) = profile else {
            return Err(at("names an interface in iif that is not in interfaces"));
        };
        let attached = &mut profile.attached(family).rules;
        attached.push((priority, text));
        attached.sort();
    }
    Ok(())
}

fn rule_interface(profiles: &Profiles, rule: &RouteRule, family: Family) -> Option<String> {
    if let Some(name) = &rule.iif {
        return Some(name.clone());
    }
    let table = table_of(rule);
    let has_route = profiles.first(|profile| {
        let attached = match family {
            Family::V4 => &profile.v4,
            Family::V6 => &profile.v6,
        };
        attached.routes.iter().any(|route| route.table == table)
    });
    has_route
        .or_else(|| {
            profiles.first(|profile| {
                let of_v4 = profile
                    .interface
                    .ipv4
                    .as_ref()
                    .and_then(|ip| ip.auto_route_table_id);
                let of_v6 = profile
                    .interface
                    .ipv6
                    .as_ref()
                    .and_then(|ip| ip.auto_route_table_id);
                let automatic = match family {
                    Family::V4 => of_v4,
                    Family::V6 => of_v6,
                };
                automatic.is_some_and(|automatic| automatic.0 == table)
            })
        })
        .or_else(|| profiles.first(|profile| profile.is_enabled(family)))
}

fn table_of(rule: &RouteRule) -> u32 {
    match rule.route_table {
        None | Some(Integer(0)) => MAIN_TABLE,
        Some(Integer(table)) => table,
    }
}

fn rule_line(rule: &RouteRule, priority: i64) -> Result<(Family, String), &'static str> {
    let side = |text: Option<&str>| match text.filter(|text| !text.is_empty()) {
        None => Ok(None),
        Some(text) => network(text).map(Some).ok_or("names no valid network"),
    };
    let (from, to) = (side(rule.ip_from.as_deref())?, side(rule.ip_to.as_deref())?);
    let named = [from, to].into_iter().flatten();
    let families: Vec<Family> = named
        .map(|network| Family::of(network.addr()))
        .chain(rule.family)
        .collect();
    let Some(&family) = families.first() else {
        return Err("needs ip-from, ip-to or family");
    };
    if families.iter().any(|other| *other != family) {
        return Err("mixes IPv4 and IPv6");
    }
    let mut text = format!("priority {priority}");
    if let Some(to) = to {
        let _ = write!(text, " to {to}");
    }
    match (from, to, family) {
        (Some(from), ..) => {
            let _ = write!(text, " from {from}");
        }
        (None, None, Family::V4) => text.push_str(" from 0.0.0.0/0"),
        (None, None, Family::V6) => text.push_str(" from ::/0"),
        (None, Some(_), _) => {}
    }
    if let Some(name) = &rule.iif {
        let _ = write!(text, " iif {name}");
    }
    if let Some(length) = rule.suppress_prefix_length {
        let _ = write!(text, " suppress_prefixlength {}", length.0);
    }
    if let Some(action) = rule.action {
        let _ = write!(text, " type {}", action.word());
    }
    let _ = write!(text, " table {}", table_of(rule));
    match (rule.fwmark, rule.fwmask) {
        (Some(mark), Some(mask)) => {
            let _ = write!(text, " fwmark {}/{}", mark.0, mask.0);
        }
        (Some(mark), None) => {
            let _ = write!(text, " fwmark {}", mark.0);
        }
        (None, Some(_)) => return Err("has a fwmask without a fwmark"),
        (None, None) => {}
    }
    Ok((family, text))
}
