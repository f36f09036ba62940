//! Disks of the host, and which of them an installation may overwrite.
//!
//! Source: assisted-installer-agent, src/inventory/disks.go, and the library ghw that it uses.

mod device;
mod iscsi;

use model::inventory::{Disk, DriveType, InstallationEligibility, Iscsi};

use self::device::BlockDevice;
use crate::HostFiles;
use crate::mounts::Mounts;

/// Prefix of the device of a preinstalled system that installs itself, and of the labels of its partitions.
const APPLIANCE: &str = "agent";
/// Size of such a device in the inventory: its real one would fail validations. Units: bytes.
const APPLIANCE_SIZE: i64 = 100 << 30;
/// Beginnings of names whose devices are never listed: files, memory, compressed memory.
const IGNORED: [&str; 4] = ["loop", "zram", "ram", "nbd"];

pub(super) fn disks(files: &HostFiles, mounts: &Mounts) -> Vec<Disk> {
    let names = files.names("/sys/block");
    let devices: Vec<BlockDevice<'_>> = names
        .iter()
        .map(|name| BlockDevice::new(files, name))
        .collect();
    if let Some(device) = devices.iter().find(|device| is_appliance(device)) {
        return vec![appliance(device, &devices)];
    }
    let listed = |device: &&BlockDevice<'_>| {
        !device.is_hidden()
            && !IGNORED.iter().any(|prefix| device.name.starts_with(prefix))
            && (!device.is_mapped() || device.is_multipath() || device.is_logical_volume())
    };
    let listed: Vec<&BlockDevice<'_>> = devices.iter().filter(listed).collect();
    listed
        .iter()
        .map(|device| disk(device, &listed, mounts))
        .collect()
}

fn disk(device: &BlockDevice<'_>, all: &[&BlockDevice<'_>], mounts: &Mounts) -> Disk {
    let drive_type = drive_type(device);
    let eligibility = eligibility(device, drive_type, mounts);
    let path = device.path();
    let by_id = device.by_id();
    // Disks with equal paths of their bus (two IDE disks) could be confused.
    let is_ambiguous = all.iter().any(|other| {
        other.name != device.name
            && other.bus_path().is_some()
            && other.bus_path() == device.bus_path()
    });
    let by_path = if is_ambiguous { None } else { device.by_path() };
    let id = by_id.as_ref().or(by_path.as_ref()).unwrap_or(&path).clone();
    let wwn = device.wwn().or_else(|| {
        let name = by_id.as_ref()?;
        Some(name.trim_start_matches("/dev/disk/by-id/wwn-").to_owned())
    });
    let iscsi = (drive_type == DriveType::ISCSI).then(|| Iscsi {
        host_ip_address: iscsi::host_address(device).unwrap_or_default(),
    });
    Disk {
        id,
        is_installation_media: eligibility.is_medium || drive_type == DriveType::ODD,
        drive_type: Some(drive_type.into()),
        has_uuid: device.has_uuid(),
        vendor: device.vendor().unwrap_or_default(),
        name: device.name.to_owned(),
        hctl: device.hctl().unwrap_or_default(),
        by_path: by_path.unwrap_or_default(),
        by_id: by_id.unwrap_or_default(),
        model: device.model().unwrap_or_default(),
        wwn: wwn.unwrap_or_default(),
        serial: device.serial().unwrap_or_default(),
        size_bytes: device.size(),
        bootable: device.has_boot_sector(),
        removable: device.is_removable(),
        installation_eligibility: InstallationEligibility {
            eligible: eligibility.reasons.is_empty(),
            not_eligible_reasons: eligibility.reasons,
        },
        holders: device.holders().join(","),
        path,
        iscsi,
        ..Disk::default()
    }
}

fn drive_type(device: &BlockDevice<'_>) -> DriveType {
    let bus = device.bus_path().unwrap_or_default();
    if device.name.starts_with("dasd") {
        return device.dasd_type();
    }
    if bus.contains("-iscsi-") {
        return DriveType::ISCSI;
    }
    if bus.contains("-fc-") || bus.starts_with("fc-") {
        return DriveType::FC;
    }
    if device.is_multipath() {
        return DriveType::Multipath;
    }
    if device.is_logical_volume() {
        return DriveType::LVM;
    }
    if device.name.starts_with("md") {
        return DriveType::RAID;
    }
    device
        .class()
        .map_or(DriveType::Unknown, |(drive_type, _)| drive_type)
}

struct Eligibility {
    reasons: Vec<String>,
    /// The live system runs from it.
    is_medium: bool,
}

fn eligibility(device: &BlockDevice<'_>, drive_type: DriveType, mounts: &Mounts) -> Eligibility {
    let mut reasons = Vec::new();
    let has_other_controller = matches!(
        drive_type,
        DriveType::Multipath | DriveType::LVM | DriveType::RAID
    ) || device.name.starts_with("dasd");
    if device.class().is_none() && !has_other_controller {
        reasons.push("Disk has unknown storage controller".to_owned());
    }
    if drive_type == DriveType::LVM {
        reasons.push("Disk is an LVM logical volume".to_owned());
    }
    if drive_type == DriveType::ISCSI {
        reasons.extend(iscsi::obstacles(device));
    }
    let partitions = device.partitions();
    let is_appliance = |number: &String| {
        device
            .property(number, "ID_FS_LABEL")
            .is_some_and(|label| label.starts_with(APPLIANCE))
    };
    if partitions.iter().any(|(_, number)| is_appliance(number)) {
        return Eligibility {
            reasons,
            is_medium: false,
        };
    }
    let whole = (device.name.to_owned(), device.number());
    let mounted: Vec<(&str, &str)> = partitions
        .iter()
        .chain([&whole])
        .flat_map(|(name, number)| {
            mounts
                .targets_of(number)
                .map(move |target| (name.as_str(), target))
        })
        .collect();
    let is_medium = mounted.iter().any(|(_, target)| target.ends_with("iso"));
    if is_medium {
        reasons.push(
            "Disk appears to be an ISO installation media (has partition with mountpoint suffix iso)"
                .to_owned(),
        );
    } else {
        reasons.extend(
            mounted
                .iter()
                .map(|(name, target)| format!("Disk has partition '{name}' mounted on '{target}'")),
        );
    }
    Eligibility { reasons, is_medium }
}

fn is_appliance(device: &BlockDevice<'_>) -> bool {
    device
        .mapped_name()
        .is_some_and(|name| name.starts_with(APPLIANCE))
}

fn appliance(device: &BlockDevice<'_>, all: &[BlockDevice<'_>]) -> Disk {
    let path = device.path();
    Disk {
        id: path.clone(),
        name: device.name.to_owned(),
        path,
        drive_type: Some(DriveType::SSD.into()),
        size_bytes: APPLIANCE_SIZE,
        has_uuid: all.iter().any(BlockDevice::has_uuid),
        installation_eligibility: InstallationEligibility {
            eligible: true,
            not_eligible_reasons: Vec::new(),
        },
        ..Disk::default()
    }
}

#[cfg(test)]
mod tests;
