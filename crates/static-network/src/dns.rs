//! Name servers, which keyfiles hold with an interface. Source: nmstate, rust/src/lib/nm/dns.rs.

use std::net::IpAddr;

use crate::profile::{ConnectionProfile, Profiles, Servers};
use crate::state::{Family, Resolver};

/// Priority of the servers of the first one's family; those of the other family follow.
const PRIORITY: i32 = 40;

/// Gives the servers of each family to an interface.
///
/// Errors: a server that is no address, or no interface of its family.
pub(crate) fn attach(profiles: &mut Profiles, resolver: Resolver) -> Result<(), String> {
    let Resolver {
        server,
        search,
        options,
    } = resolver;
    if server.is_empty() {
        return attach_search(profiles, search, options);
    }
    let mut parsed = Vec::new();
    for text in &server {
        let (address, zone) = match text.split_once('%') {
            Some((address, zone)) => (address, Some(zone)),
            None => (text.as_str(), None),
        };
        let address: IpAddr = address
            .parse()
            .map_err(|_| format!("the name server {text:?} is no address"))?;
        parsed.push((address, zone));
    }
    let families: Vec<Family> = parsed
        .iter()
        .map(|(address, _)| Family::of(*address))
        .collect();
    let changes = families.windows(2).filter(|two| two[0] != two[1]).count();
    if changes > 1 {
        return Err("name servers of one family are between those of the other".to_owned());
    }
    let Some(&first) = families.first() else {
        return Ok(());
    };
    for family in [Family::V4, Family::V6] {
        let mut of_family = parsed
            .iter()
            .filter(|(address, _)| Family::of(*address) == family);
        let addresses: Vec<String> = of_family
            .clone()
            .map(|(address, _)| address.to_string())
            .collect();
        if addresses.is_empty() {
            continue;
        }
        let zone = of_family.find_map(|(_, zone)| *zone);
        let name = zone
            .map(str::to_owned)
            .or_else(|| interface(profiles, family));
        let Some(profile) = name
            .and_then(|name| profiles.get_mut(&name))
            .filter(|profile| profile.is_enabled(family))
        else {
            let list = addresses.join(", ");
            return Err(format!(
                "the name servers {list} need an interface with addresses of their family"
            ));
        };
        let (search, options) = if family == first {
            (search.clone(), options.clone())
        } else {
            (Vec::new(), Vec::new())
        };
        profile.attached(family).servers = Some(Servers {
            addresses,
            search,
            options,
            priority: if family == first {
                PRIORITY
            } else {
                PRIORITY + 10
            },
        });
    }
    Ok(())
}

/// The interface with static addresses or servers of its own, else any with addresses.
fn interface(profiles: &Profiles, family: Family) -> Option<String> {
    let keeps_own = |profile: &ConnectionProfile| {
        let ipv4 = profile.interface.ipv4.as_ref().and_then(|ip| ip.auto_dns);
        let ipv6 = profile.interface.ipv6.as_ref().and_then(|ip| ip.auto_dns);
        let automatic = match family {
            Family::V4 => ipv4,
            Family::V6 => ipv6,
        };
        profile.is_automatic(family) && automatic.is_some_and(|flag| !flag.0)
    };
    profiles
        .first(|profile| profile.is_static(family) || keeps_own(profile))
        .or_else(|| {
            profiles.first(|profile| profile.is_static(family) || profile.is_automatic(family))
        })
}

fn attach_search(
    profiles: &mut Profiles,
    search: Vec<String>,
    options: Vec<String>,
) -> Result<(), String> {
    if search.is_empty() && options.is_empty() {
        return Ok(());
    }
    let is_automatic = |profile: &ConnectionProfile, family| profile.is_automatic(family);
    let has_addresses = |profile: &ConnectionProfile, family| {
        profile.is_static(family) || profile.is_automatic(family)
    };
    let of = |is: &dyn Fn(&ConnectionProfile, Family) -> bool| {
        let name = profiles.first(|profile| is(profile, Family::V6) || is(profile, Family::V4))?;
        let profile = profiles.get(&name)?;
        let family = if is(profile, Family::V6) {
            Family::V6
        } else {
            Family::V4
        };
        Some((name, family))
    };
    let Some((name, family)) = of(&is_automatic).or_else(|| of(&has_addresses)) else {
        return Err("search domains and options need an interface with addresses".to_owned());
    };
    if let Some(profile) = profiles.get_mut(&name) {
        profile.attached(family).servers = Some(Servers {
            addresses: Vec::new(),
            search,
            options,
            priority: PRIORITY,
        });
    }
    Ok(())
}
