//! Operator validations of hosts and clusters.
//!
//! Every operator has a row, since pages wait for its verdict. An operator that was not chosen passes.
//! Source: assisted-service, internal/operators/manager.go (ValidateHost, ValidateCluster).

use model::host::{Host, HostRole};
use model::inventory::Inventory;
use model::validations::{ClusterValidationId as ClusterId, HostValidationId as Id};

use super::operator_checks::{self, OperatorHost, checks, version};
use super::subject::{ClusterSubject, HostSubject};
use super::validation::{
    Category, ClusterBlock, ClusterValidation, HostBlock, HostValidation, Unbound,
};
use super::verdict::Verdict;
use crate::hardware::requirements::usable_mib;
use crate::operators::support::feature;
use crate::operators::{HostResources, operator};

/// Resources that the chosen operators take from a host, by its given or suggested role.
pub(crate) fn overhead(
    cluster: &ClusterSubject<'_>,
    record: &Host,
    inventory: &Inventory,
) -> HostResources {
    // A day-2 cluster has its operators already.
    let chosen = cluster.operators.iter().filter(|_| !cluster.day2);
    let host = OperatorHost::new(record, inventory);
    total(chosen.map(|name| operator_checks::overhead(name, cluster, &host)))
}

fn total(each: impl Iterator<Item = HostResources>) -> HostResources {
    each.fold(HostResources::default(), |sum, one| HostResources {
        cores: sum.cores.saturating_add(one.cores),
        mib: sum.mib.saturating_add(one.mib),
    })
}

/// Operators that take part in the assignment of masters. The needs of logical volumes depend on its result: the
/// assignment would never settle.
/// Source: assisted-service, internal/host/host.go, selectRole.
fn assigns(name: &str) -> bool {
    name != "lvm"
}

/// Resources that a host would need as a master besides the platform's; none if an operator does not run on it.
pub(crate) fn master_overhead(
    cluster: &ClusterSubject<'_>,
    record: &Host,
    inventory: &Inventory,
) -> Option<HostResources> {
    let host = OperatorHost::new(record, inventory).with_role(HostRole::Master);
    let chosen = || cluster.operators.iter().filter(|name| assigns(name));
    let runs = |name: &&str| {
        let row = checks(name).filter(|_| matches!(*name, "odf" | "cnv"));
        row.is_none_or(|row| (row.host)(&host, cluster).is_none())
    };
    if !chosen().all(runs) {
        return None;
    }
    Some(total(
        chosen().map(|name| operator_checks::overhead(name, cluster, &host)),
    ))
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
    let inventory = match subject.inventory() {
        Ok(inventory) => inventory,
        Err(pending) => return pending,
    };
    let host = OperatorHost::new(&subject.host.record, inventory);
    checks(name)
        .and_then(|row| (row.host)(&host, cluster))
        .or_else(|| too_small(&host, cluster, name))
        .unwrap_or_else(|| Verdict::ok(format!("The host has what operator {name} needs")))
}

/// Whether the operator alone needs more than the host has.
fn too_small(
    host: &OperatorHost<'_>,
    cluster: &ClusterSubject<'_>,
    name: &'static str,
) -> Option<Verdict> {
    let needs = operator_checks::overhead(name, cluster, host);
    let cores = host.inventory.cpu.as_ref().map_or(0, |cpu| cpu.count);
    if cores < needs.cores {
        return Some(Verdict::fail(format!(
            "CPU: operator {name} needs {} cores, the host has {cores}; add cores or leave the operator out",
            needs.cores
        ))
        .observed(format_args!("{cores} CPU cores"))
        .required(format_args!("{} CPU cores", needs.cores)));
    }
    let mib = usable_mib(host.inventory);
    (mib < needs.mib).then(|| {
        Verdict::fail(format!(
            "Memory: operator {name} needs {} MiB, the host has {mib} MiB; add memory or leave the operator out",
            needs.mib
        ))
        .observed(format_args!("{mib} MiB of memory"))
        .required(format_args!("{} MiB of memory", needs.mib))
    })
}

/// Judges the requirements of an operator on a cluster.
pub(super) fn judge_cluster(cluster: &ClusterSubject<'_>, name: &'static str) -> Verdict {
    if cluster.day2 || !cluster.operators.contains(name) {
        return Verdict::ok(format!("Operator {name} is not chosen"));
    }
    unsupported(cluster, name)
        .or_else(|| (checks(name)?.cluster)(cluster))
        .unwrap_or_else(|| Verdict::ok(format!("The cluster has what operator {name} needs")))
}

/// Whether the version or the architecture of a cluster does not have the operator.
fn unsupported(cluster: &ClusterSubject<'_>, name: &'static str) -> Option<Verdict> {
    let row = operator(name).and_then(|operator| feature(operator.feature))?;
    let architecture = cluster.cluster.cpu_architecture.unwrap_or_default();
    let found = row.availability(version(cluster), architecture, None);
    (!found.is_usable()).then(|| {
        Verdict::fail(format!(
            "Operator {name} is not available on {architecture} in version {}; choose a later version or leave it out",
            cluster.cluster.openshift_version
        ))
        .observed(format_args!(
            "version {} on {architecture}",
            cluster.cluster.openshift_version
        ))
        .required(format_args!("a version that has operator {name}"))
    })
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
            required: concat!("a host that operator ", $name, " runs on"),
            fix: concat!("Change the host as required, or leave operator ", $name, " out."),
        },)*];

        /// The same operators' validations of clusters.
        pub(super) static CLUSTER_ROWS: &[ClusterValidation] = &[$(ClusterValidation {
            id: ClusterId::$variant,
            category: Category::Operators,
            blocks: ClusterBlock::Install,
            check: |cluster| judge_cluster(cluster, $name),
            doc: concat!("Cluster requirements of operator ", $name, "."),
            required: concat!("a cluster that operator ", $name, " runs on"),
            fix: concat!("Change the cluster as required, or leave operator ", $name, " out."),
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
