//! Data disks: ODF (OpenShift Data Foundation) and logical volumes.

use model::host::HostRole;

use super::super::subject::{ClusterSubject, INVENTORY};
use super::super::verdict::Verdict;
use super::host::{OperatorHost, SCHEDULABLE_BELOW, is_unschedulable, version};
use crate::operators::support::MinorVersion;
use crate::operators::{
    HostResources, ODF_DISK_GB, ODF_DISKS, ODF_HOSTS, OdfMode, OperatorRequirements,
    has_known_role, spare_disks_of,
};
use crate::snapshot::roles;

/// Resources that ODF takes from a host that holds its data.
pub(super) fn odf_resources(
    cluster: &ClusterSubject<'_>,
    host: &OperatorHost<'_>,
    row: &OperatorRequirements,
) -> HostResources {
    let mode = OdfMode::of(cluster.snapshot).filter(|mode| mode.uses(host.role));
    let Some(mode) = mode.filter(|_| has_known_role(cluster.snapshot, host.given_role)) else {
        return HostResources::default();
    };
    let base = match mode {
        OdfMode::Compact => row.master,
        OdfMode::Standard => row.worker,
    };
    let disks = spare_disks_of(host.record, host.inventory, ODF_DISK_GB);
    let more = mode.disk_resources(disks);
    HostResources {
        cores: base.cores.saturating_add(more.cores),
        mib: base.mib.saturating_add(more.mib),
    }
}

/// Size that a service of multicluster engine takes on the largest volume, and all of them together. Units: GB.
/// Source: assisted-service, internal/operators/mce/mce_operator.go, GetMinDiskSizeGB.
const MCE_VOLUME_GB: (i64, i64) = (50, 70);

/// Size that further operators need on a data disk. Units: GB.
fn more_disk_gb(cluster: &ClusterSubject<'_>) -> i64 {
    match cluster.operators.contains("mce") {
        true if cluster.single_node => MCE_VOLUME_GB.1,
        true => MCE_VOLUME_GB.0,
        false => 0,
    }
}

pub(super) fn odf_host(host: &OperatorHost<'_>, cluster: &ClusterSubject<'_>) -> Option<Verdict> {
    if !has_known_role(cluster.snapshot, host.given_role) {
        return Some(Verdict::wait(
            "roles: odf assigns them only in clusters of three hosts; choose master or worker",
        ));
    }
    let mode = OdfMode::of(cluster.snapshot)?;
    if !mode.uses(host.given_role) {
        return None;
    }
    let size = ODF_DISK_GB + more_disk_gb(cluster);
    (spare_disks_of(host.record, host.inventory, size) == 0).then(|| {
        Verdict::fail(format!(
            "Disks: odf needs an HDD or SSD of {size} GB or more besides the installation disk; attach one"
        ))
        .observed("no such disk")
        .required(format_args!("an HDD or SSD of {size} GB or more"))
    })
}

pub(super) fn odf_cluster(cluster: &ClusterSubject<'_>) -> Option<Verdict> {
    let Some(mode) = OdfMode::of(cluster.snapshot) else {
        return Some(Verdict::fail(
            "Roles: odf needs three workers or more, or none; change the roles of hosts, or their number",
        )
        .observed(format_args!("{} workers", roles::workers(cluster.snapshot)))
        .required("three workers or more, or none"));
    };
    let holders = cluster.snapshot.hosts.iter().filter(|host| {
        let given = host.record.role.unwrap_or_default();
        mode.uses(roles::effective_role(&host.record)) && has_known_role(cluster.snapshot, given)
    });
    let mut counts = Vec::new();
    for host in holders {
        let Some(inventory) = &host.inventory else {
            return Some(Verdict::wait(format!("{INVENTORY} of {}", host.name())));
        };
        counts.push(spare_disks_of(&host.record, inventory, ODF_DISK_GB));
    }
    let hosts = counts.iter().filter(|count| **count > 0).count();
    let disks: usize = counts.iter().sum();
    (hosts < ODF_HOSTS || disks < ODF_DISKS).then(|| {
        Verdict::fail(format!(
            "Disks: {hosts} hosts have {disks} disks for odf, which needs {ODF_HOSTS} hosts with an HDD or SSD of \
             {ODF_DISK_GB} GB or more besides the installation disk; attach disks"
        ))
        .observed(format_args!("{disks} disks on {hosts} hosts"))
        .required(format_args!(
            "{ODF_DISKS} disks of {ODF_DISK_GB} GB or more on {ODF_HOSTS} hosts"
        ))
    })
}

pub(super) fn logical_volumes(
    host: &OperatorHost<'_>,
    cluster: &ClusterSubject<'_>,
) -> Option<Verdict> {
    let role = host.role;
    if role == HostRole::Arbiter || is_unschedulable(cluster, role) {
        return None;
    }
    let workers = roles::workers(cluster.snapshot);
    if role == HostRole::AutoAssign && !cluster.single_node && workers >= SCHEDULABLE_BELOW {
        return Some(
            Verdict::fail("Role: lvm needs a role for the host; choose master or worker")
                .observed("role auto-assign")
                .required("role master or worker"),
        );
    }
    let size = more_disk_gb(cluster);
    (spare_disks_of(host.record, host.inventory, size) == 0).then(|| {
        let least = if size > 0 {
            format!(" of {size} GB or more")
        } else {
            String::new()
        };
        Verdict::fail(format!(
            "Disks: lvm needs an HDD or SSD{least} besides the installation disk; attach one"
        ))
        .observed("no such disk")
        .required(format_args!("an HDD or SSD{least}"))
    })
}

pub(super) fn logical_volume_version(cluster: &ClusterSubject<'_>) -> Option<Verdict> {
    let is_late = version(cluster) >= MinorVersion::four(15);
    (!cluster.single_node && !is_late).then(|| {
        Verdict::fail(
            "Operator lvm needs version 4.15 or later on more than one host; choose a later version or leave it out",
        )
        .observed(format_args!("version {}", cluster.cluster.openshift_version))
        .required("version 4.15 or later")
    })
}
