//! Disks: eligibility, choice of the installation disk, formatting and speed.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;

use model::Error;
use model::cluster::Cluster;
use model::host::Host;
use model::inventory::{Disk, DiskInfo, DriveType, Inventory};
use model::versions::CpuArchitecture;

use crate::hardware::check_outcome::CheckOutcome;
use crate::snapshot::host_state::HostState;

/// Criteria of a disk's eligibility.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DiskCriteria {
    /// Least size. Units: 10^9 bytes.
    pub(crate) size_gb: i64,
    /// Major and minor version of the platform, when it is known.
    pub(crate) version: Option<(u64, u64)>,
}

/// Prefixes of this service's reasons, by which they are removed again.
const TOO_SMALL: &str = "Disk is too small";
const WRONG_TYPE: &str = "Drive type is";
const WRONG_PATHS: &str = "Multipath device has";
const MULTIPATH_MEMBER: &str = "Disk is a path of";
const ISCSI_DEFAULT_ROUTE: &str = "iSCSI host IP address";
const OURS: &[&str] = &[
    TOO_SMALL,
    WRONG_TYPE,
    WRONG_PATHS,
    MULTIPATH_MEMBER,
    ISCSI_DEFAULT_ROUTE,
];

/// Units: bytes.
const GB: i64 = 1_000_000_000;

impl DiskCriteria {
    pub(crate) fn new(size_gb: i64, cluster: Option<&Cluster>) -> Self {
        Self {
            size_gb,
            version: cluster.and_then(|one| minor(&one.openshift_version)),
        }
    }

    /// An unknown version excludes nothing.
    fn at_least(self, version: (u64, u64)) -> bool {
        self.version.is_none_or(|have| have >= version)
    }
}

/// Major and minor of a version text.
pub(crate) fn minor(version: &str) -> Option<(u64, u64)> {
    let mut parts = version.split(['.', '-']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Judges every disk anew, and keeps the agent's reasons. Returns whether anything changed; an inventory without
/// changes stays shared.
pub(crate) fn judge(inventory: &mut Arc<Inventory>, criteria: DiskCriteria) -> bool {
    let known: &Inventory = inventory;
    let reasons: Vec<Vec<String>> = known
        .disks
        .iter()
        .map(|disk| {
            let kept = disk.installation_eligibility.not_eligible_reasons.iter();
            kept.filter(|reason| !OURS.iter().any(|ours| reason.starts_with(ours)))
                .cloned()
                .chain(problems(disk, known, criteria))
                .collect()
        })
        .collect();
    let mut judged = inventory.disks.iter().zip(&reasons);
    let changed = judged.any(|(disk, reasons)| {
        let eligibility = &disk.installation_eligibility;
        eligibility.eligible != reasons.is_empty() || eligibility.not_eligible_reasons != *reasons
    });
    if changed {
        let disks = &mut Arc::make_mut(inventory).disks;
        for (disk, reasons) in disks.iter_mut().zip(reasons) {
            disk.installation_eligibility.eligible = reasons.is_empty();
            disk.installation_eligibility.not_eligible_reasons = reasons;
        }
    }
    changed
}

/// Source: assisted-service, internal/hardware/validator.go, DiskIsEligible.
fn problems(disk: &Disk, inventory: &Inventory, criteria: DiskCriteria) -> Vec<String> {
    let mut problems = Vec::new();
    if disk.size_bytes < criteria.size_gb.saturating_mul(GB) {
        problems.push(format!(
            "{TOO_SMALL} (it has {} GB, at least {} GB are needed)",
            disk.size_bytes / GB,
            criteria.size_gb
        ));
    }
    let drive_type = disk.known_type();
    let supported = supported_types(inventory, criteria);
    if !supported.contains(&drive_type) {
        let supported: Vec<&str> = supported.iter().map(|one| one.as_str()).collect();
        let reported = disk.drive_type.clone();
        let reported = reported.unwrap_or(drive_type.into());
        problems.push(format!(
            "{WRONG_TYPE} {reported}, it must be one of {}",
            supported.join(", ")
        ));
    }
    match drive_type {
        DriveType::Multipath => problems.extend(path_problem(disk, inventory)),
        DriveType::FC | DriveType::ISCSI => {
            problems.extend(member_problem(disk, inventory));
            problems.extend(route_problem(disk, inventory));
        }
        _ => {}
    }
    problems
}

/// Source: assisted-service, internal/hardware/validator.go, getValidDeviceStorageTypes.
fn supported_types(inventory: &Inventory, criteria: DiskCriteria) -> Vec<DriveType> {
    let text = inventory
        .cpu
        .as_ref()
        .map_or("", |cpu| cpu.architecture.as_str());
    let architecture: Option<CpuArchitecture> = text.parse().ok();
    let mut types = vec![DriveType::HDD, DriveType::SSD, DriveType::Multipath];
    if criteria.at_least((4, 14)) {
        types.push(DriveType::RAID);
    }
    if criteria.at_least((4, 15)) {
        types.push(DriveType::ISCSI);
    }
    match architecture {
        Some(CpuArchitecture::X86_64) | None => types.push(DriveType::FC),
        Some(CpuArchitecture::S390x) => types.extend([
            DriveType::FC,
            DriveType::ECKD,
            DriveType::ECKDESE,
            DriveType::FBA,
        ]),
        Some(_) => {}
    }
    types
}

/// Whether `path` is a path of `device`, by its holders.
fn holds(path: &Disk, device: &Disk) -> bool {
    !device.name.is_empty()
        && path
            .holders
            .split(',')
            .any(|name| name.trim() == device.name)
}

fn path_problem(device: &Disk, inventory: &Inventory) -> Option<String> {
    let paths: Vec<DriveType> = inventory
        .disks
        .iter()
        .filter(|path| holds(path, device))
        .map(Disk::known_type)
        .collect();
    let all = |kind| paths.iter().all(|one| *one == kind);
    let supported = paths.is_empty()
        || all(DriveType::FC)
        || all(DriveType::ISCSI)
        || all(DriveType::ECKD)
        || all(DriveType::ECKDESE);
    if supported {
        return None;
    }
    let found: Vec<&str> = paths.iter().map(|one| one.as_str()).collect();
    Some(format!(
        "{WRONG_PATHS} paths of type {}; they must all be FC or all iSCSI",
        found.join(", ")
    ))
}

/// Source: assisted-service, internal/hardware/validator.go, hasMultipathHolder.
fn member_problem(disk: &Disk, inventory: &Inventory) -> Option<String> {
    let device = inventory
        .disks
        .iter()
        .find(|device| device.known_type() == DriveType::Multipath && holds(disk, device))?;
    Some(format!(
        "{MULTIPATH_MEMBER} multipath device {}; install to that device",
        device.name
    ))
}

/// Source: assisted-service, internal/hardware/validator.go, isISCSINetworkingValid.
fn route_problem(disk: &Disk, inventory: &Inventory) -> Option<String> {
    let address = &disk.iscsi.as_ref()?.host_ip_address;
    if address.is_empty() {
        return None;
    }
    let clash = inventory
        .routes
        .iter()
        .filter(|route| crate::snapshot::networks::is_default(route))
        .any(|route| {
            inventory
                .interfaces
                .iter()
                .filter(|nic| nic.name == route.interface)
                .flat_map(|nic| nic.ipv4_addresses.iter().chain(&nic.ipv6_addresses))
                .any(|own| own.split('/').next() == Some(address.as_str()))
        });
    clash.then(|| {
        format!("{ISCSI_DEFAULT_ROUTE} {address} is on the default route's interface; storage needs an interface of its own")
    })
}

/// Gives disks that share an id the ids of their paths, as cheap disks have it: an id chooses the disk that is written.
pub(crate) fn name_by_path(inventory: &mut Inventory) {
    let shared = shared_ids(&inventory.disks, |disk| &disk.id);
    if shared.is_empty() {
        return;
    }
    let shared: BTreeSet<String> = shared.into_keys().map(str::to_owned).collect();
    for disk in &mut inventory.disks {
        let path = [disk.by_path.clone(), device_path(disk)];
        let path = path.into_iter().find(|path| !path.is_empty());
        if let Some(path) = path.filter(|_| shared.contains(&disk.id)) {
            let id = mem::replace(&mut disk.id, path);
            if disk.by_id.is_empty() {
                disk.by_id = id;
            }
        }
    }
}

/// Disks by an id that several of them have.
pub(crate) fn shared_ids<'a>(
    disks: &'a [Disk],
    id: impl Fn(&'a Disk) -> &'a String,
) -> BTreeMap<&'a str, Vec<&'a Disk>> {
    let mut by_id: BTreeMap<&str, Vec<&Disk>> = BTreeMap::new();
    for disk in disks {
        if !id(disk).is_empty() {
            by_id.entry(id(disk)).or_default().push(disk);
        }
    }
    by_id.retain(|_, disks| disks.len() > 1);
    by_id
}

/// Keeps the chosen disk while it is eligible, else chooses the best eligible one.
/// Source: assisted-service, internal/host/hostutil/host_utils.go, DetermineInstallationDisk.
pub(crate) fn choose(host: &mut HostState) {
    let Some(inventory) = &host.inventory else {
        return;
    };
    let eligible = |disk: &&Disk| disk.installation_eligibility.eligible;
    let current = chosen(&host.record, inventory.disks.iter().filter(eligible));
    let best = || {
        inventory
            .disks
            .iter()
            .filter(eligible)
            .min_by(|left, right| better(left, right))
    };
    let (id, path) = current.or_else(best).map_or_else(Default::default, |disk| {
        (disk.id.clone(), device_path(disk))
    });
    host.record.installation_disk_id = id;
    host.record.installation_disk_path = path;
}

/// The device file of a disk, which some agents leave out; empty if the disk has no name either.
/// Source: assisted-service, internal/common/disks_info.go, GetDeviceFullName.
pub(crate) fn device_path(disk: &Disk) -> String {
    if disk.path.is_empty() && !disk.name.is_empty() {
        return format!("/dev/{}", disk.name);
    }
    disk.path.clone()
}

/// Source: assisted-service, internal/hardware/validator.go, ListEligibleDisks.
fn better(left: &Disk, right: &Disk) -> Ordering {
    let nvme = |disk: &Disk| disk.name.starts_with("nvme");
    right
        .bootable
        .cmp(&left.bootable)
        .then(nvme(left).cmp(&nvme(right)))
        .then_with(|| {
            let name = |disk: &Disk| disk.known_type().as_str();
            name(left).cmp(name(right))
        })
        .then(left.size_bytes.cmp(&right.size_bytes))
        .then_with(|| left.hctl.cmp(&right.hctl))
}

/// Ids of the disks whose boot records are wiped, so that the firmware finds only the new one.
/// Source: assisted-service, internal/common/disk_formatting.go, GetDisksToBeFormatted.
pub(crate) fn to_be_formatted(inventory: &Inventory) -> String {
    let ids: Vec<&str> = inventory
        .disks
        .iter()
        .filter(|disk| disk.bootable && !disk.removable && !disk.is_installation_media)
        .filter(|disk| !disk.name.starts_with("mmcblk"))
        .filter(|disk| {
            !matches!(
                disk.known_type(),
                DriveType::FC | DriveType::ISCSI | DriveType::LVM | DriveType::Multipath
            )
        })
        .map(|disk| disk.id.as_str())
        .collect();
    ids.join(",")
}

/// Result of the installation disk's speed test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speed {
    /// No result yet.
    Unknown,
    /// Units: milliseconds of one flush.
    Measured(i64),
    /// Exit code of the failed test.
    Failed(i64),
}

impl Speed {
    pub(crate) fn outcome(self) -> CheckOutcome {
        match self {
            Self::Unknown => CheckOutcome::Unknown,
            Self::Measured(_) => CheckOutcome::Good,
            Self::Failed(_) => CheckOutcome::Failed,
        }
    }
}

/// Speed of the installation disk.
pub fn speed(host: &HostState) -> Speed {
    let Some(disk) = installation_disk(host) else {
        return Speed::Unknown;
    };
    let results = results(&host.record.disks_info);
    let mut names = tested_names(disk);
    let found = names.find_map(|name| results.get(name)?.disk_speed.as_ref());
    match found {
        Some(speed) if speed.tested && speed.exit_code != 0 => Speed::Failed(speed.exit_code),
        Some(speed) if speed.tested => Speed::Measured(speed.speed_ms),
        _ => Speed::Unknown,
    }
}

/// Names under which a disk may have been tested.
fn tested_names(disk: &Disk) -> impl Iterator<Item = &String> {
    let names = [&disk.by_id, &disk.path, &disk.id, &disk.by_path];
    names.into_iter().filter(|name| !name.is_empty())
}

/// Drops the result of the installation disk's speed test.
pub(crate) fn forget_speed(host: &mut HostState) -> Result<(), Error> {
    let mut kept = results(&host.record.disks_info);
    if let Some(disk) = installation_disk(host) {
        tested_names(disk).for_each(|name| {
            kept.remove(name);
        });
    }
    host.record.disks_info = if kept.is_empty() {
        String::new()
    } else {
        serde_json::to_string(&kept)
            .map_err(|error| Error::internal("writing disks_info", error))?
    };
    Ok(())
}

/// Parses `disks_info`: results by tested path.
pub(crate) fn results(text: &str) -> BTreeMap<String, DiskInfo> {
    serde_json::from_str(text).unwrap_or_default()
}

/// The disk that the platform goes to.
pub(crate) fn installation_disk(host: &HostState) -> Option<&Disk> {
    chosen(&host.record, host.inventory.as_ref()?.disks.iter())
}

/// The disk among `disks` that the record names. A record of before [`name_by_path`] has an id that several share.
fn chosen<'a>(record: &Host, disks: impl Iterator<Item = &'a Disk>) -> Option<&'a Disk> {
    let (id, path) = (&record.installation_disk_id, &record.installation_disk_path);
    disks
        .filter(|disk| !id.is_empty() && (disk.id == *id || disk.by_id == *id))
        .min_by_key(|disk| device_path(disk) != *path)
}

#[cfg(test)]
mod tests {
    use model::host::HostRole;

    use super::*;
    use crate::samples;

    #[test]
    fn disks_with_one_id_are_chosen_by_path() {
        let mut host = samples::host(1, HostRole::Worker);
        let inventory = Arc::make_mut(host.inventory.as_mut().unwrap());
        let mut twin = inventory.disks[0].clone();
        twin.path = "/dev/sdb".to_owned();
        inventory.disks.push(twin);
        let shared = inventory.disks[0].id.clone();
        name_by_path(inventory);
        let names: Vec<_> = inventory
            .disks
            .iter()
            .map(|disk| (disk.id.as_str(), disk.by_id.as_str()))
            .collect();
        assert_eq!(names, [("/dev/sda", &*shared), ("/dev/sdb", &*shared)]);
        for path in ["/dev/sdb", "/dev/sda"] {
            // Of a record that was stored with the shared id.
            host.record.installation_disk_id.clone_from(&shared);
            path.clone_into(&mut host.record.installation_disk_path);
            choose(&mut host);
            assert_eq!(host.record.installation_disk_path, path);
            assert_eq!(host.record.installation_disk_id, path);
        }
        host.record.installation_disk_id.clear();
        choose(&mut host);
        assert_eq!(host.record.installation_disk_path, "/dev/sda");
    }

    #[test]
    fn disks_without_ids_share_none() {
        let mut host = samples::host(1, HostRole::Worker);
        let inventory = Arc::make_mut(host.inventory.as_mut().unwrap());
        let mut blank = inventory.disks[0].clone();
        blank.id.clear();
        inventory.disks.extend([blank.clone(), blank]);
        let before = inventory.clone();
        name_by_path(inventory);
        assert_eq!(*inventory, before);
    }
}
