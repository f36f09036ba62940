//! Operator validations of hosts.
//!
//! Every operator has a row, since pages wait for its verdict. An operator that was not chosen passes. A chosen
//! operator whose checks are incomplete here is left out: no verdict is made up.
//! Source: assisted-service, internal/operators/<name>/ (ValidateHost, ValidateCluster, GetHostRequirements).

use model::cluster::Cluster;
use model::host::HostRole;
use model::inventory::{DriveType, Inventory};
use model::validations::{ClusterValidationId as ClusterId, HostValidationId as Id};

use super::subject::{ClusterSubject, HostSubject};
use super::validation::{
    Category, ClusterBlock, ClusterValidation, HostBlock, HostValidation, Unbound,
};
use super::verdict::Verdict;
use crate::disks::minor;

/// Requirements that an operator adds to a host of a role. Units: cores, MiB.
pub type Overhead = fn(&ClusterSubject<'_>, HostRole, &Inventory) -> (i64, i64);
/// Checks a host; the error names the missing part.
pub type HostCheck = fn(&HostSubject<'_>, &Inventory) -> Result<(), String>;

/// An operator that can be chosen.
pub struct SupportedOperator {
    /// Name on the wire.
    pub name: &'static str,
    /// The first platform version that it runs on.
    pub since: (u64, u64),
    /// Cores and MiB on a host of a role.
    pub overhead: Overhead,
    /// Further checks of a host; none when some of the operator's checks are missing here.
    pub host: Option<HostCheck>,
}

/// An operator without requirements on hosts.
const fn simple(name: &'static str) -> SupportedOperator {
    SupportedOperator {
        name,
        since: (4, 8),
        overhead: |_, _, _| (0, 0),
        host: Some(|_, _| Ok(())),
    }
}

const fn since(mut operator: SupportedOperator, version: (u64, u64)) -> SupportedOperator {
    operator.since = version;
    operator
}

/// Marks an operator whose checks are incomplete here.
const fn unjudged(mut operator: SupportedOperator) -> SupportedOperator {
    operator.host = None;
    operator
}

/// Every operator that can be chosen.
pub static OPERATORS: &[SupportedOperator] = &[
    simple("lso"),
    unjudged(simple("odf")),
    SupportedOperator {
        name: "cnv",
        since: (4, 8),
        overhead: |_, role, _| match role {
            HostRole::Worker => (2, 360),
            _ => (4, 150),
        },
        host: None,
    },
    SupportedOperator {
        name: "lvm",
        since: (4, 11),
        overhead: lvm_overhead,
        host: Some(lvm_disk),
    },
    SupportedOperator {
        name: "mce",
        since: (4, 10),
        overhead: |cluster, _, _| {
            if cluster.single_node {
                (8, 32 * 1024)
            } else {
                (4, 16 * 1024)
            }
        },
        host: Some(|_, _| Ok(())),
    },
    SupportedOperator {
        name: "mtv",
        since: (4, 14),
        overhead: |_, _, _| (1, 1024),
        host: Some(|_, _| Ok(())),
    },
    SupportedOperator {
        name: "osc",
        since: (4, 10),
        overhead: |_, _, _| (1, 1024),
        host: Some(|_, _| Ok(())),
    },
    since(simple("nmstate"), (4, 12)),
    simple("node-feature-discovery"),
    unjudged(simple("nvidia-gpu")),
    unjudged(simple("amd-gpu")),
    SupportedOperator {
        name: "kmm",
        since: (4, 8),
        overhead: |_, _, _| (0, 0),
        host: Some(secure_boot_off),
    },
    simple("pipelines"),
    simple("servicemesh"),
    simple("serverless"),
    simple("authorino"),
    unjudged(since(simple("openshift-ai"), (4, 12))),
    simple("node-healthcheck"),
    simple("self-node-remediation"),
    simple("fence-agents-remediation"),
    simple("node-maintenance"),
    simple("kube-descheduler"),
    simple("cluster-observability"),
    simple("numaresources"),
    simple("oadp"),
    simple("metallb"),
    since(simple("loki"), (4, 17)),
    since(simple("openshift-logging"), (4, 17)),
];

/// Requirements of the chosen operators on a host, beside its role's. Units: cores, MiB.
pub(crate) fn overhead(
    cluster: &ClusterSubject<'_>,
    role: HostRole,
    inventory: &Inventory,
) -> (i64, i64) {
    OPERATORS
        .iter()
        .filter(|operator| cluster.operators.contains(operator.name))
        .map(|operator| (operator.overhead)(cluster, role, inventory))
        .fold((0, 0), |sum, more| (sum.0 + more.0, sum.1 + more.1))
}

fn version(cluster: &Cluster) -> (u64, u64) {
    minor(&cluster.openshift_version).unwrap_or((4, u64::MAX))
}

/// Source: assisted-service, internal/operators/lvm/lvm_operator.go, GetHostRequirements.
fn lvm_overhead(cluster: &ClusterSubject<'_>, _: HostRole, _: &Inventory) -> (i64, i64) {
    let mib = match version(cluster.cluster) {
        version if version >= (4, 16) => 100,
        version if version >= (4, 13) => 400,
        _ => 1200,
    };
    (1, mib)
}

/// Source: assisted-service, internal/operators/lvm/lvm_operator.go, ValidateHost.
fn lvm_disk(subject: &HostSubject<'_>, inventory: &Inventory) -> Result<(), String> {
    let installation = &subject.host.record.installation_disk_id;
    let spare = inventory.disks.iter().any(|disk| {
        disk.id != *installation
            && !disk.is_installation_media
            && matches!(disk.drive_type, Some(DriveType::HDD | DriveType::SSD))
    });
    if spare {
        return Ok(());
    }
    Err("Disks: lvm needs an HDD or SSD besides the installation disk; attach one".to_owned())
}

/// Source: assisted-service, internal/operators/kmm/kmm_operator.go, isSecureBootEnabled.
fn secure_boot_off(_: &HostSubject<'_>, inventory: &Inventory) -> Result<(), String> {
    use model::inventory::SecureBootState;
    let state = inventory
        .boot
        .as_ref()
        .and_then(|boot| boot.secure_boot_state);
    if state == Some(SecureBootState::Enabled) {
        return Err(
            "Secure boot: kernel modules built on the host are not signed; disable it".to_owned(),
        );
    }
    Ok(())
}

fn operator(name: &str) -> Option<&'static SupportedOperator> {
    OPERATORS.iter().find(|operator| operator.name == name)
}

/// Judges the requirements of an operator on a host.
fn judge(subject: &HostSubject<'_>, name: &'static str) -> Verdict {
    let cluster = match subject.cluster() {
        Ok(cluster) => cluster,
        Err(verdict) => return verdict,
    };
    if cluster.day2 || !cluster.operators.contains(name) {
        return Verdict::ok(format!("Operator {name} is not chosen"));
    }
    let Some(check) = operator(name).and_then(|operator| operator.host) else {
        return Verdict::Hidden;
    };
    let inventory = match subject.inventory() {
        Ok(inventory) => inventory,
        Err(pending) => return pending,
    };
    match check(subject, inventory) {
        Ok(()) => Verdict::ok(format!("The host has what operator {name} needs")),
        Err(problem) => Verdict::fail(problem),
    }
}

/// Judges the requirements of an operator on a cluster.
pub(super) fn judge_cluster(cluster: &ClusterSubject<'_>, name: &'static str) -> Verdict {
    if cluster.day2 || !cluster.operators.contains(name) {
        return Verdict::ok(format!("Operator {name} is not chosen"));
    }
    let Some(operator) = operator(name).filter(|operator| operator.host.is_some()) else {
        return Verdict::Hidden;
    };
    let has = version(cluster.cluster);
    let (major, minor) = operator.since;
    if has < operator.since {
        return Verdict::fail(format!(
            "Operator {name} needs version {major}.{minor} or later, the cluster's is {}; choose a later version or leave the operator out",
            cluster.cluster.openshift_version
        ));
    }
    if name == "lvm" && !cluster.single_node && has < (4, 15) {
        return Verdict::fail(
            "Operator lvm needs version 4.15 or later on more than one host; choose a later version or leave it out",
        );
    }
    Verdict::ok(format!("The cluster has what operator {name} needs"))
}

macro_rules! rows {
    ($($variant:ident = $name:literal,)*) => {
        /// Validations of the operators group.
        pub static VALIDATIONS: &[HostValidation] = &[$(HostValidation {
            id: Id::$variant,
            category: Category::Operators,
            blocks: HostBlock::Sufficient,
            unbound: Unbound::Hidden,
            check: |subject| judge(subject, $name),
            doc: concat!("Host requirements of operator ", $name, "."),
        },)*];

        /// The same operators' validations of clusters.
        pub(super) static CLUSTER_ROWS: &[ClusterValidation] = &[$(ClusterValidation {
            id: ClusterId::$variant,
            category: Category::Operators,
            blocks: ClusterBlock::Install,
            check: |cluster| judge_cluster(cluster, $name),
            doc: concat!("Cluster requirements of operator ", $name, "."),
        },)*];
    };
}

rows! {
    LsoRequirementsSatisfied = "lso",
    OdfRequirementsSatisfied = "odf",
    CnvRequirementsSatisfied = "cnv",
    LvmRequirementsSatisfied = "lvm",
    MceRequirementsSatisfied = "mce",
    MtvRequirementsSatisfied = "mtv",
    OscRequirementsSatisfied = "osc",
    NmstateRequirementsSatisfied = "nmstate",
    NodeFeatureDiscoveryRequirementsSatisfied = "node-feature-discovery",
    NvidiaGpuRequirementsSatisfied = "nvidia-gpu",
    AmdGpuRequirementsSatisfied = "amd-gpu",
    KmmRequirementsSatisfied = "kmm",
    PipelinesRequirementsSatisfied = "pipelines",
    ServicemeshRequirementsSatisfied = "servicemesh",
    ServerlessRequirementsSatisfied = "serverless",
    AuthorinoRequirementsSatisfied = "authorino",
    OpenshiftAiRequirementsSatisfied = "openshift-ai",
    NodeHealthcheckRequirementsSatisfied = "node-healthcheck",
    SelfNodeRemediationRequirementsSatisfied = "self-node-remediation",
    FenceAgentsRemediationRequirementsSatisfied = "fence-agents-remediation",
    NodeMaintenanceRequirementsSatisfied = "node-maintenance",
    KubeDeschedulerRequirementsSatisfied = "kube-descheduler",
    ClusterObservabilityRequirementsSatisfied = "cluster-observability",
    NumaResourcesRequirementsSatisfied = "numaresources",
    OadpRequirementsSatisfied = "oadp",
    MetallbRequirementsSatisfied = "metallb",
    LokiRequirementsSatisfied = "loki",
    OpenshiftLoggingRequirementsSatisfied = "openshift-logging",
}
