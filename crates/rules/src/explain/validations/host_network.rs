//! Network validations of hosts.
//! Source: assisted-service, internal/host/validator.go, validation_id.go; blocking: conditions in statemachine.go.

use std::net::IpAddr;

use chrono::TimeDelta;
use model::host::MediaStatus;
use model::steps::SourceState;
use model::validations::HostValidationId as Id;

use super::host_reach::{
    api_int_resolved, api_resolved, apps_resolved, belongs_to_majority_group, latency, mtu_valid,
    no_wildcard, packet_loss,
};
use super::subject::{ClusterSubject, HostSubject};
use super::validation::{Category, HostBlock, HostValidation, Unbound};
use super::verdict::Verdict;
use crate::host::heartbeat::{clock_offset_s, is_ahead};
use crate::host::images;
use crate::host::timeout::limit_of;
use crate::snapshot::networks;

/// Validations of the network group.
pub static VALIDATIONS: &[HostValidation] = &[
    row(
        Id::Connected,
        HostBlock::Connection,
        Unbound::Blocks,
        connected,
        "A host without heartbeats receives no steps.",
    )
    .needs(
        "a heartbeat within the allowed time",
        "Check that the host runs and reaches the service.",
    ),
    row(
        Id::MediaConnected,
        HostBlock::Connection,
        Unbound::Blocks,
        media_connected,
        "The live system reads from its medium.",
    )
    .needs(
        "a readable boot medium",
        "Attach the discovery image again and reboot the host.",
    ),
    row(
        Id::MachineCidrDefined,
        HostBlock::Input,
        Unbound::Hidden,
        machine_cidr_defined,
        "Nodes have their addresses in the machine network.",
    )
    .needs(
        "a machine network",
        "Set the API and ingress VIPs, or the machine network itself.",
    ),
    row(
        Id::BelongsToMachineCidr,
        HostBlock::Sufficient,
        Unbound::Hidden,
        belongs_to_machine_cidr,
        "Nodes talk over the machine network.",
    )
    .needs(
        "an address in each machine network",
        "Connect the host to the machine network, or change that network.",
    ),
    row(
        Id::IgnitionDownloadable,
        HostBlock::Sufficient,
        Unbound::Hidden,
        ignition_downloadable,
        "A host that joins gets its configuration from the cluster.",
    )
    .needs(
        "the ignition of the cluster",
        "Check the API address of the cluster and the network between host and cluster.",
    ),
    row(
        Id::BelongsToMajorityGroup,
        HostBlock::Sufficient,
        Unbound::Hidden,
        belongs_to_majority_group,
        "Nodes must all reach each other.",
    )
    .needs(
        "connectivity to the majority of hosts",
        "Check cabling, VLAN and firewall of the host.",
    ),
    row(
        Id::ValidPlatformNetworkSettings,
        HostBlock::Sufficient,
        Unbound::Hidden,
        valid_platform_network_settings,
        "VIPs do not work on this platform.",
    )
    .needs(
        "user-managed networking on this platform",
        "Set user_managed_networking.",
    ),
    row(
        Id::NtpSynced,
        HostBlock::Nothing,
        Unbound::Shown,
        ntp_synced,
        "Certificates need the right time.",
    )
    .needs(
        "a synchronized time source",
        "Set reachable time sources in additional_ntp_source.",
    ),
    row(
        Id::TimeSyncedBetweenHostAndService,
        HostBlock::Sufficient,
        Unbound::Hidden,
        time_synced,
        "Certificates need the right time.",
    )
    .needs(
        "a clock at most 20 minutes behind and 60 minutes ahead of the service's",
        "Set the host's clock, or configure a time source.",
    ),
    row(
        Id::ContainerImagesAvailable,
        HostBlock::Preparing,
        Unbound::Hidden,
        container_images_available,
        "The installation pulls them again.",
    )
    .needs(
        "images that can be pulled",
        "Check the registry, the pull secret and the network of the host.",
    ),
    row(
        Id::SufficientNetworkLatencyRequirementForRole,
        HostBlock::Sufficient,
        Unbound::Hidden,
        latency,
        "etcd suffers from slow networks.",
    )
    .needs(
        "a latency within the limit of the role",
        "Fix the network between the hosts of this role.",
    ),
    row(
        Id::SufficientPacketLossRequirementForRole,
        HostBlock::Sufficient,
        Unbound::Hidden,
        packet_loss,
        "etcd suffers from lossy networks.",
    )
    .needs(
        "a packet loss within the limit of the role",
        "Fix the network between the hosts of this role.",
    ),
    row(
        Id::HasDefaultRoute,
        HostBlock::Sufficient,
        Unbound::Hidden,
        has_default_route,
        "OVN needs a default route.",
    )
    .needs(
        "a default route with gateway and interface",
        "Configure a default route.",
    ),
    row(
        Id::ApiDomainNameResolvedCorrectly,
        HostBlock::Sufficient,
        Unbound::Hidden,
        api_resolved,
        "Nodes find the API by name.",
    )
    .needs(
        "a DNS record that leads to the load balancer",
        "Add or correct the DNS record.",
    ),
    row(
        Id::ApiIntDomainNameResolvedCorrectly,
        HostBlock::Sufficient,
        Unbound::Hidden,
        api_int_resolved,
        "Nodes find the API by name.",
    )
    .needs(
        "a DNS record that leads to the load balancer",
        "Add or correct the DNS record.",
    ),
    row(
        Id::AppsDomainNameResolvedCorrectly,
        HostBlock::Sufficient,
        Unbound::Hidden,
        apps_resolved,
        "The console is found by name.",
    )
    .needs(
        "a DNS record that leads to the load balancer",
        "Add or correct the DNS record.",
    ),
    row(
        Id::DnsWildcardNotConfigured,
        HostBlock::Sufficient,
        Unbound::Hidden,
        no_wildcard,
        "A wildcard makes short names resolve wrongly.",
    )
    .needs(
        "no wildcard record in the cluster's domain",
        "Remove the wildcard record from DNS.",
    ),
    row(
        Id::NonOverlappingSubnets,
        HostBlock::Sufficient,
        Unbound::Hidden,
        non_overlapping_subnets,
        "Replies would leave by the wrong interface.",
    )
    .needs(
        "networks that do not overlap",
        "Give each interface a network of its own.",
    ),
    row(
        Id::NoIpCollisionsInNetwork,
        HostBlock::Sufficient,
        Unbound::Hidden,
        no_ip_collisions,
        "Two machines claim one address.",
    )
    .needs(
        "addresses that one machine has",
        "Give each machine its own address.",
    ),
    row(
        Id::MtuValid,
        HostBlock::Nothing,
        Unbound::Hidden,
        mtu_valid,
        "Large packets get lost.",
    )
    .needs(
        "the same MTU along the way",
        "Set the same MTU on hosts and switches.",
    ),
    row(
        Id::NoIscsiNicBelongsToMachineCidr,
        HostBlock::Sufficient,
        Unbound::Hidden,
        no_iscsi_nic,
        "The cluster network is set up anew on the machine network's interface.",
    )
    .needs(
        "an iSCSI interface outside the machine network",
        "Give storage an interface and a network of its own.",
    ),
];

const fn row(
    id: Id,
    blocks: HostBlock,
    unbound: Unbound,
    check: fn(&HostSubject<'_>) -> Verdict,
    doc: &'static str,
) -> HostValidation {
    HostValidation {
        id,
        category: Category::Network,
        blocks,
        unbound,
        check,
        doc,
        required: "",
        fix: "",
    }
}

/// Additional heartbeat timeout of the bootstrap host, which is busy with its own services.
const BOOTSTRAP_GRACE: TimeDelta = TimeDelta::minutes(2);

/// Source: assisted-service, internal/host/validator.go, isConnected.
fn connected(subject: &HostSubject<'_>) -> Verdict {
    if subject.has_rebooted() {
        return Verdict::Hidden;
    }
    let record = &subject.host.record;
    let called = record
        .checked_in_at
        .0
        .or(record.registered_at.0)
        .or(record.created_at.0);
    let mut limit = limit_of(subject.policy.host_max_disconnection);
    if record.bootstrap && !subject.single_node() {
        limit = limit
            .checked_add(&BOOTSTRAP_GRACE)
            .unwrap_or(TimeDelta::MAX);
    }
    // Silence during an outage of the service does not count, nor does a heartbeat of before the clock was set back.
    let called = called.map(|called| match subject.host.observed.heartbeats_since {
        Some(since) if is_ahead(called, subject.now) => since,
        Some(since) => called.max(since),
        None => called,
    });
    let is_near = called.is_some_and(|called| subject.now.signed_duration_since(called) <= limit);
    Verdict::of(
        is_near,
        "The host sends heartbeats",
        format_args!(
            "The host has sent no heartbeat for more than {} s; check that it runs and reaches the service",
            limit.num_seconds()
        ),
    )
    .observed(called.map_or_else(
        || "no heartbeat".to_owned(),
        |called| format!("last heartbeat at {}", called.format("%FT%TZ")),
    ))
    .required(format_args!(
        "a heartbeat each {} s or more often",
        limit.num_seconds()
    ))
}

/// Source: assisted-service, internal/host/validator.go, isMediaConnected.
fn media_connected(subject: &HostSubject<'_>) -> Verdict {
    if subject.has_rebooted() {
        return Verdict::Hidden;
    }
    Verdict::of(
        subject.host.record.media_status != Some(MediaStatus::Disconnected),
        "The boot medium can be read",
        "The boot medium cannot be read; attach the discovery image again and reboot the host",
    )
    .observed("read errors of the boot medium")
}

/// Source: assisted-service, internal/host/validator.go, isMachineCidrDefined.
fn machine_cidr_defined(subject: &HostSubject<'_>) -> Verdict {
    let cluster = match subject.cluster() {
        Ok(cluster) => cluster,
        Err(verdict) => return verdict,
    };
    if cluster.user_managed || cluster.day2 {
        return Verdict::ok("No machine network is needed");
    }
    let (problem, fix) = if cluster.user_load_balancer {
        (
            "Machine network: it is not defined; set machine_networks: from the VIPs of your own load balancer they do not follow",
            "Set machine_networks to the networks of the hosts and of the load balancer.",
        )
    } else {
        (
            "Machine network: it is not defined; set the API and ingress VIPs, or the machine network itself",
            "",
        )
    };
    Verdict::of(
        !cluster.networks.machine.is_empty(),
        "The machine network is defined",
        problem,
    )
    .observed("no machine network")
    .fix(fix)
}

/// Hosts that need no address in the machine networks.
fn is_free_of_machine_networks(subject: &HostSubject<'_>, cluster: &ClusterSubject<'_>) -> bool {
    cluster.day2 || (cluster.user_managed && !cluster.single_node && !subject.host.record.bootstrap)
}

fn shown(nets: &[ipnet::IpNet]) -> String {
    nets.iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Source: assisted-service, internal/host/validator.go, belongsToMachineCidr.
fn belongs_to_machine_cidr(subject: &HostSubject<'_>) -> Verdict {
    let cluster = match subject.cluster() {
        Ok(cluster) => cluster,
        Err(verdict) => return verdict,
    };
    if is_free_of_machine_networks(subject, cluster) {
        return Verdict::ok("The host need not be in a machine network");
    }
    if let Err(pending) = subject.inventory() {
        return pending;
    }
    let machine = &cluster.networks.machine;
    if machine.is_empty() {
        if cluster.user_managed && !cluster.single_node {
            return Verdict::ok("No machine network is set");
        }
        return Verdict::wait("the machine network");
    }
    let inside = |net: &&ipnet::IpNet| {
        subject
            .texts
            .addresses
            .iter()
            .any(|address| net.contains(&address.net.addr()))
    };
    let missing: Vec<ipnet::IpNet> = machine.iter().filter(|net| !inside(net)).copied().collect();
    let fits = if cluster.user_load_balancer {
        missing.len() < machine.len()
    } else {
        missing.is_empty()
    };
    Verdict::of(
        fits,
        format!("The host has an address in {}", shown(machine)),
        format_args!(
            "The host has no address in machine network {}; connect it to that network",
            shown(&missing)
        ),
    )
    .observed(format_args!("no address in {}", shown(&missing)))
    .required(format_args!("an address in {}", shown(machine)))
}

/// Source: assisted-service, internal/host/validator.go, isIgnitionDownloadable.
fn ignition_downloadable(subject: &HostSubject<'_>) -> Verdict {
    if !subject.day2() {
        return Verdict::Hidden;
    }
    match &subject.texts.api_vip {
        None => Verdict::wait("the host to check the cluster's ignition endpoint"),
        Some(answer) => Verdict::of(
            answer.is_success,
            "The host can download its ignition",
            format_args!(
                "Ignition could not be downloaded from {}: {}; check the API address of the cluster and the network",
                answer.url, answer.download_error
            ),
        )
        .observed(format_args!("{}: {}", answer.url, answer.download_error)),
    }
}

/// Source: assisted-service, internal/host/validator.go, isValidPlatformNetworkSettings.
fn valid_platform_network_settings(subject: &HostSubject<'_>) -> Verdict {
    let cluster = match subject.cluster() {
        Ok(cluster) => cluster,
        Err(verdict) => return verdict,
    };
    let inventory = match subject.inventory() {
        Ok(inventory) => inventory,
        Err(pending) => return pending,
    };
    let product = inventory
        .system_vendor
        .as_ref()
        .map_or("", |vendor| vendor.product_name.as_str());
    Verdict::of(
        product != "OpenStack Compute" || cluster.user_managed,
        "The platform's network takes VIPs",
        format_args!("Product {product} takes no VIPs; set user_managed_networking"),
    )
    .observed(format_args!("product {product}"))
}

/// Source: assisted-service, internal/host/validator.go, isNTPSynced.
fn ntp_synced(subject: &HostSubject<'_>) -> Verdict {
    if subject.has_rebooted() {
        return Verdict::Hidden;
    }
    match &subject.texts.ntp {
        None if subject.cluster.is_none() => Verdict::Hidden,
        None => Verdict::wait("the state of the host's time sources"),
        Some(sources) if sources.is_empty() && subject.cluster.is_none() => Verdict::Hidden,
        Some(sources) => Verdict::of(
            sources
                .iter()
                .any(|source| source.source_state == Some(SourceState::Synced)),
            "The host's clock follows a time source",
            format_args!(
                "The host's clock follows none of its {} time sources; set reachable ones in additional_ntp_source",
                sources.len()
            ),
        )
        .observed(format_args!("none of {} time sources is synchronized", sources.len())),
    }
}

/// Source: assisted-service, internal/host/validator.go, isTimeSyncedBetweenHostAndService.
fn time_synced(subject: &HostSubject<'_>) -> Verdict {
    const BEHIND_S: i64 = 20 * 60;
    const AHEAD_S: i64 = 60 * 60;
    let Some(offset) = clock_offset_s(&subject.host.record) else {
        return Verdict::wait("the host's time");
    };
    Verdict::of(
        (-BEHIND_S..=AHEAD_S).contains(&offset),
        "The host's clock agrees with the service's",
        format_args!(
            "Clock: the host's is {} s {} the service's; set it or configure a time source",
            offset.unsigned_abs(),
            if offset < 0 { "behind" } else { "ahead of" }
        ),
    )
    .observed(format_args!("an offset of {offset} s"))
}

/// Source: assisted-service, internal/host/validator.go, sucessfullOrUnknownContainerImagesAvailability.
fn container_images_available(subject: &HostSubject<'_>) -> Verdict {
    let images = images::image_statuses(&subject.host.record);
    let failed = images::failed_images(&subject.host.record);
    if !failed.is_empty() {
        return Verdict::fail(format!(
            "Images cannot be pulled: {}; check the registry, the pull secret and the network",
            failed.join(", ")
        ))
        .observed(format_args!(
            "images that cannot be pulled: {}",
            failed.join(", ")
        ));
    }
    if images.is_empty() {
        return Verdict::ok("Images are pulled while the installation is prepared");
    }
    Verdict::ok(format!("All {} images can be pulled", images.len()))
}

/// Source: assisted-service, internal/host/validator.go, hasDefaultRoute.
fn has_default_route(subject: &HostSubject<'_>) -> Verdict {
    let inventory = match subject.inventory() {
        Ok(inventory) => inventory,
        Err(pending) => return pending,
    };
    Verdict::of(
        inventory.routes.iter().any(networks::is_default),
        "The host has a default route",
        "Routes: the host has no default route with gateway and interface; configure one",
    )
    .observed("no default route")
}

/// Source: assisted-service, internal/host/validator.go, nonOverlappingSubnets.
fn non_overlapping_subnets(subject: &HostSubject<'_>) -> Verdict {
    let cluster = match subject.cluster() {
        Ok(cluster) => cluster,
        Err(verdict) => return verdict,
    };
    if let Err(pending) = subject.inventory() {
        return pending;
    }
    let mut nets: Vec<(ipnet::IpNet, &str)> = subject
        .texts
        .addresses
        .iter()
        .filter(|address| cluster.networks.speaks(&address.net))
        .filter(|address| address.net.prefix_len() < address.net.max_prefix_len())
        .map(|address| (address.net.trunc(), address.interface.as_str()))
        .collect();
    nets.sort_unstable();
    nets.dedup();
    // Networks sorted by address: an overlap shows between neighbours or with the widest so far.
    let mut widest: Option<(ipnet::IpNet, &str)> = None;
    for (net, interface) in nets {
        if let Some((wide, other)) = widest
            && networks::overlap(&wide, &net)
        {
            return Verdict::fail(format!(
                "Networks {wide} ({other}) and {net} ({interface}) overlap; give the interfaces networks of their own"
            ))
            .observed(format_args!("{wide} ({other}) and {net} ({interface})"));
        }
        widest = Some((net, interface));
    }
    Verdict::ok("No networks of the host overlap")
}

/// Source: assisted-service, internal/host/validator.go, noIPCollisionsInNetwork.
fn no_ip_collisions(subject: &HostSubject<'_>) -> Verdict {
    let cluster = match subject.cluster() {
        Ok(cluster) => cluster,
        Err(verdict) => return verdict,
    };
    if let Err(pending) = subject.inventory() {
        return pending;
    }
    let clashes: Vec<String> = subject
        .texts
        .addresses
        .iter()
        .filter_map(|address| {
            let ip = address.net.addr().to_string();
            let macs = cluster.collisions.get(&ip)?;
            Some(format!("{ip} (by {})", macs.join(", ")))
        })
        .collect();
    Verdict::of(
        clashes.is_empty(),
        "No other machine claims an address of the host",
        format_args!(
            "Addresses claimed by several machines: {}; give each its own",
            clashes.join("; ")
        ),
    )
    .observed(clashes.join("; "))
}

/// Source: assisted-service, internal/host/validator.go, noIscsiNicBelongsToMachineCidr.
fn no_iscsi_nic(subject: &HostSubject<'_>) -> Verdict {
    let cluster = match subject.cluster() {
        Ok(cluster) => cluster,
        Err(verdict) => return verdict,
    };
    let Some(inventory) = &subject.host.inventory else {
        return Verdict::Hidden;
    };
    let portals: Vec<IpAddr> = inventory
        .disks
        .iter()
        .filter_map(|disk| disk.iscsi.as_ref()?.host_ip_address.parse().ok())
        .collect();
    if portals.is_empty() || is_free_of_machine_networks(subject, cluster) {
        return Verdict::Hidden;
    }
    let inside: Vec<String> = portals
        .iter()
        .filter(|ip| cluster.networks.machine.iter().any(|net| net.contains(*ip)))
        .map(ToString::to_string)
        .collect();
    Verdict::of(
        inside.is_empty(),
        "iSCSI has an interface of its own",
        format_args!(
            "iSCSI address {} is in the machine network; storage needs an interface of its own",
            inside.join(", ")
        ),
    )
    .observed(format_args!("iSCSI address {}", inside.join(", ")))
}
