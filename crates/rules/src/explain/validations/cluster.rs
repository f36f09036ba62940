//! Validations of clusters.
//! Source: assisted-service, internal/cluster/validator.go, validation_id.go; blocking: conditions in statemachine.go.

use model::cluster::{CloudControllerManager, PlatformType};
use model::host::{HostRole, HostStatus};
use model::validations::ClusterValidationId as Id;

use super::cluster_networks::{
    cluster_cidr_defined, custom_manifests, machine_cidr_calculated, machine_cidr_defined,
    network_prefix_valid, network_type_valid, no_cidrs_overlapping, same_families,
    service_cidr_defined,
};
use super::cluster_vips::{
    api_vips_defined, api_vips_valid, ingress_vips_defined, ingress_vips_valid,
};
use super::host_operators;
use super::subject::ClusterSubject;
use super::validation::{Category, ClusterBlock, ClusterValidation};
use super::verdict::Verdict;
use crate::host::heartbeat::clock_offset_s;
use crate::snapshot::roles::{self, effective_role};

/// The validations of clusters that are not about operators.
pub static VALIDATIONS: &[ClusterValidation] = &[
    row(
        Id::ClusterCidrDefined,
        Category::Network,
        ClusterBlock::Input,
        cluster_cidr_defined,
        "Pods get their addresses from it.",
    )
    .needs(
        "a cluster network",
        "Set cluster_networks, for instance 10.128.0.0/14 with host_prefix 23.",
    ),
    row(
        Id::ServiceCidrDefined,
        Category::Network,
        ClusterBlock::Input,
        service_cidr_defined,
        "Services get their addresses from it.",
    )
    .needs(
        "a service network",
        "Set service_networks, for instance 172.30.0.0/16.",
    ),
    row(
        Id::ApiVipsDefined,
        Category::Network,
        ClusterBlock::VipInput,
        api_vips_defined,
        "The API is reached there.",
    )
    .needs(
        "a virtual address for the API",
        "Set api_vips to a free address of the hosts' network.",
    ),
    row(
        Id::IngressVipsDefined,
        Category::Network,
        ClusterBlock::VipInput,
        ingress_vips_defined,
        "Applications are reached there.",
    )
    .needs(
        "a virtual address for ingress",
        "Set ingress_vips to a free address of the hosts' network.",
    ),
    row(
        Id::MachineCidrDefined,
        Category::Network,
        ClusterBlock::Input,
        machine_cidr_defined,
        "Nodes have their addresses in it.",
    )
    .needs(
        "a machine network",
        "Set the VIPs, from which it follows, or the network itself.",
    ),
    row(
        Id::DnsDomainDefined,
        Category::Network,
        ClusterBlock::Input,
        dns_domain_defined,
        "Names of the cluster end in it.",
    )
    .needs("a base domain", "Set base_dns_domain."),
    row(
        Id::PullSecretSet,
        Category::Configuration,
        ClusterBlock::Input,
        pull_secret_set,
        "Images are pulled with it.",
    )
    .needs(
        "a pull secret",
        "Set pull_secret to the credentials of the registries that images come from.",
    ),
    row(
        Id::MachineCidrEqualsToCalculatedCidr,
        Category::Network,
        ClusterBlock::Install,
        machine_cidr_calculated,
        "VIPs must be in the hosts' network.",
    )
    .needs(
        "a machine network of the hosts that holds the virtual addresses",
        "Choose virtual addresses of the hosts' network, or correct machine_networks.",
    ),
    row(
        Id::ApiVipsValid,
        Category::Network,
        ClusterBlock::Install,
        api_vips_valid,
        "The address must be free.",
    )
    .needs(
        "a free address in a machine network",
        "Choose a free address of the machine network for api_vips.",
    ),
    row(
        Id::IngressVipsValid,
        Category::Network,
        ClusterBlock::Install,
        ingress_vips_valid,
        "The address must be free.",
    )
    .needs(
        "a free address in a machine network",
        "Choose a free address of the machine network for ingress_vips.",
    ),
    row(
        Id::AllHostsAreReadyToInstall,
        Category::HostsData,
        ClusterBlock::Install,
        all_hosts_ready,
        "Every host takes part.",
    )
    .needs(
        "hosts that are all ready",
        "Fix the hosts, or remove them from the cluster.",
    ),
    row(
        Id::SufficientMastersCount,
        Category::HostsData,
        ClusterBlock::Install,
        sufficient_masters,
        "A control plane has a fixed size.",
    )
    .needs(
        "as many masters as control_plane_count says",
        "Add hosts, or change their roles.",
    ),
    row(
        Id::NetworkPrefixValid,
        Category::Network,
        ClusterBlock::Install,
        network_prefix_valid,
        "Every host needs a part of the cluster network.",
    )
    .needs(
        "a host prefix that gives each host a part of the network",
        "Choose a larger cluster network or another host_prefix.",
    ),
    row(
        Id::NoCidrsOverlapping,
        Category::Network,
        ClusterBlock::Install,
        no_cidrs_overlapping,
        "Addresses must be unambiguous.",
    )
    .needs(
        "networks that do not overlap",
        "Change one of the networks.",
    ),
    row(
        Id::NtpServerConfigured,
        Category::Network,
        ClusterBlock::Install,
        ntp_server_configured,
        "Hosts' clocks must agree.",
    )
    .needs(
        "clocks that differ by at most 240 s",
        "Set reachable time sources in additional_ntp_source.",
    ),
    row(
        Id::NetworkTypeValid,
        Category::Network,
        ClusterBlock::Install,
        network_type_valid,
        "Plugins differ in their features.",
    )
    .needs(
        "a network plugin that fits the settings",
        "Choose OVNKubernetes, or change the setting that excludes the plugin.",
    ),
    row(
        Id::CustomManifestsRequirementsSatisfied,
        Category::Network,
        ClusterBlock::Install,
        custom_manifests,
        "Third-party plugins come as manifests.",
    )
    .needs(
        "manifests of the network plugin",
        "Add the manifests of the plugin.",
    ),
    row(
        Id::NetworksSameAddressFamilies,
        Category::Network,
        ClusterBlock::Install,
        same_families,
        "Pods, services and machines must use the same address families.",
    )
    .needs(
        "the same address families in all lists of networks",
        "Make machine, cluster and service networks hold the same families.",
    ),
    row(
        Id::PlatformRequirementsSatisfied,
        Category::Configuration,
        ClusterBlock::Install,
        platform_requirements,
        "Hosts must fit the platform.",
    )
    .needs(
        "hosts and manifests that fit the platform",
        "Replace the hosts, add the manifests, or choose another platform.",
    ),
    row(
        Id::OpenshiftAiGpuRequirementsSatisfied,
        Category::Operators,
        ClusterBlock::Nothing,
        openshift_ai_gpu,
        "Models run faster on GPUs.",
    )
    .needs(
        "a GPU of NVIDIA (10de) or AMD (1002)",
        "Add a host with a supported GPU.",
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
        required: "",
        fix: "",
    }
}

/// A success whose text is advice: the web UI shows it, if any, beside the choice of the operator.
/// Source: assisted-service, internal/operators/openshiftai/openshift_ai_operator.go, validateGPU.
fn openshift_ai_gpu(cluster: &ClusterSubject<'_>) -> Verdict {
    let chosen = &cluster.operators;
    let with_gpus = chosen.contains("nvidia-gpu") || chosen.contains("amd-gpu");
    if with_gpus || !chosen.contains("openshift-ai") {
        return Verdict::ok("");
    }
    Verdict::ok("No operator for GPUs is chosen: models will run on CPUs")
}

/// Source: assisted-service, internal/cluster/validator.go, isDNSDomainDefined.
fn dns_domain_defined(cluster: &ClusterSubject<'_>) -> Verdict {
    Verdict::of(
        !cluster.cluster.base_dns_domain.is_empty() || cluster.day2,
        "The base domain is set",
        "base_dns_domain: it is not set; set the domain that the cluster's names end in",
    )
    .observed("no base domain")
}

/// Source: assisted-service, internal/cluster/validator.go, isPullSecretSet.
fn pull_secret_set(cluster: &ClusterSubject<'_>) -> Verdict {
    Verdict::of(
        cluster.cluster.pull_secret_set,
        "The pull secret is set",
        "pull_secret: it is not set; set the credentials of the registries that images come from",
    )
    .observed("no pull secret")
}

/// Judges the hosts that are there; sufficient-masters-count judges their number.
/// Source: assisted-service, internal/cluster/validator.go, allHostsAreReadyToInstall.
fn all_hosts_ready(cluster: &ClusterSubject<'_>) -> Verdict {
    let hosts = cluster.snapshot.hosts.iter();
    let mut waiting: Vec<String> = hosts
        .filter(|host| !is_ready(host.record.status))
        .map(|host| format!("{} is {}", host.name(), host.record.status))
        .collect();
    waiting.sort();
    Verdict::of(
        waiting.is_empty(),
        "Every host is ready",
        format_args!(
            "Hosts: {}; fix them or remove them from the cluster",
            waiting.join(", ")
        ),
    )
    .observed(waiting.join(", "))
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

/// Source: assisted-service, internal/cluster/validator.go, SufficientMastersCount.
fn sufficient_masters(cluster: &ClusterSubject<'_>) -> Verdict {
    if cluster.day2 {
        return Verdict::ok("The control plane is installed already");
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
            "Hosts: {masters} can be masters, control_plane_count is {wanted}; add hosts or change their roles"
        ))
        .observed(format_args!("{masters} hosts can be masters"))
        .required(format_args!("{wanted} masters"));
    }
    if cluster.single_node && workers > 0 {
        return Verdict::fail(format!(
            "Hosts: a single node cluster has no workers, but there are {workers}; take them out of the cluster"
        ))
        .observed(format_args!("{workers} workers"))
        .required("no workers in a single node cluster")
        .fix("Take the workers out of the cluster.");
    }
    if wanted == 2 && arbiters != 1 && !roles::is_fenced(cluster.snapshot) {
        return Verdict::fail(format!(
            "Hosts: two masters need one arbiter (there are {arbiters}) or fencing credentials of both; add what is missing"
        ))
        .observed(format_args!("{arbiters} arbiters, no fencing credentials of both masters"))
        .required("one arbiter, or fencing credentials of both masters")
        .fix("Add an arbiter, or fencing credentials of both masters.");
    }
    Verdict::ok(format!("There are {masters} masters and {workers} workers"))
}

/// Source: assisted-service, internal/cluster/validator.go, isNtpServerConfigured.
fn ntp_server_configured(cluster: &ClusterSubject<'_>) -> Verdict {
    const SPREAD_S: i64 = 4 * 60;
    let offsets: Vec<(i64, String)> = cluster
        .snapshot
        .hosts
        .iter()
        .filter(|host| host.record.status != HostStatus::Disconnected)
        .filter_map(|host| Some((clock_offset_s(&host.record)?, host.name())))
        .collect();
    let (Some(first), Some(last)) = (offsets.iter().min(), offsets.iter().max()) else {
        return Verdict::ok("The hosts' clocks agree");
    };
    let spread = last.0.saturating_sub(first.0);
    Verdict::of(
        spread <= SPREAD_S,
        "The hosts' clocks agree",
        format_args!(
            "Clocks: {} is {spread} s ahead of {}, at most {SPREAD_S} s are allowed; set reachable time sources in additional_ntp_source",
            last.1, first.1
        ),
    )
    .observed(format_args!("{} is {spread} s ahead of {}", last.1, first.1))
}

/// Source: assisted-service, internal/cluster/validator.go, platformRequirementsSatisfied.
fn platform_requirements(cluster: &ClusterSubject<'_>) -> Verdict {
    let Some(platform) = &cluster.cluster.platform else {
        return Verdict::ok("No platform integration is configured");
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
                "The user integrates the platform",
                "Platform: an external cloud controller manager requires manifests, but none were added; add them",
            )
            .observed("no manifests of the user")
            .required("manifests of the cloud controller manager")
            .fix("Add the manifests of the cloud controller manager.");
        }
        PlatformType::Baremetal | PlatformType::None => {
            return Verdict::ok(format!(
                "Platform {} supports every machine",
                platform.r#type
            ));
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
        .map(crate::snapshot::host_state::HostState::name)
        .collect();
    Verdict::of(
        strangers.is_empty(),
        format!("Every machine is of {needed}"),
        format_args!(
            "Platform {} needs machines of {needed}; these are not: {}",
            platform.r#type,
            strangers.join(", ")
        ),
    )
    .observed(format_args!(
        "machines of other makers: {}",
        strangers.join(", ")
    ))
    .required(format_args!("machines of {needed}"))
}
