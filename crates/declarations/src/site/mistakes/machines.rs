//! Mistakes about machines: identities, NICs, disks, roles.

use std::collections::BTreeMap;

use located_yaml::v1_2::from_yaml;
use model::host::HostRole;
use model::versions::CpuArchitecture;
use rules::host::expected_hosts::hints_text;

use super::Place;
use crate::site::{Site, SiteHost};

pub(super) fn unknown_records(site: &Site) -> Vec<Place> {
    let names = site.strangers.iter();
    let place = |name: &String| Place::cluster(format!("a record of {name}"));
    names.map(place).collect()
}

pub(super) fn duplicate_macs(site: &Site) -> Vec<Place> {
    let macs = |host: &SiteHost| {
        let macs = host.interfaces.iter().map(|one| one.mac_address.clone());
        macs.collect::<Vec<_>>()
    };
    duplicates(site, macs)
}

pub(super) fn duplicate_boards(site: &Site) -> Vec<Place> {
    duplicates(site, |host| {
        host.record.bmc_address.iter().cloned().collect()
    })
}

/// Places of values that more than one host has; also twice at one host.
fn duplicates(site: &Site, values: impl Fn(&SiteHost) -> Vec<String>) -> Vec<Place> {
    let mut owners: BTreeMap<String, &str> = BTreeMap::new();
    let mut found = Vec::new();
    for host in &site.hosts {
        for value in values(host) {
            let observed = owners
                .get(&value)
                .map(|other| format!("{value} belongs to {other}, too"));
            found.extend(observed.map(|observed| Place::at(&host.name, observed)));
            owners.entry(value).or_insert(&host.name);
        }
    }
    found
}

pub(super) fn unknown_macs(site: &Site) -> Vec<Place> {
    let mut found = Vec::new();
    for host in &site.hosts {
        let Some(hardware) = &host.record.hardware else {
            continue;
        };
        let known: Vec<&str> = hardware.nics.iter().map(|nic| nic.mac.as_str()).collect();
        if known.is_empty() {
            continue;
        }
        let declared = host.interfaces.iter().map(|one| one.mac_address.as_str());
        for mac in declared.filter(|mac| !known.contains(mac)) {
            let observed = format!("{mac}; the hardware has {}", known.join(", "));
            found.push(Place::at(&host.name, observed));
        }
    }
    found
}

pub(super) fn unknown_boot_macs(site: &Site) -> Vec<Place> {
    let mut found = Vec::new();
    for host in &site.hosts {
        let is_own = |mac: &str| host.interfaces.iter().any(|one| one.mac_address == mac);
        if let Some(mac) = host.record.boot_mac.as_deref().filter(|mac| !is_own(mac)) {
            found.push(Place::at(&host.name, format!("bootMACAddress {mac}")));
        }
    }
    found
}

pub(super) fn unknown_interfaces(site: &Site) -> Vec<Place> {
    let mut found = Vec::new();
    for host in &site.hosts {
        let interfaces = host.network.iter().flat_map(|one| &one.interfaces);
        for nic in interfaces.filter(|one| one.kind == "ethernet") {
            let is_declared = host.interfaces.iter().any(|one| {
                one.name == nic.name || nic.mac_address.as_deref() == Some(&one.mac_address)
            });
            if !is_declared {
                found.push(Place::at(
                    &host.name,
                    format!("{} has no MAC address", nic.name),
                ));
            }
        }
    }
    found
}

pub(super) fn routes_without_interface(site: &Site) -> Vec<Place> {
    let mut found = Vec::new();
    let declared = site.declaration.hosts.iter().flatten();
    for (host, declared) in site.hosts.iter().zip(declared) {
        let Some(network) = &declared.network_config else {
            continue;
        };
        // Its text was read before.
        let text = serde_yaml::to_string(network).unwrap_or_default();
        let Ok(document) = from_yaml(&text) else {
            continue;
        };
        let of_routes = static_network::problems(&document, None)
            .into_iter()
            .filter(|problem| problem.is_disagreement && problem.path.starts_with(".routes"));
        found.extend(of_routes.map(|problem| Place::at(&host.name, problem.reason)));
    }
    found
}

pub(super) fn unknown_ports(site: &Site) -> Vec<Place> {
    let mut found = Vec::new();
    for host in &site.hosts {
        let Some(network) = &host.network else {
            continue;
        };
        // NICs may have an entry with their MAC address alone.
        let is_known = |name: &str| {
            let mut defined = network.interfaces.iter().map(|one| one.name.as_str());
            let mut declared = host.interfaces.iter().map(|one| one.name.as_str());
            defined.any(|one| one == name) || declared.any(|one| one == name)
        };
        for interface in &network.interfaces {
            for port in interface.ports.iter().filter(|port| !is_known(port)) {
                let observed = format!("{} uses {port}", interface.name);
                found.push(Place::at(&host.name, observed));
            }
        }
    }
    found
}

pub(super) fn missing_root_devices(site: &Site) -> Vec<Place> {
    let mut found = Vec::new();
    for host in &site.hosts {
        let (Some(hints), Some(hardware)) = (&host.disk_hints, &host.record.hardware) else {
            continue;
        };
        if host.installation_disk().is_some() {
            continue;
        }
        let names: Vec<&str> = hardware
            .storage
            .iter()
            .map(|disk| disk.name.as_str())
            .collect();
        let observed = format!(
            "hints {}; the hardware has {}",
            hints_text(hints),
            names.join(", ")
        );
        found.push(Place::at(&host.name, observed));
    }
    found
}

pub(super) fn other_architectures(site: &Site) -> Vec<Place> {
    let wanted = site
        .declaration
        .architecture
        .unwrap_or(CpuArchitecture::X86_64);
    let mut found = Vec::new();
    for host in &site.hosts {
        let arch = host
            .record
            .hardware
            .as_ref()
            .map(|one| one.cpu.arch.as_str());
        let Some(arch) = arch.filter(|arch| !arch.is_empty()) else {
            continue;
        };
        // The names of Go and of the kernel.
        let arch = match arch {
            "amd64" => "x86_64",
            "aarch64" => "arm64",
            other => other,
        };
        if arch != wanted.as_str() {
            let observed = format!("{arch}, install-config.yaml has {}", wanted.as_str());
            found.push(Place::at(&host.name, observed));
        }
    }
    found
}

pub(super) fn worker_count(site: &Site) -> Vec<Place> {
    let Some(wanted) = site.declaration.workers else {
        return Vec::new();
    };
    // Hosts without a role may become workers.
    let is_fixed = |host: &SiteHost| host.role.is_some_and(|role| role != HostRole::AutoAssign);
    let is_worker = |host: &&SiteHost| host.role == Some(HostRole::Worker);
    let count = site.hosts.iter().filter(is_worker).count();
    if site.hosts.is_empty()
        || !site.hosts.iter().all(is_fixed)
        || i64::try_from(count) == Ok(wanted)
    {
        return Vec::new();
    }
    let observed = format!("{count} workers in agent-config.yaml, compute[0].replicas is {wanted}");
    vec![Place::cluster(observed)]
}
