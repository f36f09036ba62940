//! Vendor, product and serial number of the machine.
//!
//! Source: assisted-installer-agent, src/inventory/system_vendor.go; systemd-detect-virt.

use model::inventory::SystemVendor;

use crate::HostFiles;

/// The text of a member that the firmware does not have. Source: the library ghw.
pub(super) const UNKNOWN: &str = "unknown";

/// Beginnings of vendors of virtual machines, where processors have no flag that says so.
const VIRTUAL_VENDORS: [&str; 14] = [
    "KVM",
    "OpenStack",
    "KubeVirt",
    "Amazon EC2",
    "QEMU",
    "VMware",
    "VMW",
    "innotek GmbH",
    "VirtualBox",
    "Xen",
    "Bochs",
    "Parallels",
    "BHYVE",
    "Google Compute Engine",
];

/// A member of the firmware's identification; empty texts are unknown, too.
pub(super) fn dmi_text(files: &HostFiles, name: &str) -> Option<String> {
    files
        .text(&format!("/sys/class/dmi/id/{name}"))
        .filter(|text| !text.is_empty())
}

pub(super) fn vendor(files: &HostFiles, flags: &[String]) -> SystemVendor {
    let text = |name: &str| dmi_text(files, name).unwrap_or_else(|| UNKNOWN.to_owned());
    let mut vendor = SystemVendor {
        serial_number: text("product_serial"),
        product_name: text("product_name"),
        manufacturer: text("sys_vendor"),
        r#virtual: is_virtual(files, flags),
    };
    if matches!(text("product_family").as_str(), "oVirt" | "RHV") {
        "oVirt".clone_into(&mut vendor.product_name);
    }
    let tag = text("chassis_asset_tag");
    if tag == "OracleCloud.com" {
        vendor.manufacturer = tag;
    }
    if vendor.manufacturer == UNKNOWN {
        mainframe(files, &mut vendor);
    }
    vendor
}

/// IBM Z has no such identification: files of the processor name the hypervisor.
fn mainframe(files: &HostFiles, vendor: &mut SystemVendor) {
    let value = |file: &str, name: &str| {
        let text = files.text(file)?;
        let line = text.lines().find(|line| line.contains(name))?.to_owned();
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    if value("/proc/cpuinfo", "vendor_id").as_deref() != Some("IBM/S390") {
        return;
    }
    "IBM/S390".clone_into(&mut vendor.manufacturer);
    let program = value("/proc/sysinfo", "Control Program");
    // Only KVM is virtual hardware; z/VM and LPAR are treated as bare metal.
    vendor.r#virtual = program.as_deref() == Some("KVM/Linux");
    vendor.product_name = program.unwrap_or_else(|| "LPAR".to_owned());
}

fn is_virtual(files: &HostFiles, flags: &[String]) -> bool {
    if flags.iter().any(|flag| flag == "hypervisor") {
        return true;
    }
    if cfg!(target_arch = "x86_64") {
        return false;
    }
    let by_vendor = ["product_name", "sys_vendor", "board_vendor", "bios_vendor"]
        .iter()
        .filter_map(|name| dmi_text(files, name))
        .any(|text| {
            VIRTUAL_VENDORS
                .iter()
                .any(|vendor| text.starts_with(vendor))
        });
    let is_metal = dmi_text(files, "product_name")
        .is_some_and(|name| name.split('.').next_back() == Some("metal"));
    let by_tree = files.exists("/proc/device-tree/hypervisor");
    (by_vendor && !is_metal) || by_tree
}
