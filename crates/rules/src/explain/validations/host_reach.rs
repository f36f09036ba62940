//! Connectivity and name resolution validations of hosts.

use std::net::IpAddr;

use model::host::HostRole;
use model::steps::DomainResolutionResponseResolutionsItem;

use super::subject::HostSubject;
use super::verdict::Verdict;
use crate::snapshot::host_state::HostState;
use crate::snapshot::networks::is_v4;
use crate::snapshot::reach::Reach;

/// Pending input of the connectivity validations.
const TRIAL: &str = "the hosts to check their connectivity";

/// Source: assisted-service, internal/host/validator.go, belongsToMajorityGroup.
pub(super) fn belongs_to_majority_group(subject: &HostSubject<'_>) -> Verdict {
    let cluster = match subject.cluster() {
        Ok(cluster) => cluster,
        Err(verdict) => return verdict,
    };
    if cluster.single_node || cluster.day2 {
        return Verdict::ok("Connectivity to other hosts is not required");
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
    let at = cluster.snapshot.hosts.position_by_id(id);
    let tried = at.map_or(0, |at| cluster.tried[at]);
    let is_tried = subject.texts.reaches.is_some() && tried + 1 >= cluster.trying;
    // Where others are a majority already, this host is not in it.
    // Source: assisted-service, internal/host/validator.go, belongsToMajorityGroup.
    let is_formed = keys.iter().any(|key| {
        let group = groups.groups.get(key);
        group.is_some_and(|group| !group.is_empty())
    });
    if !missing.is_empty() && !is_tried && !is_formed {
        return Verdict::wait(TRIAL);
    }
    Verdict::of(
        missing.is_empty(),
        "The host reaches the majority of hosts",
        format_args!(
            "The host does not reach the majority of hosts in {}; check its cabling, VLAN and firewall",
            missing.join(", ")
        ),
    )
    .observed(format_args!("no majority reached in {}", missing.join(", ")))
}

/// The threshold of the role, and the other hosts of the same role whose measurement is above it, with its value. Few
/// are, so that the record of a host is read after its measurement.
fn above(
    subject: &HostSubject<'_>,
    threshold: Option<f64>,
    (measured, unit): (fn(&Reach<'_>) -> Option<f64>, &str),
) -> Result<(f64, Vec<String>), Verdict> {
    let cluster = subject.cluster()?;
    let role = subject.host.record.role.unwrap_or_default();
    let Some(threshold) = threshold else {
        return Err(Verdict::ok("This role has no requirement"));
    };
    if role == HostRole::AutoAssign || cluster.day2 {
        return Err(Verdict::ok(
            "Nothing is required before the role is assigned",
        ));
    }
    let own = subject.host.record.id;
    let same = |host: &&HostState| host.record.role == Some(role);
    let mut others = cluster.snapshot.hosts.iter().filter(same);
    if !others.any(|host| host.record.id != own) {
        return Err(Verdict::ok("There is no other host of this role"));
    }
    let Some(reaches) = &subject.texts.reaches else {
        return Err(Verdict::wait(TRIAL));
    };
    let above = reaches.iter().filter_map(|reach| {
        let value = measured(&reach).filter(|value| *value > threshold)?;
        let host = cluster.snapshot.host(reach.host).filter(same)?;
        Some(format!("{} {value:.2} {unit}", host.name()))
    });
    Ok((threshold, above.collect()))
}

fn threshold(
    subject: &HostSubject<'_>,
    get: fn(&model::hardware::ClusterHostRequirementsDetails) -> Option<f64>,
) -> Option<f64> {
    let role = subject.host.record.role.unwrap_or_default();
    get(&subject.requirements.role(role, subject.single_node()))
}

/// Source: assisted-service, internal/host/validator.go, hasSufficientNetworkLatencyRequirementForRole.
pub(super) fn latency(subject: &HostSubject<'_>) -> Verdict {
    let threshold = threshold(subject, |needs| needs.network_latency_threshold_ms);
    let (limit, slow) = match above(subject, threshold, (|reach| reach.rtt_ms, "ms")) {
        Ok(slow) => slow,
        Err(verdict) => return verdict,
    };
    Verdict::of(
        slow.is_empty(),
        "Latency to hosts of the same role is within the limit",
        format_args!(
            "Latency: at most {limit} ms to hosts of the same role are allowed, measured {}; fix the network",
            slow.join(", ")
        ),
    )
    .observed(slow.join(", "))
    .required(format_args!("at most {limit} ms"))
}

/// Source: assisted-service, internal/host/validator.go, hasSufficientPacketLossRequirementForRole.
pub(super) fn packet_loss(subject: &HostSubject<'_>) -> Verdict {
    let threshold = threshold(subject, |needs| needs.packet_loss_percentage);
    let (limit, lossy) = match above(subject, threshold, (|reach| Some(reach.loss), "%")) {
        Ok(lossy) => lossy,
        Err(verdict) => return verdict,
    };
    Verdict::of(
        lossy.is_empty(),
        "Packet loss to hosts of the same role is within the limit",
        format_args!(
            "Packet loss: at most {limit} % to hosts of the same role are allowed, measured {}; fix the network",
            lossy.join(", ")
        ),
    )
    .observed(lossy.join(", "))
    .required(format_args!("at most {limit} %"))
}

/// Source: assisted-service, internal/host/validator.go, isAPIDomainNameResolvedCorrectly.
pub(super) fn api_resolved(subject: &HostSubject<'_>) -> Verdict {
    resolved(subject, "api")
}

/// Source: assisted-service, internal/host/validator.go, isAPIInternalDomainNameResolvedCorrectly.
pub(super) fn api_int_resolved(subject: &HostSubject<'_>) -> Verdict {
    resolved(subject, "api-int")
}

/// Source: assisted-service, internal/host/validator.go, isAppsDomainNameResolvedCorrectly.
pub(super) fn apps_resolved(subject: &HostSubject<'_>) -> Verdict {
    resolved(subject, "console-openshift-console.apps")
}

/// Source: assisted-service, internal/host/validator.go, shouldValidateDNSResolution, checkDomainNameResolution.
fn resolved(subject: &HostSubject<'_>, prefix: &str) -> Verdict {
    let cluster = match subject.cluster() {
        Ok(cluster) => cluster,
        Err(verdict) => return verdict,
    };
    match cluster.resolves_names {
        Some(false) => {}
        Some(true) => return Verdict::ok("The cluster resolves this name itself"),
        None => return Verdict::wait("a host to download the cluster's ignition"),
    }
    if cluster.single_node && !cluster.day2 && subject.policy.single_node_dnsmasq {
        return Verdict::ok("The node resolves this name itself");
    }
    let Some(domain) = cluster.domain() else {
        return Verdict::error(
            "Base domain: it is not set, so names of the cluster cannot be resolved",
        )
        .observed("no base domain")
        .required("a base domain")
        .fix("Set base_dns_domain.");
    };
    let name = format!("{prefix}.{domain}");
    let Some(answer) = answer(subject, &name) else {
        return Verdict::wait(format!("the host to resolve {name}"));
    };
    let addresses = found(answer);
    if addresses.is_empty() {
        return Verdict::fail(format!("DNS: {name} does not resolve; add a record for it"))
            .observed(format_args!("no address of {name}"));
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
        own.is_empty() || (cluster.single_node && !cluster.day2),
        format!("{name} resolves"),
        format_args!(
            "DNS: {name} resolves to {}, an address of this host; it must resolve to the load balancer",
            own.join(", ")
        ),
    )
    .observed(format_args!("{name} resolves to {}, an address of this host", own.join(", ")))
}

fn answer<'a>(
    subject: &HostSubject<'a>,
    name: &str,
) -> Option<&'a DomainResolutionResponseResolutionsItem> {
    let answers = &subject.texts.domains.as_ref()?.resolutions;
    answers.iter().find(|answer| answer.domain_name == name)
}

/// Addresses of an answer. Some agents write them with the length of a prefix.
fn found(answer: &DomainResolutionResponseResolutionsItem) -> Vec<IpAddr> {
    let texts = answer.ipv4_addresses.iter().chain(&answer.ipv6_addresses);
    let plain = texts.filter_map(|text| text.split('/').next());
    plain.filter_map(|text| text.parse().ok()).collect()
}

/// The name with a final dot, which no search domain completes, is not asked of agents before 4.14.
/// Source: assisted-service, internal/host/validator.go, isDNSWildcardNotConfigured.
pub(super) fn no_wildcard(subject: &HostSubject<'_>) -> Verdict {
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
    let Some(plain) = answer(subject, &name) else {
        return Verdict::wait(format!("the host to resolve names in {domain}"));
    };
    let dotted = answer(subject, &format!("{name}."));
    Verdict::of(
        found(plain).is_empty() && dotted.is_none_or(|dotted| found(dotted).is_empty()),
        format!("No wildcard record for {domain} exists"),
        format_args!("DNS: a wildcard record resolves every name in {domain}; remove *.{domain}"),
    )
    .observed(format_args!("every name in {domain} resolves"))
}

/// Source: assisted-service, internal/host/validator.go, isMtuValid.
pub(super) fn mtu_valid(subject: &HostSubject<'_>) -> Verdict {
    let cluster = match subject.cluster() {
        Ok(cluster) => cluster,
        Err(verdict) => return verdict,
    };
    if cluster.single_node {
        return Verdict::Hidden;
    }
    let Some(reaches) = &subject.texts.reaches else {
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
    let mut broken: Vec<String> = reaches
        .narrow()
        .iter()
        .filter(|(nic, _)| counts(nic))
        .map(|(nic, address)| format!("{nic} to {address}"))
        .collect();
    broken.sort();
    broken.dedup();
    Verdict::of(
        broken.is_empty(),
        "Packets of full size get through",
        format_args!(
            "MTU: packets of full size get lost from {}; set the same MTU along the way",
            broken.join(", ")
        ),
    )
    .observed(format_args!("lost packets from {}", broken.join(", ")))
}
