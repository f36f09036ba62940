//! Deployment of ODF (OpenShift Data Foundation): the hosts that hold its data, and their disks.
//!
//! Source: assisted-service, internal/operators/odf/common.go, odf_operator.go, validations.go.

use model::host::{Host, HostRole};
use model::inventory::{Disk, DriveType, Inventory};

use super::requirements::HostResources;
use crate::snapshot::Snapshot;

/// Least number of hosts with data.
pub(crate) const ODF_HOSTS: usize = 3;
/// Least number of their disks.
pub(crate) const ODF_DISKS: usize = 3;
/// Least size of such a disk. Units: GB.
pub(crate) const ODF_DISK_GB: i64 = 25;
/// Cluster size in which automatic roles are known: all hosts become masters.
const AUTOMATIC_HOSTS: usize = 3;
const CORES_PER_DISK: i64 = 2;
/// Units: MiB.
const MEMORY_PER_DISK: i64 = 5 * 1024;

/// Hosts that hold the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OdfMode {
    /// Masters and arbiters: there are no workers.
    Compact,
    /// Three workers or more.
    Standard,
}

impl OdfMode {
    /// The mode by the roles of the hosts; none for other combinations of roles.
    pub(crate) fn of(snapshot: &Snapshot) -> Option<Self> {
        let count = |wanted: &[HostRole]| {
            let roles = snapshot.hosts.iter().map(|host| role(&host.record));
            roles.filter(|role| wanted.contains(role)).count()
        };
        let masters = count(&[HostRole::Master, HostRole::Bootstrap]);
        let arbiters = count(&[HostRole::Arbiter]);
        let workers = count(&[HostRole::Worker]);
        let automatic = count(&[HostRole::AutoAssign]);
        let all_become_masters = masters + automatic == AUTOMATIC_HOSTS;
        let only_control_plane = automatic == 0 && masters + arbiters >= ODF_HOSTS;
        if workers == 0 && (all_become_masters || only_control_plane) {
            return Some(Self::Compact);
        }
        let has_control_plane = masters >= 3 || (masters >= 2 && arbiters > 0);
        (has_control_plane && workers >= ODF_HOSTS).then_some(Self::Standard)
    }

    /// Whether a host of that role holds data.
    pub(crate) fn uses(self, role: HostRole) -> bool {
        match self {
            Self::Compact => role != HostRole::Worker,
            Self::Standard => role == HostRole::Worker,
        }
    }

    /// Resources that a host with that many disks needs in addition to those of the role.
    pub(crate) fn disk_resources(self, disks: usize) -> HostResources {
        let least = match self {
            Self::Compact => 1,
            Self::Standard => 0,
        };
        let disks = i64::try_from(disks.max(least)).unwrap_or(i64::MAX);
        HostResources {
            cores: disks.saturating_mul(CORES_PER_DISK),
            mib: disks.saturating_mul(MEMORY_PER_DISK),
        }
    }
}

/// Whether a host's future role is known by the one that its user has given.
pub(crate) fn has_known_role(snapshot: &Snapshot, given: HostRole) -> bool {
    given != HostRole::AutoAssign || snapshot.hosts.len() == AUTOMATIC_HOSTS
}

/// The role that the user has given.
fn role(host: &Host) -> HostRole {
    host.role.unwrap_or_default()
}

/// HDDs and SSDs that can hold data: not the installation disk, not the medium of the discovery image.
pub(crate) fn spare_disks<'a>(
    host: &'a Host,
    inventory: &'a Inventory,
) -> impl Iterator<Item = &'a Disk> {
    inventory.disks.iter().filter(|disk| {
        disk.id != host.installation_disk_id
            && !disk.is_installation_media
            && disk.size_bytes > 0
            && matches!(disk.known_type(), DriveType::HDD | DriveType::SSD)
    })
}

/// Number of spare disks of that size or more. Units: GB.
pub(crate) fn spare_disks_of(host: &Host, inventory: &Inventory, size_gb: i64) -> usize {
    let least = size_gb.saturating_mul(1_000_000_000);
    let disks = spare_disks(host, inventory);
    disks.filter(|disk| disk.size_bytes >= least).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn modes_follow_from_the_roles() {
        let mode = |masters, workers| OdfMode::of(&fixtures::snapshot(masters, workers));
        assert_eq!(mode(3, 0), Some(OdfMode::Compact));
        assert_eq!(mode(5, 0), Some(OdfMode::Compact));
        assert_eq!(mode(3, 2), None);
        assert_eq!(mode(3, 3), Some(OdfMode::Standard));
        let mut automatic = fixtures::snapshot(3, 1);
        automatic.hosts[3].record.role = Some(HostRole::AutoAssign);
        assert_eq!(OdfMode::of(&automatic), None);
        automatic.hosts.truncate(3);
        automatic.hosts[2].record.role = Some(HostRole::AutoAssign);
        assert_eq!(OdfMode::of(&automatic), Some(OdfMode::Compact));
    }

    #[test]
    fn disks_add_cores_and_memory() {
        assert_eq!(OdfMode::Compact.disk_resources(0).cores, 2);
        assert_eq!(OdfMode::Standard.disk_resources(0).cores, 0);
        let two = OdfMode::Standard.disk_resources(2);
        assert_eq!((two.cores, two.mib), (4, 10 * 1024));
    }
}
