//! Drivers: GPUs of a vendor, and secure boot, which refuses drivers that are built on the host.

use model::host::HostRole;
use model::inventory::{Gpu, Inventory, SecureBootState};

use super::super::subject::ClusterSubject;
use super::super::verdict::Verdict;
use super::host::is_unschedulable;

/// A vendor of GPUs: its name, and its PCI id.
pub(super) struct GpuVendor {
    name: &'static str,
    id: &'static str,
}

pub(super) const NVIDIA: GpuVendor = GpuVendor {
    name: "NVIDIA",
    id: "10de",
};
pub(super) const AMD: GpuVendor = GpuVendor {
    name: "AMD",
    id: "1002",
};

impl GpuVendor {
    fn made(&self, gpu: &Gpu) -> bool {
        gpu.vendor_id.eq_ignore_ascii_case(self.id)
    }
}

pub(super) fn secure_boot_off(inventory: &Inventory) -> Option<Verdict> {
    let boot = inventory.boot.as_ref();
    let state = boot.and_then(|boot| boot.secure_boot_state.as_ref());
    (state == Some(&SecureBootState::Enabled.into())).then(|| {
        Verdict::fail(
            "Secure boot: kernel modules built on the host are not signed; disable it in the firmware",
        )
        .observed("secure boot is enabled")
        .required("secure boot is disabled")
    })
}

pub(super) fn drivers_load(inventory: &Inventory, vendor: &GpuVendor) -> Option<Verdict> {
    let mut gpus = inventory.gpus.iter();
    if gpus.any(|gpu| vendor.made(gpu)) {
        secure_boot_off(inventory)
    } else {
        None
    }
}

/// Some host that runs workloads has a GPU of the vendor.
pub(super) fn has_gpu(cluster: &ClusterSubject<'_>, vendor: &GpuVendor) -> Option<Verdict> {
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
        .observed("no such GPU on hosts that run workloads")
        .required(format_args!("a GPU of {} ({})", vendor.name, vendor.id))
    })
}
