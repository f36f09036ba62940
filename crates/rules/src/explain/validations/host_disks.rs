//! Disk and encryption validations of hosts.

use model::cluster::{DiskEncryptionMode, DiskEncryptionTarget};
use model::host::HostRole;
use model::inventory::TpmVersion;
use model::steps::TangConnectivityResponse;

use super::subject::{ClusterSubject, HostSubject, is_cut};
use super::verdict::Verdict;
use crate::hardware::disks::{self, Speed, device_path, installation_disk, shared_ids};
use crate::hardware::requirements::{VMWARE, maker};
use crate::host::cluster_ignition::{ClusterIgnition, Encryption};

/// Source: assisted-service, internal/host/validator.go, sufficientOrUnknownInstallationDiskSpeed.
pub(super) fn disk_speed(subject: &HostSubject<'_>) -> Verdict {
    let disk = || installation_disk(subject.host).map_or("", |disk| disk.name.as_str());
    match disks::speed(subject.host) {
        Speed::Failed(code) => Verdict::fail(format!(
            "Disk speed: the test of {} ended with exit code {code}; choose another installation disk",
            disk()
        ))
        .observed(format_args!("exit code {code} of the test of {}", disk())),
        Speed::Measured(ms) => {
            Verdict::ok(format!("A flush of the installation disk takes {ms} ms"))
        }
        Speed::Unknown => {
            Verdict::ok("The speed of the installation disk has not been measured yet")
        }
    }
}

/// Source: assisted-service, internal/host/validator.go, isVSphereDiskUUIDEnabled.
pub(super) fn vsphere_disk_ids(subject: &HostSubject<'_>) -> Verdict {
    let Some(inventory) = &subject.host.inventory else {
        return Verdict::Hidden;
    };
    if maker(inventory) != VMWARE {
        return Verdict::Hidden;
    }
    let without: Vec<&str> = subject
        .eligible_disks()
        .filter(|disk| !disk.has_uuid)
        .map(|disk| disk.name.as_str())
        .collect();
    Verdict::of(
        without.is_empty(),
        "Every disk has an id",
        format_args!(
            "Disks without id: {}; set disk.EnableUUID to TRUE in the virtual machine's settings",
            without.join(", ")
        ),
    )
    .observed(format_args!("disks without id: {}", without.join(", ")))
}

/// Source: assisted-service, internal/host/validator.go, noSkipInstallationDisk.
pub(super) fn no_skip_installation_disk(subject: &HostSubject<'_>) -> Verdict {
    let wanted = &subject.host.record.installation_disk_id;
    let kept = subject.skipped_disks().any(|id| id == wanted);
    Verdict::of(
        !kept,
        "The installation disk may be formatted",
        format_args!(
            "Disk {wanted} is the installation disk, whose formatting cannot be skipped; choose another installation disk or format it"
        ),
    )
    .observed(format_args!("formatting of {wanted} is skipped"))
}

/// Disks with one id, as cheap ones have it. They are named by their paths.
pub(super) fn disk_ids_unique(subject: &HostSubject<'_>) -> Verdict {
    let Ok(inventory) = subject.inventory() else {
        return Verdict::Hidden;
    };
    let shared = shared_ids(&inventory.disks, |disk| &disk.by_id);
    let shared: Vec<String> = shared
        .iter()
        .take(SHOWN)
        .map(|(id, disks)| {
            let paths = disks.iter().take(SHOWN).map(|disk| device_path(disk));
            format!("{id} is the id of {}", paths.collect::<Vec<_>>().join(", "))
        })
        .collect();
    if shared.is_empty() {
        return Verdict::Hidden;
    }
    let shared = shared.join("; ");
    Verdict::fail(format!(
        "Disks: {shared}; they are named by their paths: check that the installation disk, {}, is the one that you mean",
        subject.host.record.installation_disk_path
    ))
    .observed(shared)
}

/// Shared ids, and disks of one, that a message names.
const SHOWN: usize = 8;

/// Source: assisted-service, internal/host/validator.go, noSkipMissingDisk.
pub(super) fn no_skip_missing_disk(subject: &HostSubject<'_>) -> Verdict {
    let inventory = match subject.inventory() {
        Ok(inventory) => inventory,
        Err(pending) => return pending,
    };
    let missing: Vec<&str> = subject
        .skipped_disks()
        .filter(|id| !inventory.disks.iter().any(|disk| disk.id == *id))
        .collect();
    Verdict::of(
        missing.is_empty(),
        "Every disk to skip formatting exists",
        format_args!(
            "Disks to skip formatting do not exist: {}; remove them from the list",
            missing.join(", ")
        ),
    )
    .observed(format_args!("missing disks: {}", missing.join(", ")))
}

/// Source: assisted-service, internal/host/validator.go, diskEncryptionRequirementsSatisfied.
pub(super) fn disk_encryption(subject: &HostSubject<'_>) -> Verdict {
    let cluster = match subject.cluster() {
        Ok(cluster) if subject.day2() => return joined_encryption(subject, cluster),
        Ok(cluster) if !cluster.day2 => cluster,
        _ => return Verdict::Hidden,
    };
    let Some(encryption) = &cluster.cluster.disk_encryption else {
        return Verdict::Hidden;
    };
    let target = encryption.enable_on.unwrap_or_default();
    if target == DiskEncryptionTarget::None {
        return Verdict::Hidden;
    }
    if target != DiskEncryptionTarget::All {
        let Some(role) = subject.role() else {
            return Verdict::wait("a role for the host");
        };
        if !covers(target, role) {
            return Verdict::Hidden;
        }
    }
    match encryption.mode.unwrap_or_default() {
        DiskEncryptionMode::Tpmv2 => tpm(subject),
        DiskEncryptionMode::Tang => tang(subject),
    }
}

/// Encryption of a host that joins an installed cluster, whose ignition demands it.
/// Source: assisted-service, internal/host/validator.go, diskEncryptionRequirementsSatisfied.
fn joined_encryption(subject: &HostSubject<'_>, cluster: &ClusterSubject<'_>) -> Verdict {
    let report = subject.texts.api_vip.as_ref();
    let Some(ignition) = report.and_then(ClusterIgnition::of) else {
        let encryption = cluster.cluster.disk_encryption.as_ref();
        let target = encryption.and_then(|encryption| encryption.enable_on);
        return match target.unwrap_or_default() {
            DiskEncryptionTarget::None => Verdict::Hidden,
            _ => Verdict::wait("the host to download the cluster's ignition"),
        };
    };
    match ignition.encryption() {
        Encryption::None => Verdict::Hidden,
        Encryption::Tpm => tpm(subject),
        Encryption::Tang(_) => tang(subject),
        Encryption::Unknown => Verdict::fail(
            "The cluster encrypts disks neither by TPM nor by Tang servers; check its MachineConfigs",
        )
        .observed("an unknown kind of disk encryption in the cluster's ignition")
        .fix("Check the MachineConfigs of the cluster."),
    }
}

fn covers(target: DiskEncryptionTarget, role: HostRole) -> bool {
    let word = match role {
        HostRole::Master | HostRole::Bootstrap => "masters",
        HostRole::Arbiter => "arbiters",
        HostRole::Worker | HostRole::AutoAssign => "workers",
    };
    target == DiskEncryptionTarget::All || target.as_str().split(',').any(|one| one == word)
}

fn tpm(subject: &HostSubject<'_>) -> Verdict {
    let inventory = match subject.inventory() {
        Ok(inventory) => inventory,
        Err(pending) => return pending,
    };
    let reported = inventory.tpm_version.clone();
    let has = reported.unwrap_or(TpmVersion::default().into());
    Verdict::of(
        has == TpmVersion::V20.into(),
        "The host has a TPM 2.0",
        format_args!(
            "Disk encryption needs a TPM 2.0, the host's TPM is {has}; enable it in the firmware or encrypt with Tang servers"
        ),
    )
    .observed(format_args!("TPM {has}"))
    .required(format_args!("TPM {}", TpmVersion::V20))
}

/// Source: assisted-service, internal/host/validator.go, areTangServersReachable.
fn tang(subject: &HostSubject<'_>) -> Verdict {
    let text = &subject.host.record.tang_connectivity;
    if text.is_empty() {
        return Verdict::wait("the check of the Tang servers");
    }
    match serde_json::from_str::<TangConnectivityResponse>(text) {
        Ok(answer) => Verdict::of(
            answer.is_success,
            "The host reaches every Tang server",
            "The host does not reach every Tang server; check their URLs and thumbprints and the network",
        )
        .observed("a Tang server that does not answer")
        .required("an answer of every Tang server"),
        Err(_) => Verdict::fail(format!("The Tang servers could not be checked: {text}"))
            .observed(text)
            .required("an answer of every Tang server"),
    }
}

/// Source: assisted-service, internal/host/validator.go, hasMinValidDisks.
pub(super) fn has_min_valid_disks(subject: &HostSubject<'_>) -> Verdict {
    let inventory = match subject.inventory() {
        Ok(inventory) if is_cut(inventory) => {
            return Verdict::error("Disks: the inventory is truncated, its disks are unknown")
                .observed("a truncated inventory");
        }
        Ok(inventory) => inventory,
        Err(pending) => return pending,
    };
    if inventory.disks.is_empty() {
        return Verdict::error("Disks: the host reports none; attach one to install to")
            .observed("no disks");
    }
    let eligible = subject.eligible_disks().count();
    if eligible > 0 {
        return Verdict::ok(format!("Eligible disks: {eligible}"));
    }
    let problems: Vec<String> = inventory
        .disks
        .iter()
        .map(|disk| {
            let reasons = &disk.installation_eligibility.not_eligible_reasons;
            format!("{}: {}", disk.name, reasons.join(", "))
        })
        .collect();
    Verdict::fail(format!(
        "Disks: none of {} is eligible ({}); attach an eligible one",
        inventory.disks.len(),
        problems.join("; ")
    ))
    .observed(problems.join("; "))
}
