//! Checks of chosen operators, and the resources that they add to hosts, as a table by operator.
//!
//! Operators without a row check the platform's version and architecture alone.
//! Source: assisted-service, internal/operators/<name>/ (ValidateHost, ValidateCluster, GetHostRequirements).

mod gpus;
mod host;
mod storage;
mod virtual_machines;

use model::host::HostRole;

use self::gpus::{AMD, NVIDIA, drivers_load, has_gpu, secure_boot_off};
use self::host::is_unschedulable;
use self::storage::{
    logical_volume_version, logical_volumes, odf_cluster, odf_host, odf_resources,
};
use self::virtual_machines::{device_memory, virtual_machines};
use super::subject::ClusterSubject;
use super::verdict::Verdict;
use crate::operators::{HostResources, requirements};
use crate::snapshot::roles;

pub(super) use host::{OperatorHost, version};

/// Checks of one operator. A check that returns none passes.
pub(super) struct OperatorChecks {
    name: &'static str,
    /// Check of a host.
    pub(super) host: fn(&OperatorHost<'_>, &ClusterSubject<'_>) -> Option<Verdict>,
    /// Check of a cluster.
    pub(super) cluster: fn(&ClusterSubject<'_>) -> Option<Verdict>,
}

const fn row(name: &'static str) -> OperatorChecks {
    OperatorChecks {
        name,
        host: |_, _| None,
        cluster: |_| None,
    }
}

static CHECKS: &[OperatorChecks] = &[
    OperatorChecks {
        host: odf_host,
        cluster: odf_cluster,
        ..row("odf")
    },
    OperatorChecks {
        host: virtual_machines,
        ..row("cnv")
    },
    OperatorChecks {
        host: logical_volumes,
        cluster: logical_volume_version,
        ..row("lvm")
    },
    OperatorChecks {
        host: |host, _| secure_boot_off(host.inventory),
        ..row("kmm")
    },
    OperatorChecks {
        host: |host, _| drivers_load(host.inventory, &NVIDIA),
        cluster: |cluster| has_gpu(cluster, &NVIDIA),
        ..row("nvidia-gpu")
    },
    OperatorChecks {
        host: |host, _| drivers_load(host.inventory, &AMD),
        cluster: |cluster| has_gpu(cluster, &AMD),
        ..row("amd-gpu")
    },
    OperatorChecks {
        cluster: enough_workers,
        ..row("openshift-ai")
    },
];

/// The checks of an operator, if it has any.
pub(super) fn checks(name: &str) -> Option<&'static OperatorChecks> {
    CHECKS.iter().find(|row| row.name == name)
}

/// Resources that an operator takes from a host.
pub(super) fn overhead(
    name: &str,
    cluster: &ClusterSubject<'_>,
    host: &OperatorHost<'_>,
) -> HostResources {
    let Some(row) = requirements(name, version(cluster)) else {
        return HostResources::default();
    };
    let base = row.role(host.role, cluster.single_node);
    match name {
        "odf" => odf_resources(cluster, host, row),
        "cnv" => HostResources {
            mib: base.mib + device_memory(cluster, host),
            ..base
        },
        // Without workloads on the control plane, its hosts hold no volumes.
        "lvm" if is_unschedulable(cluster, host.role) => HostResources::default(),
        "openshift-ai" if host.role == HostRole::AutoAssign => HostResources::default(),
        _ => base,
    }
}

/// Least number of workers for AI workloads.
const AI_WORKERS: usize = 2;

fn enough_workers(cluster: &ClusterSubject<'_>) -> Option<Verdict> {
    let workers = roles::workers(cluster.snapshot);
    (!cluster.single_node && workers < AI_WORKERS).then(|| {
        Verdict::fail(format!(
            "Roles: openshift-ai needs {AI_WORKERS} workers, the cluster has {workers}; add workers"
        ))
        .observed(format_args!("{workers} workers"))
        .required(format_args!("{AI_WORKERS} workers"))
    })
}
