//! Checks of chosen operators, and the resources that they add to hosts, as a table by operator.
//!
//! Operators without a row check the platform's version and architecture alone.
//! Source: assisted-service, internal/operators/<name>/ (ValidateHost, ValidateCluster, GetHostRequirements).

use model::host::HostRole;
use model::inventory::{Gpu, Inventory, SecureBootState};

use super::subject::{ClusterSubject, HostSubject, INVENTORY};
use super::verdict::Verdict;
use crate::host_state::HostState;
use crate::operators::{
    HostResources, ODF_DISK_GB, ODF_DISKS, ODF_HOSTS, OdfMode, has_known_role, requirements,
    spare_disks, spare_disks_of,
};
use crate::roles;
use crate::support::MinorVersion;

/// Checks of one operator. A check that returns none passes.
pub(super) struct OperatorChecks {
    name: &'static str,
    /// Check of a host, with its inventory.
    pub(super) host: fn(&HostSubject<'_>, &ClusterSubject<'_>, &Inventory) -> Option<Verdict>,
    /// Check of a cluster.
    pub(super) cluster: fn(&ClusterSubject<'_>) -> Option<Verdict>,
}

const fn row(name: &'static str) -> OperatorChecks {
    OperatorChecks {
        name,
        host: |_, _, _| None,
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
        host: |_, _, inventory| secure_boot_off(inventory),
        ..row("kmm")
    },
    OperatorChecks {
        host: |_, _, inventory| drivers_load(inventory, &NVIDIA),
        cluster: |cluster| has_gpu(cluster, &NVIDIA),
        ..row("nvidia-gpu")
    },
    OperatorChecks {
        host: |_, _, inventory| drivers_load(inventory, &AMD),
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

/// Version of a cluster; clusters without a readable one count as the latest.
pub(super) fn version(cluster: &ClusterSubject<'_>) -> MinorVersion {
    let parsed = cluster.cluster.openshift_version.parse();
    parsed.unwrap_or(MinorVersion::four(u64::MAX))
}

/// Resources that an operator takes from a host of a role.
pub(super) fn overhead(
    name: &str,
    cluster: &ClusterSubject<'_>,
    host: &HostState,
    role: HostRole,
) -> HostResources {
    let Some(row) = requirements(name, version(cluster)) else {
        return HostResources::default();
    };
    let base = row.role(role, cluster.single_node);
    let inventory = host.inventory.as_ref();
    match name {
        "odf" => odf_resources(cluster, host, role, row),
        "cnv" => HostResources {
            mib: base.mib + device_memory(cluster, role, inventory),
            ..base
        },
        // Without workloads on the control plane, its hosts hold no volumes.
        "lvm" if is_unschedulable(cluster, role) => HostResources::default(),
        "openshift-ai" if role == HostRole::AutoAssign => HostResources::default(),
        _ => base,
    }
}

fn is_unschedulable(cluster: &ClusterSubject<'_>, role: HostRole) -> bool {
    let is_master = matches!(role, HostRole::Master | HostRole::Bootstrap);
    is_master && !cluster.single_node && roles::workers(cluster.snapshot) >= SCHEDULABLE_BELOW
}

/// Number of workers from which masters run no workloads.
/// Source: assisted-service, internal/common/common.go, ShouldMastersBeSchedulable.
const SCHEDULABLE_BELOW: usize = 2;

fn odf_resources(
    cluster: &ClusterSubject<'_>,
    host: &HostState,
    role: HostRole,
    row: &crate::operators::OperatorRequirements,
) -> HostResources {
    let mode = OdfMode::of(cluster.snapshot).filter(|mode| mode.uses(role));
    let Some(mode) = mode.filter(|_| has_known_role(cluster.snapshot, &host.record)) else {
        return HostResources::default();
    };
    let base = match mode {
        OdfMode::Compact => row.master,
        OdfMode::Standard => row.worker,
    };
    let disks = host.inventory.as_ref().map_or(0, |inventory| {
        spare_disks_of(&host.record, inventory, ODF_DISK_GB)
    });
    let more = mode.disk_resources(disks);
    HostResources {
        cores: base.cores.saturating_add(more.cores),
        mib: base.mib.saturating_add(more.mib),
    }
}

/// GPUs (vendor:device) that virtual machines can use. Source: assisted-service, CNV_SUPPORTED_GPUS.
const PASSED_GPUS: &[&str] = &["10de:1db6", "10de:1eb8"];
/// Network cards (vendor:device). Source: assisted-service, CNV_SUPPORTED_SRIOV_NICS.
const PASSED_NICS: &[&str] = &[
    "8086:158b",
    "15b3:1015",
    "15b3:1017",
    "15b3:1013",
    "15b3:101b",
];
/// Memory for each device that virtual machines can use. Units: MiB.
const DEVICE_MIB: i64 = 1024;

/// Memory for the devices of a host that runs virtual machines. Units: MiB.
fn device_memory(
    cluster: &ClusterSubject<'_>,
    role: HostRole,
    inventory: Option<&Inventory>,
) -> i64 {
    let runs_machines =
        cluster.single_node || matches!(role, HostRole::Worker | HostRole::AutoAssign);
    let Some(inventory) = inventory.filter(|_| runs_machines) else {
        return 0;
    };
    let bare = |id: &str| {
        let id = id.to_ascii_lowercase();
        id.strip_prefix("0x").unwrap_or(&id).to_owned()
    };
    let key = |vendor: &str, device: &str| format!("{}:{}", bare(vendor), bare(device));
    let gpus = inventory.gpus.iter();
    let gpus = gpus.filter(|gpu| PASSED_GPUS.contains(&&*key(&gpu.vendor_id, &gpu.device_id)));
    let nics = inventory.interfaces.iter();
    let nics = nics.filter(|nic| PASSED_NICS.contains(&&*key(&nic.vendor, &nic.product)));
    let devices = gpus.count() + nics.count();
    i64::try_from(devices)
        .unwrap_or(i64::MAX)
        .saturating_mul(DEVICE_MIB)
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

fn odf_host(
    subject: &HostSubject<'_>,
    cluster: &ClusterSubject<'_>,
    inventory: &Inventory,
) -> Option<Verdict> {
    let host = &subject.host.record;
    if !has_known_role(cluster.snapshot, host) {
        return Some(Verdict::wait(
            "roles: odf assigns them only in clusters of three hosts; choose master or worker",
        ));
    }
    let mode = OdfMode::of(cluster.snapshot)?;
    if !mode.uses(host.role.unwrap_or_default()) {
        return None;
    }
    let size = ODF_DISK_GB + more_disk_gb(cluster);
    (spare_disks_of(host, inventory, size) == 0).then(|| {
        Verdict::fail(format!(
            "Disks: odf needs an HDD or SSD of {size} GB or more besides the installation disk; attach one"
        ))
    })
}

fn odf_cluster(cluster: &ClusterSubject<'_>) -> Option<Verdict> {
    let Some(mode) = OdfMode::of(cluster.snapshot) else {
        return Some(Verdict::fail(
            "Roles: odf needs three workers or more, or none; change the roles of hosts, or their number",
        ));
    };
    let holders = cluster.snapshot.hosts.iter().filter(|host| {
        mode.uses(roles::effective_role(&host.record))
            && has_known_role(cluster.snapshot, &host.record)
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
    })
}

/// Releases of platform 4 in which virtual machines of a single node need a disk of their own, and its size.
/// Units: bytes.
const HOST_PATH_RELEASES: std::ops::Range<u64> = 10..12;
const HOST_PATH_BYTES: i64 = 50 << 30;

fn virtual_machines(
    subject: &HostSubject<'_>,
    cluster: &ClusterSubject<'_>,
    inventory: &Inventory,
) -> Option<Verdict> {
    let cpu = inventory.cpu.as_ref();
    let can_virtualize = cpu.is_some_and(|cpu| {
        let mut flags = cpu.flags.iter();
        flags.any(|flag| flag == "vmx" || flag == "svm") || cpu.architecture == "aarch64"
    });
    if !can_virtualize {
        return Some(Verdict::fail(
            "CPU: cnv needs virtualization (vmx or svm); enable it in the firmware",
        ));
    }
    let has = version(cluster);
    let needs_disk = cluster.single_node
        && has >= MinorVersion::four(HOST_PATH_RELEASES.start)
        && has < MinorVersion::four(HOST_PATH_RELEASES.end);
    let mut disks = spare_disks(&subject.host.record, inventory);
    if needs_disk && !disks.any(|disk| disk.size_bytes > HOST_PATH_BYTES) {
        return Some(Verdict::fail(
            "Disks: cnv on a single node needs an HDD or SSD of more than 50 GiB besides the installation disk; attach one",
        ));
    }
    subject
        .role()
        .is_none()
        .then(|| Verdict::fail("Role: cnv needs a role for every host; choose master or worker"))
}

fn logical_volumes(
    subject: &HostSubject<'_>,
    cluster: &ClusterSubject<'_>,
    inventory: &Inventory,
) -> Option<Verdict> {
    let role = subject.role().unwrap_or_default();
    if role == HostRole::Arbiter || is_unschedulable(cluster, role) {
        return None;
    }
    let workers = roles::workers(cluster.snapshot);
    if role == HostRole::AutoAssign && !cluster.single_node && workers >= SCHEDULABLE_BELOW {
        return Some(Verdict::fail(
            "Role: lvm needs a role for the host; choose master or worker",
        ));
    }
    let size = more_disk_gb(cluster);
    (spare_disks_of(&subject.host.record, inventory, size) == 0).then(|| {
        let least = if size > 0 {
            format!(" of {size} GB or more")
        } else {
            String::new()
        };
        Verdict::fail(format!(
            "Disks: lvm needs an HDD or SSD{least} besides the installation disk; attach one"
        ))
    })
}

fn logical_volume_version(cluster: &ClusterSubject<'_>) -> Option<Verdict> {
    let is_late = version(cluster) >= MinorVersion::four(15);
    (!cluster.single_node && !is_late).then(|| {
        Verdict::fail(
            "Operator lvm needs version 4.15 or later on more than one host; choose a later version or leave it out",
        )
    })
}

/// A vendor of GPUs: its name, and its PCI id.
struct GpuVendor {
    name: &'static str,
    id: &'static str,
}

const NVIDIA: GpuVendor = GpuVendor {
    name: "NVIDIA",
    id: "10de",
};
const AMD: GpuVendor = GpuVendor {
    name: "AMD",
    id: "1002",
};

impl GpuVendor {
    fn made(&self, gpu: &Gpu) -> bool {
        gpu.vendor_id.eq_ignore_ascii_case(self.id)
    }
}

fn secure_boot_off(inventory: &Inventory) -> Option<Verdict> {
    let boot = inventory.boot.as_ref();
    let state = boot.and_then(|boot| boot.secure_boot_state);
    (state == Some(SecureBootState::Enabled)).then(|| {
        Verdict::fail(
            "Secure boot: kernel modules built on the host are not signed; disable it in the firmware",
        )
    })
}

fn drivers_load(inventory: &Inventory, vendor: &GpuVendor) -> Option<Verdict> {
    let mut gpus = inventory.gpus.iter();
    if gpus.any(|gpu| vendor.made(gpu)) {
        secure_boot_off(inventory)
    } else {
        None
    }
}

/// Some host that runs workloads has a GPU of the vendor.
fn has_gpu(cluster: &ClusterSubject<'_>, vendor: &GpuVendor) -> Option<Verdict> {
    let chosen = cluster.cluster.schedulable_masters == Some(true);
    let hosts = cluster.snapshot.hosts.iter().filter(|host| {
        let role = host.record.role.unwrap_or_default();
        role != HostRole::Arbiter && (chosen || !is_unschedulable(cluster, role))
    });
    let inventories = hosts.filter_map(|host| host.inventory.as_ref());
    let mut gpus = inventories.flat_map(|inventory| &inventory.gpus);
    (!gpus.any(|gpu| vendor.made(gpu))).then(|| {
        Verdict::fail(format!(
            "GPU: no host that runs workloads has one of {} ({}); add such a host or leave the operator out",
            vendor.name, vendor.id
        ))
    })
}

/// Least number of workers for AI workloads.
const AI_WORKERS: usize = 2;

fn enough_workers(cluster: &ClusterSubject<'_>) -> Option<Verdict> {
    let workers = roles::workers(cluster.snapshot);
    (!cluster.single_node && workers < AI_WORKERS).then(|| {
        Verdict::fail(format!(
            "Roles: openshift-ai needs {AI_WORKERS} workers, the cluster has {workers}; add workers"
        ))
    })
}
