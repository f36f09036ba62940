//! Virtual machines: the CPU, devices that machines can use, and the disk of a single node.

use model::host::HostRole;

use super::super::subject::ClusterSubject;
use super::super::verdict::Verdict;
use super::host::{OperatorHost, version};
use crate::operators::spare_disks;
use crate::operators::support::MinorVersion;

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
pub(super) fn device_memory(cluster: &ClusterSubject<'_>, host: &OperatorHost<'_>) -> i64 {
    let is_worker = matches!(host.role, HostRole::Worker | HostRole::AutoAssign);
    if !cluster.single_node && !is_worker {
        return 0;
    }
    let bare = |id: &str| {
        let id = id.to_ascii_lowercase();
        id.strip_prefix("0x").unwrap_or(&id).to_owned()
    };
    let key = |vendor: &str, device: &str| format!("{}:{}", bare(vendor), bare(device));
    let gpus = host.inventory.gpus.iter();
    let gpus = gpus.filter(|gpu| PASSED_GPUS.contains(&&*key(&gpu.vendor_id, &gpu.device_id)));
    let nics = host.inventory.interfaces.iter();
    let nics = nics.filter(|nic| PASSED_NICS.contains(&&*key(&nic.vendor, &nic.product)));
    let devices = gpus.count() + nics.count();
    i64::try_from(devices)
        .unwrap_or(i64::MAX)
        .saturating_mul(DEVICE_MIB)
}

/// Releases of platform 4 in which virtual machines of a single node need a disk of their own, and its size.
/// Units: bytes.
const HOST_PATH_RELEASES: std::ops::Range<u64> = 10..12;
const HOST_PATH_BYTES: i64 = 50 << 30;

pub(super) fn virtual_machines(
    host: &OperatorHost<'_>,
    cluster: &ClusterSubject<'_>,
) -> Option<Verdict> {
    let cpu = host.inventory.cpu.as_ref();
    let can_virtualize = cpu.is_some_and(|cpu| {
        let mut flags = cpu.flags.iter();
        flags.any(|flag| flag == "vmx" || flag == "svm") || cpu.architecture == "aarch64"
    });
    if !can_virtualize {
        return Some(
            Verdict::fail("CPU: cnv needs virtualization (vmx or svm); enable it in the firmware")
                .observed("no virtualization")
                .required("virtualization (vmx or svm)"),
        );
    }
    let has = version(cluster);
    let needs_disk = cluster.single_node
        && has >= MinorVersion::four(HOST_PATH_RELEASES.start)
        && has < MinorVersion::four(HOST_PATH_RELEASES.end);
    let mut disks = spare_disks(host.record, host.inventory);
    if needs_disk && !disks.any(|disk| disk.size_bytes > HOST_PATH_BYTES) {
        return Some(Verdict::fail(
            "Disks: cnv on a single node needs an HDD or SSD of more than 50 GiB besides the installation disk; attach one",
        )
        .observed("no such disk")
        .required("an HDD or SSD of more than 50 GiB"));
    }
    (host.role == HostRole::AutoAssign).then(|| {
        Verdict::fail("Role: cnv needs a role for every host; choose master or worker")
            .observed("role auto-assign")
            .required("role master or worker")
    })
}
