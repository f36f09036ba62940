//! What a cluster must be told and have.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use model::cluster::{CloudControllerManager, PlatformType};
use model::host::{HostRole, HostStatus};
use model::network::{NetworkType, VipVerification};
use model::validations::ClusterValidationId as Id;

use super::host_network::clock_offset;
use super::{Category, ClusterSubject, Verdict, host_operators};
use crate::networks::{self, is_v4};
use crate::progress::effective_role;
use crate::roles;

/// What a cluster's validation holds back when it does not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterBlock {
    /// The cluster waits for its user's input.
    Input,
    /// The cluster is insufficient.
    Install,
    /// Nothing: it is shown.
    Nothing,
}

/// One validation of clusters.
pub struct ClusterValidation {
    /// Its id on the wire.
    pub id: Id,
    /// The group it is shown in.
    pub category: Category,
    /// What it holds back.
    pub blocks: ClusterBlock,
    /// Judges a cluster.
    pub check: fn(&ClusterSubject<'_>) -> Verdict,
    /// Why it matters.
    pub doc: &'static str,
}

/// The validations of clusters that are not about operators.
pub static VALIDATIONS: &[ClusterValidation] = &[
    row(
        Id::MachineCidrDefined,
        Category::Network,
        ClusterBlock::Input,
        machine_cidr_defined,
        "Hosts are placed by it.",
    ),
    row(
        Id::ClusterCidrDefined,
        Category::Network,
        ClusterBlock::Input,
        cluster_cidr_defined,
        "Pods get their addresses from it.",
    ),
    row(
        Id::ServiceCidrDefined,
        Category::Network,
        ClusterBlock::Input,
        service_cidr_defined,
        "Services get their addresses from it.",
    ),
    row(
        Id::ApiVipsDefined,
        Category::Network,
        ClusterBlock::Input,
        api_vips_defined,
        "The API is reached there.",
    ),
    row(
        Id::IngressVipsDefined,
        Category::Network,
        ClusterBlock::Input,
        ingress_vips_defined,
        "Applications are reached there.",
    ),
    row(
        Id::DnsDomainDefined,
        Category::Network,
        ClusterBlock::Input,
        dns_domain_defined,
        "Names of the cluster end in it.",
    ),
    row(
        Id::PullSecretSet,
        Category::Configuration,
        ClusterBlock::Input,
        pull_secret_set,
        "Images are pulled with it.",
    ),
    row(
        Id::MachineCidrEqualsToCalculatedCidr,
        Category::Network,
        ClusterBlock::Install,
        machine_cidr_calculated,
        "VIPs must be in the hosts' network.",
    ),
    row(
        Id::ApiVipsValid,
        Category::Network,
        ClusterBlock::Install,
        api_vips_valid,
        "The address must be free.",
    ),
    row(
        Id::IngressVipsValid,
        Category::Network,
        ClusterBlock::Install,
        ingress_vips_valid,
        "The address must be free.",
    ),
    row(
        Id::AllHostsAreReadyToInstall,
        Category::HostsData,
        ClusterBlock::Install,
        all_hosts_ready,
        "Every host takes part.",
    ),
    row(
        Id::SufficientMastersCount,
        Category::HostsData,
        ClusterBlock::Install,
        sufficient_masters,
        "A control plane has a fixed size.",
    ),
    row(
        Id::NetworkPrefixValid,
        Category::Network,
        ClusterBlock::Install,
        network_prefix_valid,
        "Every host needs a part of the cluster network.",
    ),
    row(
        Id::NoCidrsOverlapping,
        Category::Network,
        ClusterBlock::Install,
        no_cidrs_overlapping,
        "An address must mean one thing.",
    ),
    row(
        Id::NtpServerConfigured,
        Category::Network,
        ClusterBlock::Install,
        ntp_server_configured,
        "Hosts' clocks must agree.",
    ),
    row(
        Id::NetworkTypeValid,
        Category::Network,
        ClusterBlock::Install,
        network_type_valid,
        "Not every plugin can do everything.",
    ),
    row(
        Id::CustomManifestsRequirementsSatisfied,
        Category::Network,
        ClusterBlock::Install,
        custom_manifests,
        "Third-party plugins come as manifests.",
    ),
    row(
        Id::NetworksSameAddressFamilies,
        Category::Network,
        ClusterBlock::Install,
        same_families,
        "Pods, services and machines must speak alike.",
    ),
    row(
        Id::PlatformRequirementsSatisfied,
        Category::Configuration,
        ClusterBlock::Install,
        platform_requirements,
        "Hosts must fit the platform.",
    ),
    row(
        Id::OpenshiftAiGpuRequirementsSatisfied,
        Category::Operators,
        ClusterBlock::Nothing,
        openshift_ai_gpu,
        "Models run faster on GPUs.",
    ),
];

/// Every validation of clusters, those of operators too.
pub fn cluster_validations() -> impl Iterator<Item = &'static ClusterValidation> {
    VALIDATIONS.iter().chain(host_operators::CLUSTER_ROWS)
}

const fn row(
    id: Id,
    category: Category,
    blocks: ClusterBlock,
    check: fn(&ClusterSubject<'_>) -> Verdict,
    doc: &'static str,
) -> ClusterValidation {
    ClusterValidation {
        id,
        category,
        blocks,
        check,
        doc,
    }
}

fn openshift_ai_gpu(cluster: &ClusterSubject<'_>) -> Verdict {
    if !cluster.operators.contains("openshift-ai") {
        return Verdict::ok("Operator openshift-ai is not chosen");
    }
    let inventories = cluster
        .snapshot
        .hosts
        .iter()
        .filter_map(|host| host.inventory.as_ref());
    let found = inventories
        .flat_map(|inventory| &inventory.gpus)
        .any(|gpu| matches!(gpu.vendor_id.as_str(), "10de" | "1002"));
    Verdict::of(
        found,
        "A host has a GPU that is supported",
        "GPU: no host has one of NVIDIA (10de) or AMD (1002); models will run on CPUs",
    )
}

fn machine_cidr_defined(cluster: &ClusterSubject<'_>) -> Verdict {
    if cluster.user_managed || cluster.day2 {
        return Verdict::ok("No machine network is needed");
    }
    let defined = !cluster.networks.machine.is_empty();
    if !defined && cluster.single_node {
        return Verdict::ok("The machine network follows from the host");
    }
    Verdict::of(
        defined,
        "The machine network is defined",
        "machine_networks: none is defined; set the VIPs, from which it follows, or the network itself",
    )
}

fn cluster_cidr_defined(cluster: &ClusterSubject<'_>) -> Verdict {
    Verdict::of(
        !cluster.networks.cluster.is_empty() || cluster.day2,
        "The cluster network is defined",
        "cluster_networks: none is defined; set one, for instance 10.128.0.0/14 with host_prefix 23",
    )
}

fn service_cidr_defined(cluster: &ClusterSubject<'_>) -> Verdict {
    Verdict::of(
        !cluster.networks.service.is_empty() || cluster.day2,
        "The service network is defined",
        "service_networks: none is defined; set one, for instance 172.30.0.0/16",
    )
}

fn api_vips(cluster: &ClusterSubject<'_>) -> Vec<Vip> {
    let vips = cluster.cluster.api_vips.iter();
    vips.map(|vip| Vip {
        ip: vip.ip.clone(),
        verification: vip.verification,
    })
    .collect()
}

fn ingress_vips(cluster: &ClusterSubject<'_>) -> Vec<Vip> {
    let vips = cluster.cluster.ingress_vips.iter();
    vips.map(|vip| Vip {
        ip: vip.ip.clone(),
        verification: vip.verification,
    })
    .collect()
}

struct Vip {
    ip: String,
    verification: Option<VipVerification>,
}

fn api_vips_defined(cluster: &ClusterSubject<'_>) -> Verdict {
    vips_defined(cluster, "api_vips", &api_vips(cluster))
}

fn ingress_vips_defined(cluster: &ClusterSubject<'_>) -> Verdict {
    vips_defined(cluster, "ingress_vips", &ingress_vips(cluster))
}

/// Nobody needs a VIP where the user brings the load balancer, or one host is everything.
fn needs_no_vips(cluster: &ClusterSubject<'_>) -> bool {
    cluster.user_managed || cluster.single_node || cluster.day2
}

fn vips_defined(cluster: &ClusterSubject<'_>, field: &str, vips: &[Vip]) -> Verdict {
    if needs_no_vips(cluster) {
        return Verdict::ok("No virtual address is needed");
    }
    if vips.is_empty() && cluster.cluster.vip_dhcp_allocation == Some(true) {
        return Verdict::wait("a DHCP lease for the virtual addresses");
    }
    Verdict::of(
        !vips.is_empty(),
        format!("{field} is set"),
        format!("{field}: none is set; set a free address of the hosts' network"),
    )
}

fn api_vips_valid(cluster: &ClusterSubject<'_>) -> Verdict {
    vips_valid(cluster, "api_vips", &api_vips(cluster))
}

fn ingress_vips_valid(cluster: &ClusterSubject<'_>) -> Verdict {
    vips_valid(cluster, "ingress_vips", &ingress_vips(cluster))
}

fn vips_valid(cluster: &ClusterSubject<'_>, field: &str, vips: &[Vip]) -> Verdict {
    if needs_no_vips(cluster) {
        return Verdict::ok("No virtual address is needed");
    }
    if vips.is_empty() {
        return Verdict::wait(format!("{field} to be set"));
    }
    let mut awaited = None;
    for vip in vips {
        match vip_valid(cluster, field, vip) {
            Verdict::Success(_) => {}
            pending @ Verdict::Pending(_) => awaited = Some(pending),
            bad => return bad,
        }
    }
    awaited.unwrap_or_else(|| Verdict::ok(format!("{field} can be used")))
}

fn vip_valid(cluster: &ClusterSubject<'_>, field: &str, vip: &Vip) -> Verdict {
    let ip = &vip.ip;
    let Ok(address) = ip.parse::<IpAddr>() else {
        return Verdict::fail(format!("{field}: {ip} is not an IP address"));
    };
    let machine = &cluster.networks.machine;
    if machine.is_empty() {
        return Verdict::wait("the machine network");
    }
    let Some(network) = machine.iter().find(|net| net.contains(&address)) else {
        let nets: Vec<String> = machine.iter().map(ToString::to_string).collect();
        return Verdict::fail(format!(
            "{field}: {ip} is not in machine network {}; choose an address of it",
            nets.join(", ")
        ));
    };
    let reserved = is_v4(network) && network.prefix_len() < 31;
    if reserved && (address == network.network() || address == network.broadcast()) {
        return Verdict::fail(format!(
            "{field}: {ip} is the network or broadcast address of {network}; choose another address"
        ));
    }
    if cluster.user_load_balancer {
        return Verdict::ok("The load balancer answers there");
    }
    let taken = || {
        Verdict::fail(format!(
            "{field}: {ip} is in use already; choose a free address of {network}"
        ))
    };
    match vip.verification {
        Some(VipVerification::Succeeded) => Verdict::ok("It is free"),
        Some(VipVerification::Failed) => taken(),
        Some(VipVerification::Unverified) | None => match is_free(cluster, network, ip) {
            Some(true) => Verdict::ok("It is free"),
            Some(false) => taken(),
            None => Verdict::wait(format!("the hosts to try whether {ip} is free")),
        },
    }
}

/// Whether every host that looked found the address free; none when nobody looked.
fn is_free(cluster: &ClusterSubject<'_>, network: &IpNet, ip: &str) -> Option<bool> {
    let name = network.to_string();
    let mut lists = cluster
        .texts
        .iter()
        .filter_map(|texts| texts.free.as_ref())
        .flatten()
        .filter(|list| list.network == name)
        .peekable();
    lists.peek()?;
    Some(lists.all(|list| list.free_addresses.iter().any(|free| free == ip)))
}

fn dns_domain_defined(cluster: &ClusterSubject<'_>) -> Verdict {
    Verdict::of(
        !cluster.cluster.base_dns_domain.is_empty() || cluster.day2,
        "The base domain is set",
        "base_dns_domain: it is not set; set the domain that the cluster's names end in",
    )
}

fn pull_secret_set(cluster: &ClusterSubject<'_>) -> Verdict {
    Verdict::of(
        cluster.cluster.pull_secret_set,
        "The pull secret is set",
        "pull_secret: it is not set; set the credentials of the registries that images come from",
    )
}

fn machine_cidr_calculated(cluster: &ClusterSubject<'_>) -> Verdict {
    if needs_no_vips(cluster) || cluster.user_load_balancer {
        return Verdict::ok("The machine network need not hold virtual addresses");
    }
    let vips: Vec<IpAddr> = api_vips(cluster)
        .iter()
        .filter_map(|vip| vip.ip.parse().ok())
        .collect();
    if vips.is_empty() {
        return Verdict::wait("api_vips to be set");
    }
    let hosts: BTreeSet<IpNet> = cluster
        .texts
        .iter()
        .flat_map(|texts| &texts.addresses)
        .map(|address| address.net.trunc())
        .collect();
    if hosts.is_empty() {
        return Verdict::wait("hosts to report their networks");
    }
    for vip in vips {
        let Some(calculated) = networks::holding(&hosts, vip) else {
            return Verdict::fail(format!(
                "api_vips: {vip} is in none of the hosts' networks; choose an address of one"
            ));
        };
        if !cluster.networks.machine.contains(&calculated) {
            return Verdict::fail(format!(
                "machine_networks: {calculated}, which holds {vip}, is not among them; set it"
            ));
        }
    }
    Verdict::ok("The machine network is the one that holds the virtual addresses")
}

fn all_hosts_ready(cluster: &ClusterSubject<'_>) -> Verdict {
    let hosts = &cluster.snapshot.hosts;
    if hosts.is_empty() {
        return Verdict::fail("Hosts: there are none; boot machines from the discovery image");
    }
    let mut waiting: Vec<String> = hosts
        .iter()
        .filter(|host| !is_ready(host.record.status))
        .map(|host| format!("{} is {}", host.name(), host.record.status))
        .collect();
    waiting.sort();
    Verdict::of(
        waiting.is_empty(),
        "Every host is ready",
        format!(
            "Hosts: {}; mend them or take them out of the cluster",
            waiting.join(", ")
        ),
    )
}

fn is_ready(status: HostStatus) -> bool {
    matches!(
        status,
        HostStatus::Known
            | HostStatus::PreparingForInstallation
            | HostStatus::PreparingSuccessful
            | HostStatus::Installing
            | HostStatus::InstallingInProgress
            | HostStatus::Installed
    )
}

fn sufficient_masters(cluster: &ClusterSubject<'_>) -> Verdict {
    if cluster.day2 {
        return Verdict::ok("The control plane is there already");
    }
    let wanted = roles::control_plane_count(cluster.cluster);
    let count = |role| {
        let hosts = cluster.snapshot.hosts.iter();
        hosts
            .filter(|host| effective_role(&host.record) == role)
            .count()
    };
    let (masters, arbiters, workers) = (
        count(HostRole::Master),
        count(HostRole::Arbiter),
        count(HostRole::Worker),
    );
    if masters != wanted {
        return Verdict::fail(format!(
            "Hosts: {masters} can be masters, control_plane_count asks for {wanted}; add hosts or change their roles"
        ));
    }
    if cluster.single_node && workers > 0 {
        return Verdict::fail(format!(
            "Hosts: a single node cluster has no workers, but there are {workers}; take them out of the cluster"
        ));
    }
    if wanted == 2 && arbiters != 1 && !roles::is_fenced(cluster.snapshot) {
        return Verdict::fail(format!(
            "Hosts: two masters need one arbiter (there are {arbiters}) or fencing credentials of both; add what is missing"
        ));
    }
    Verdict::ok(format!("There are {masters} masters and {workers} workers"))
}

/// What some plugins use when they are not told otherwise, by family.
const OWN_PREFIX: (i64, i64) = (25, 64);

fn network_prefix_valid(cluster: &ClusterSubject<'_>) -> Verdict {
    if cluster.day2 {
        return Verdict::ok("The cluster is installed already");
    }
    if cluster.networks.cluster.is_empty() {
        return Verdict::wait("cluster_networks to be set");
    }
    let plugin = cluster.cluster.network_type;
    let hosts = i64::try_from(cluster.snapshot.hosts.len())
        .unwrap_or(i64::MAX)
        .max(4);
    for (net, prefix) in &cluster.networks.cluster {
        let bits = i64::from(net.max_prefix_len());
        let own = if is_v4(net) {
            OWN_PREFIX.0
        } else {
            OWN_PREFIX.1
        };
        let prefix = match *prefix {
            0 if plugin.is_some_and(is_third_party) => own,
            prefix => prefix,
        };
        let length = i64::from(net.prefix_len());
        if prefix < 1 || prefix > bits - 7 || prefix < length {
            return Verdict::fail(format!(
                "host_prefix: {prefix} of cluster network {net} must be between {} and {}",
                length.max(1),
                bits - 7
            ));
        }
        // 62 bits hold more hosts than anyone has.
        let subnets = 1_i64 << (prefix - length).min(62);
        if subnets < hosts {
            return Verdict::fail(format!(
                "host_prefix: {prefix} splits cluster network {net} into {subnets} parts, {hosts} are needed; choose a larger network or a longer prefix"
            ));
        }
    }
    Verdict::ok("The cluster network has a part for every host")
}

fn no_cidrs_overlapping(cluster: &ClusterSubject<'_>) -> Verdict {
    let networks = &cluster.networks;
    if !networks.unparsable.is_empty() {
        return Verdict::Error(format!(
            "Networks: {} cannot be read as CIDR",
            networks.unparsable.join(", ")
        ));
    }
    if networks.cluster.len() != networks.service.len() {
        return Verdict::Error(format!(
            "Networks: there are {} cluster and {} service networks; there must be as many of each",
            networks.cluster.len(),
            networks.service.len()
        ));
    }
    let named: Vec<(&str, IpNet)> = networks
        .machine
        .iter()
        .map(|net| ("machine", *net))
        .chain(networks.cluster.iter().map(|one| ("cluster", one.0)))
        .chain(networks.service.iter().map(|net| ("service", *net)))
        .collect();
    for (at, (name, net)) in named.iter().enumerate() {
        for (other_name, other) in &named[at + 1..] {
            if name != other_name && networks::overlap(net, other) {
                return Verdict::fail(format!(
                    "Networks: {name} network {net} and {other_name} network {other} overlap; change one"
                ));
            }
        }
    }
    Verdict::ok("No networks overlap")
}

fn ntp_server_configured(cluster: &ClusterSubject<'_>) -> Verdict {
    const SPREAD_S: i64 = 4 * 60;
    let offsets: Vec<(i64, String)> = cluster
        .snapshot
        .hosts
        .iter()
        .filter(|host| host.record.status != HostStatus::Disconnected)
        .filter_map(|host| Some((clock_offset(&host.record)?, host.name())))
        .collect();
    let (Some(first), Some(last)) = (offsets.iter().min(), offsets.iter().max()) else {
        return Verdict::ok("No clocks differ");
    };
    let spread = last.0.saturating_sub(first.0);
    Verdict::of(
        spread <= SPREAD_S,
        "The hosts' clocks agree",
        format!(
            "Clocks: {} is {spread} s ahead of {}, at most {SPREAD_S} s are allowed; set reachable time sources in additional_ntp_source",
            last.1, first.1
        ),
    )
}

fn is_third_party(kind: NetworkType) -> bool {
    matches!(
        kind,
        NetworkType::Cilium | NetworkType::Calico | NetworkType::CiscoACI | NetworkType::None
    )
}

fn network_type_valid(cluster: &ClusterSubject<'_>) -> Verdict {
    let Some(kind) = cluster.cluster.network_type else {
        return Verdict::of(
            cluster.day2,
            "The cluster is installed already",
            "network_type: it is not set; set OVNKubernetes or another plugin",
        );
    };
    let networks = &cluster.networks;
    let mut all = networks
        .machine
        .iter()
        .chain(&networks.service)
        .chain(networks.cluster.iter().map(|one| &one.0));
    if kind == NetworkType::OpenShiftSDN && (cluster.single_node || all.any(|net| !is_v4(net))) {
        return Verdict::fail(
            "network_type: OpenShiftSDN knows neither IPv6 nor a single node; choose OVNKubernetes",
        );
    }
    if kind == NetworkType::OVNKubernetes && cluster.cluster.vip_dhcp_allocation == Some(true) {
        return Verdict::fail(
            "network_type: OVNKubernetes takes no virtual addresses from DHCP; set them and switch vip_dhcp_allocation off",
        );
    }
    Verdict::ok(format!("Network type {kind} fits"))
}

fn custom_manifests(cluster: &ClusterSubject<'_>) -> Verdict {
    let third_party = cluster
        .cluster
        .network_type
        .filter(|kind| is_third_party(*kind));
    match third_party {
        Some(kind) => Verdict::of(
            cluster.snapshot.files.user_manifests,
            "Manifests for the network plugin have been added",
            format!(
                "network_type: {kind} comes as manifests, but none were added; add the plugin's"
            ),
        ),
        None => Verdict::ok("The platform brings the network plugin"),
    }
}

fn same_families(cluster: &ClusterSubject<'_>) -> Verdict {
    let networks = &cluster.networks;
    let families = |nets: &mut dyn Iterator<Item = &IpNet>| {
        let mut families: Vec<bool> = nets.map(is_v4).collect();
        families.sort_unstable();
        families.dedup();
        families
    };
    let machine = families(&mut networks.machine.iter());
    let pods = families(&mut networks.cluster.iter().map(|one| &one.0));
    let service = families(&mut networks.service.iter());
    let judged = pods == service && (machine.is_empty() || machine == pods);
    if machine.is_empty() && judged && !cluster.user_managed && !cluster.day2 {
        return Verdict::wait("the machine network");
    }
    Verdict::of(
        judged,
        "Machine, cluster and service networks are of the same address families",
        "Networks: machine, cluster and service networks are not of the same address families; make each list hold the same",
    )
}

fn platform_requirements(cluster: &ClusterSubject<'_>) -> Verdict {
    let Some(platform) = &cluster.cluster.platform else {
        return Verdict::ok("No platform integration is asked for");
    };
    let needed = match platform.r#type {
        PlatformType::Vsphere => "VMware, Inc.",
        PlatformType::Nutanix => "Nutanix",
        PlatformType::External => {
            let external = platform.external.as_ref();
            let manager = external.and_then(|one| one.cloud_controller_manager);
            return Verdict::of(
                manager != Some(CloudControllerManager::External)
                    || cluster.snapshot.files.user_manifests,
                "The platform is the user's to integrate",
                "Platform: an external cloud controller manager comes as manifests, but none were added; add them",
            );
        }
        PlatformType::Baremetal | PlatformType::None => {
            return Verdict::ok(format!("Platform {} takes every machine", platform.r#type));
        }
    };
    let strangers: Vec<String> = cluster
        .snapshot
        .hosts
        .iter()
        .filter(|host| {
            let inventory = host.inventory.as_ref();
            let vendor = inventory.and_then(|inventory| inventory.system_vendor.as_ref());
            vendor.is_some_and(|vendor| vendor.manufacturer != needed)
        })
        .map(crate::snapshot::HostState::name)
        .collect();
    Verdict::of(
        strangers.is_empty(),
        format!("Every machine is of {needed}"),
        format!(
            "Platform {} needs machines of {needed}; these are not: {}",
            platform.r#type,
            strangers.join(", ")
        ),
    )
}
