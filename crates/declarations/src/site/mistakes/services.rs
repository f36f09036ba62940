//! Mistakes about services that hosts need: name servers, time sources, registries.

use std::collections::BTreeSet;

use rules::input;
use rules::urls::registry_of;

use super::Place;
use crate::site::{HostNetwork, Site};

/// Static networks without a server that could give name servers or time sources.
fn fixed(site: &Site) -> impl Iterator<Item = (&str, &HostNetwork)> {
    let hosts = site.hosts.iter();
    let networks = hosts.filter_map(|host| Some((host.name.as_str(), host.network.as_ref()?)));
    networks.filter(|(_, network)| !network.is_automatic())
}

pub(super) fn missing_dns(site: &Site) -> Vec<Place> {
    let without = fixed(site).filter(|(_, network)| network.dns_servers.is_empty());
    let place = |(host, _): (&str, &HostNetwork)| {
        Place::at(host, "networkConfig has no DNS server".to_owned())
    };
    without.map(place).collect()
}

pub(super) fn unreachable_dns(site: &Site) -> Vec<Place> {
    let mut found = Vec::new();
    for (host, network) in fixed(site) {
        for server in &network.dns_servers {
            let is_lost = match server.parse() {
                Ok(address) => !network.reaches(address),
                Err(_) => true,
            };
            if is_lost {
                let observed = format!("{server}, and no route leads there");
                found.push(Place::at(host, observed));
            }
        }
    }
    found
}

pub(super) fn missing_time_source(site: &Site) -> Vec<Place> {
    let declared = site.declaration.ntp_sources.iter().flatten();
    if declared.count() > 0 || fixed(site).next().is_none() {
        return Vec::new();
    }
    let hosts: Vec<&str> = fixed(site).map(|(host, _)| host).collect();
    let observed = format!("no time source for {}", hosts.join(", "));
    vec![Place::cluster(observed)]
}

pub(super) fn missing_credentials(site: &Site) -> Vec<Place> {
    let Some(secret) = &site.declaration.pull_secret else {
        return Vec::new();
    };
    // A malformed secret is refused with its own reason.
    if input::pull_secret::<&str, &str>(secret, &[], &[]).is_err() {
        return Vec::new();
    }
    let members = ["imageDigestSources", "imageContentSources"];
    let sources = members
        .iter()
        .filter_map(|name| site.declaration.overrides.get(*name)?.as_array())
        .flatten();
    let mirrors = sources
        .filter_map(|source| source["mirrors"].as_array())
        .flatten()
        .filter_map(|mirror| mirror.as_str());
    let lacks = |mirror: &&str| input::pull_secret::<&str, &str>(secret, &[*mirror], &[]).is_err();
    let registries: BTreeSet<&str> = mirrors.filter(lacks).map(registry_of).collect();
    let place = |registry| Place::cluster(format!("pullSecret has no entry for {registry}"));
    registries.into_iter().map(place).collect()
}
