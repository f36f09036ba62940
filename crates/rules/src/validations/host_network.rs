//! What a host must reach, and where it must be.

use std::net::IpAddr;

use chrono::TimeDelta;
use model::host::{HostRole, MediaStatus};
use model::steps::{ConnectivityRemoteHost, DomainResolutionResponseResolutionsItem, SourceState};
use model::time::Timestamp;
use model::validations::HostValidationId as Id;

use super::{Category, ClusterSubject, HostBlock, HostSubject, HostValidation, Verdict};
use crate::host::limit_of;
use crate::networks::{self, is_v4};
use crate::replies;

/// Validations of the network group.
pub static VALIDATIONS: &[HostValidation] = &[
    row(
        Id::Connected,
        HostBlock::Connection,
        true,
        connected,
        "A host that does not call cannot be told anything.",
    ),
    row(
        Id::MediaConnected,
        HostBlock::Connection,
        true,
        media_connected,
        "The live system reads from its medium.",
    ),
    row(
        Id::MachineCidrDefined,
        HostBlock::Input,
        false,
        machine_cidr_defined,
        "Hosts are placed by the machine network.",
    ),
    row(
        Id::BelongsToMachineCidr,
        HostBlock::Sufficient,
        false,
        belongs_to_machine_cidr,
        "Nodes talk over the machine network.",
    ),
    row(
        Id::IgnitionDownloadable,
        HostBlock::Sufficient,
        false,
        ignition_downloadable,
        "A host that joins gets its configuration from the cluster.",
    ),
    row(
        Id::BelongsToMajorityGroup,
        HostBlock::Sufficient,
        false,
        belongs_to_majority_group,
        "Nodes must all reach each other.",
    ),
    row(
        Id::ValidPlatformNetworkSettings,
        HostBlock::Sufficient,
        false,
        valid_platform_network_settings,
        "VIPs do not work on this platform.",
    ),
    row(
        Id::NtpSynced,
        HostBlock::Nothing,
        true,
        ntp_synced,
        "Certificates need the right time.",
    ),
    row(
        Id::TimeSyncedBetweenHostAndService,
        HostBlock::Sufficient,
        false,
        time_synced,
        "Certificates need the right time.",
    ),
    row(
        Id::ContainerImagesAvailable,
        HostBlock::Preparing,
        false,
        container_images_available,
        "The installation pulls them again.",
    ),
    row(
        Id::SufficientNetworkLatencyRequirementForRole,
        HostBlock::Sufficient,
        false,
        latency,
        "etcd suffers from slow networks.",
    ),
    row(
        Id::SufficientPacketLossRequirementForRole,
        HostBlock::Sufficient,
        false,
        packet_loss,
        "etcd suffers from lossy networks.",
    ),
    row(
        Id::HasDefaultRoute,
        HostBlock::Sufficient,
        false,
        has_default_route,
        "OVN needs a default route.",
    ),
    row(
        Id::ApiDomainNameResolvedCorrectly,
        HostBlock::Sufficient,
        false,
        api_resolved,
        "Nodes find the API by name.",
    ),
    row(
        Id::ApiIntDomainNameResolvedCorrectly,
        HostBlock::Sufficient,
        false,
        api_int_resolved,
        "Nodes find the API by name.",
    ),
    row(
        Id::AppsDomainNameResolvedCorrectly,
        HostBlock::Sufficient,
        false,
        apps_resolved,
        "The console is found by name.",
    ),
    row(
        Id::DnsWildcardNotConfigured,
        HostBlock::Sufficient,
        false,
        no_wildcard,
        "A wildcard makes short names resolve wrongly.",
    ),
    row(
        Id::NonOverlappingSubnets,
        HostBlock::Sufficient,
        false,
        non_overlapping_subnets,
        "Replies would leave by the wrong interface.",
    ),
    row(
        Id::NoIpCollisionsInNetwork,
        HostBlock::Sufficient,
        false,
        no_ip_collisions,
        "Two machines claim one address.",
    ),
    row(
        Id::MtuValid,
        HostBlock::Nothing,
        false,
        mtu_valid,
        "Large packets get lost.",
    ),
    row(
        Id::NoIscsiNicBelongsToMachineCidr,
        HostBlock::Sufficient,
        false,
        no_iscsi_nic,
        "The cluster network is set up anew on the machine network's interface.",
    ),
];

const fn row(
    id: Id,
    blocks: HostBlock,
    unbound: bool,
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
    }
}

/// What is awaited before the network between hosts can be judged.
const TRIAL: &str = "the hosts to try whether they reach each other";
/// The bootstrap host is busy with itself for a while.
const BOOTSTRAP_GRACE: TimeDelta = TimeDelta::minutes(2);

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
    let is_near = called.is_some_and(|called| subject.now.signed_duration_since(called) <= limit);
    Verdict::of(
        is_near,
        "The host calls",
        format!(
            "The host has not called for more than {} s; see that it runs and reaches the service",
            limit.num_seconds()
        ),
    )
}

fn media_connected(subject: &HostSubject<'_>) -> Verdict {
    if subject.has_rebooted() {
        return Verdict::Hidden;
    }
    Verdict::of(
        subject.host.record.media_status != Some(MediaStatus::Disconnected),
        "The boot medium can be read",
        "The boot medium cannot be read; attach the discovery image again and reboot the host",
    )
}

fn machine_cidr_defined(subject: &HostSubject<'_>) -> Verdict {
    let cluster = match subject.cluster() {
        Ok(cluster) => cluster,
        Err(verdict) => return verdict,
    };
    if cluster.user_managed || cluster.day2 {
        return Verdict::ok("No machine network is needed");
    }
    Verdict::of(
        !cluster.networks.machine.is_empty(),
        "The machine network is defined",
        "Machine network: it is not defined; set the API and ingress VIPs, or the machine network itself",
    )
}

/// Hosts that need not be in the machine networks.
fn is_free_of_machine_networks(subject: &HostSubject<'_>, cluster: &ClusterSubject<'_>) -> bool {
    cluster.day2 || (cluster.user_managed && !cluster.single_node && !subject.host.record.bootstrap)
}

fn shown(nets: &[ipnet::IpNet]) -> String {
    nets.iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

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
        format!(
            "The host has no address in machine network {}; connect it to that network",
            shown(&missing)
        ),
    )
}

fn ignition_downloadable(subject: &HostSubject<'_>) -> Verdict {
    if !subject.day2() {
        return Verdict::Hidden;
    }
    match &subject.texts.api_vip {
        None => Verdict::wait("the host to try the cluster's ignition endpoint"),
        Some(answer) => Verdict::of(
            answer.is_success,
            "The host can download its ignition",
            format!(
                "Ignition could not be downloaded from {}: {}; check the API address of the cluster and the network",
                answer.url, answer.download_error
            ),
        ),
    }
}

fn belongs_to_majority_group(subject: &HostSubject<'_>) -> Verdict {
    let cluster = match subject.cluster() {
        Ok(cluster) => cluster,
        Err(verdict) => return verdict,
    };
    if cluster.single_node || cluster.day2 {
        return Verdict::ok("The host need not reach other hosts now");
    }
    if let Err(pending) = subject.inventory() {
        return pending;
    }
    if cluster.snapshot.hosts.len() < cluster.group_size {
        return Verdict::wait(format!(
            "{} hosts that can reach each other",
            cluster.group_size
        ));
    }
    let Some(groups) = &cluster.groups else {
        return Verdict::wait(TRIAL);
    };
    if subject.texts.reports.is_none() {
        return Verdict::wait(TRIAL);
    }
    let keys: Vec<String> = if cluster.user_managed || cluster.user_load_balancer {
        let mut families: Vec<bool> = subject
            .texts
            .addresses
            .iter()
            .filter(|address| cluster.networks.speaks(&address.net))
            .map(|address| is_v4(&address.net))
            .collect();
        families.sort_unstable();
        families.dedup();
        families
            .iter()
            .map(|v4| if *v4 { "IPv4" } else { "IPv6" }.to_owned())
            .collect()
    } else {
        cluster
            .networks
            .machine
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    if keys.is_empty() {
        return Verdict::wait("the machine network");
    }
    let id = subject.host.record.id;
    let missing: Vec<&str> = keys
        .iter()
        .filter(|key| {
            !groups
                .groups
                .get(*key)
                .is_some_and(|group| group.contains(&id))
        })
        .map(String::as_str)
        .collect();
    let tried = cluster.tried.get(&id).copied().unwrap_or_default();
    if !missing.is_empty() && tried + 1 < cluster.trying {
        return Verdict::wait(TRIAL);
    }
    Verdict::of(
        missing.is_empty(),
        "The host reaches the majority of hosts",
        format!(
            "The host does not reach the majority of hosts in {}; check its cabling, VLAN and firewall",
            missing.join(", ")
        ),
    )
}

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
        format!("Product {product} takes no VIPs; set user_managed_networking"),
    )
}

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
            format!(
                "The host's clock follows none of its {} time sources; set reachable ones in additional_ntp_source",
                sources.len()
            ),
        ),
    }
}

/// The host's clock minus the service's when the host last called. Units: seconds.
pub(crate) fn clock_offset(record: &model::host::Host) -> Option<i64> {
    let seen: Timestamp = record.checked_in_at.0?;
    (record.timestamp > 0).then(|| record.timestamp.saturating_sub(seen.timestamp()))
}

fn time_synced(subject: &HostSubject<'_>) -> Verdict {
    const BEHIND_S: i64 = 20 * 60;
    const AHEAD_S: i64 = 60 * 60;
    let Some(offset) = clock_offset(&subject.host.record) else {
        return Verdict::wait("the host's time");
    };
    Verdict::of(
        (-BEHIND_S..=AHEAD_S).contains(&offset),
        "The host's clock agrees with the service's",
        format!(
            "Clock: the host's is {} s {} the service's; set it right or give it a time source",
            offset.unsigned_abs(),
            if offset < 0 { "behind" } else { "ahead of" }
        ),
    )
}

fn container_images_available(subject: &HostSubject<'_>) -> Verdict {
    let images = replies::image_statuses(&subject.host.record);
    let failed = replies::failed_images(&subject.host.record);
    if !failed.is_empty() {
        return Verdict::fail(format!(
            "Images cannot be pulled: {}; check the registry, the pull secret and the network",
            failed.join(", ")
        ));
    }
    if images.is_empty() {
        return Verdict::ok("Images are tried while the installation is prepared");
    }
    Verdict::ok(format!("All {} images can be pulled", images.len()))
}

/// Reports about other hosts of the same role, when the role asks for it.
fn peers<'a>(
    subject: &HostSubject<'a>,
    threshold: Option<f64>,
) -> Result<(f64, Vec<&'a ConnectivityRemoteHost>), Verdict> {
    let cluster = subject.cluster()?;
    let role = subject.host.record.role.unwrap_or_default();
    let Some(threshold) = threshold else {
        return Err(Verdict::ok("Nothing is required of this role"));
    };
    if role == HostRole::AutoAssign || cluster.day2 {
        return Err(Verdict::ok(
            "Nothing is required before the role is assigned",
        ));
    }
    let own = subject.host.record.id;
    let same = |at: usize| cluster.snapshot.hosts[at].record.role == Some(role);
    let alone = !(0..cluster.snapshot.hosts.len())
        .any(|at| same(at) && cluster.snapshot.hosts[at].record.id != own);
    if alone {
        return Err(Verdict::ok("There is no other host of this role"));
    }
    let Some(reports) = &subject.texts.reports else {
        return Err(Verdict::wait(TRIAL));
    };
    let remotes = reports
        .remote_hosts
        .iter()
        .filter(|remote| {
            remote
                .host_id
                .and_then(|id| cluster.index.get(&id))
                .is_some_and(|at| same(*at))
        })
        .collect();
    Ok((threshold, remotes))
}

fn threshold(
    subject: &HostSubject<'_>,
    get: fn(&model::hardware::ClusterHostRequirementsDetails) -> Option<f64>,
) -> Option<f64> {
    let role = subject.host.record.role.unwrap_or_default();
    get(&subject.requirements.role(role, subject.single_node()))
}

fn remote_name(subject: &HostSubject<'_>, remote: &ConnectivityRemoteHost) -> String {
    let Some(cluster) = subject.cluster else {
        return String::new();
    };
    let at = remote.host_id.and_then(|id| cluster.index.get(&id));
    at.map(|at| cluster.snapshot.hosts[*at].name())
        .unwrap_or_default()
}

fn latency(subject: &HostSubject<'_>) -> Verdict {
    let threshold = threshold(subject, |needs| needs.network_latency_threshold_ms);
    let (limit, remotes) = match peers(subject, threshold) {
        Ok(all) => all,
        Err(verdict) => return verdict,
    };
    let mut slow = Vec::new();
    for remote in remotes {
        let times: Vec<f64> = remote
            .l3_connectivity
            .iter()
            .filter(|link| link.successful)
            .map(|link| link.average_rtt_ms)
            .collect();
        let count = u32::try_from(times.len()).map_or(f64::MAX, f64::from);
        let average = times.iter().sum::<f64>() / count;
        if !times.is_empty() && average > limit {
            slow.push(format!("{} {average:.2} ms", remote_name(subject, remote)));
        }
    }
    Verdict::of(
        slow.is_empty(),
        "Round trips to hosts of the same role are short enough",
        format!(
            "Latency: at most {limit} ms to hosts of the same role are allowed, measured {}; mend the network",
            slow.join(", ")
        ),
    )
}

fn packet_loss(subject: &HostSubject<'_>) -> Verdict {
    let threshold = threshold(subject, |needs| needs.packet_loss_percentage);
    let (limit, remotes) = match peers(subject, threshold) {
        Ok(all) => all,
        Err(verdict) => return verdict,
    };
    let mut lossy = Vec::new();
    for remote in remotes {
        let worst = remote
            .l3_connectivity
            .iter()
            .filter(|link| link.successful)
            .map(|link| link.packet_loss_percentage)
            .fold(0.0, f64::max);
        if worst > limit {
            lossy.push(format!("{} {worst:.2} %", remote_name(subject, remote)));
        }
    }
    Verdict::of(
        lossy.is_empty(),
        "Few enough packets to hosts of the same role get lost",
        format!(
            "Packet loss: at most {limit} % to hosts of the same role are allowed, measured {}; mend the network",
            lossy.join(", ")
        ),
    )
}

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
}

fn api_resolved(subject: &HostSubject<'_>) -> Verdict {
    resolved(subject, "api")
}

fn api_int_resolved(subject: &HostSubject<'_>) -> Verdict {
    resolved(subject, "api-int")
}

fn apps_resolved(subject: &HostSubject<'_>) -> Verdict {
    resolved(subject, "console-openshift-console.apps")
}

fn resolved(subject: &HostSubject<'_>, prefix: &str) -> Verdict {
    let cluster = match subject.cluster() {
        Ok(cluster) => cluster,
        Err(verdict) => return verdict,
    };
    if !cluster.user_managed || cluster.day2 {
        return Verdict::ok("The cluster resolves this name itself");
    }
    if cluster.single_node && subject.policy.single_node_dnsmasq {
        return Verdict::ok("The node resolves this name itself");
    }
    let Some(domain) = cluster.domain() else {
        return Verdict::Error(
            "Base domain: it is not set, so names of the cluster cannot be resolved".to_owned(),
        );
    };
    let name = format!("{prefix}.{domain}");
    let Some(answer) = answer(subject, &name) else {
        return Verdict::wait(format!("the host to resolve {name}"));
    };
    let addresses = found(answer);
    if addresses.is_empty() {
        return Verdict::fail(format!("DNS: {name} does not resolve; add a record for it"));
    }
    let own: Vec<String> = addresses
        .iter()
        .filter(|one| {
            subject
                .texts
                .addresses
                .iter()
                .any(|address| address.net.addr() == **one)
        })
        .map(ToString::to_string)
        .collect();
    Verdict::of(
        own.is_empty() || cluster.single_node,
        format!("{name} resolves"),
        format!(
            "DNS: {name} resolves to {}, an address of this host; it must resolve to the load balancer",
            own.join(", ")
        ),
    )
}

fn answer<'a>(
    subject: &HostSubject<'a>,
    name: &str,
) -> Option<&'a DomainResolutionResponseResolutionsItem> {
    let answers = &subject.texts.domains.as_ref()?.resolutions;
    answers.iter().find(|answer| answer.domain_name == name)
}

fn found(answer: &DomainResolutionResponseResolutionsItem) -> Vec<IpAddr> {
    let texts = answer.ipv4_addresses.iter().chain(&answer.ipv6_addresses);
    texts.filter_map(|text| text.parse().ok()).collect()
}

fn no_wildcard(subject: &HostSubject<'_>) -> Verdict {
    let cluster = match subject.cluster() {
        Ok(cluster) => cluster,
        Err(verdict) => return verdict,
    };
    if cluster.day2 {
        return Verdict::ok("The cluster is installed already");
    }
    let Some(domain) = cluster.domain() else {
        return Verdict::wait("the base domain");
    };
    let name = format!("validateNoWildcardDNS.{domain}");
    let answers = [answer(subject, &name), answer(subject, &format!("{name}."))];
    let [Some(plain), Some(dotted)] = answers else {
        return Verdict::wait(format!("the host to resolve names in {domain}"));
    };
    Verdict::of(
        found(plain).is_empty() && found(dotted).is_empty(),
        format!("No wildcard record for {domain} is in the way"),
        format!("DNS: a wildcard record resolves every name in {domain}; remove *.{domain}"),
    )
}

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
            ));
        }
        widest = Some((net, interface));
    }
    Verdict::ok("No networks of the host overlap")
}

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
        format!(
            "Addresses claimed by several machines: {}; give each its own",
            clashes.join("; ")
        ),
    )
}

fn mtu_valid(subject: &HostSubject<'_>) -> Verdict {
    let cluster = match subject.cluster() {
        Ok(cluster) => cluster,
        Err(verdict) => return verdict,
    };
    if cluster.single_node {
        return Verdict::Hidden;
    }
    let Some(reports) = &subject.texts.reports else {
        return Verdict::wait(TRIAL);
    };
    let counts = |nic: &str| {
        cluster.user_managed
            || subject
                .texts
                .addresses
                .iter()
                .filter(|address| address.interface == nic)
                .any(|address| {
                    cluster
                        .networks
                        .machine
                        .iter()
                        .any(|net| net.contains(&address.net.addr()))
                })
    };
    let mut broken: Vec<String> = reports
        .remote_hosts
        .iter()
        .flat_map(|remote| &remote.mtu_report)
        .filter(|report| !report.mtu_successful && counts(&report.outgoing_nic))
        .map(|report| format!("{} to {}", report.outgoing_nic, report.remote_ip_address))
        .collect();
    broken.sort();
    broken.dedup();
    Verdict::of(
        broken.is_empty(),
        "Packets of full size get through",
        format!(
            "MTU: packets of full size get lost from {}; set the same MTU along the way",
            broken.join(", ")
        ),
    )
}

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
        format!(
            "iSCSI address {} is in the machine network; storage needs an interface of its own",
            inside.join(", ")
        ),
    )
}
