//! Whether the remaining hosts are enough for a cluster.
//! Source: assisted-service, internal/common/common.go, HasEnoughMastersAndWorkers; internal/cluster/transition.go.

use model::host::{Host, HostRole, HostStatus};
use model::ids::HostId;

use crate::host::retry;
use crate::snapshot::Snapshot;
use crate::snapshot::roles::{self, effective_role};

/// Statuses in which a host still counts for an installation.
const INSTALLABLE: &[HostStatus] = &[
    HostStatus::Installing,
    HostStatus::InstallingInProgress,
    HostStatus::Installed,
    HostStatus::InstallingPendingUserAction,
    HostStatus::PreparingSuccessful,
];

/// Control plane hosts of a high availability cluster.
const CONTROL_PLANE: usize = 3;
/// Control plane hosts with an arbiter or fencing.
const SMALL_CONTROL_PLANE: usize = 2;
/// Workers that must succeed, once as many are planned.
const WORKERS: usize = 2;

/// Hosts of each role.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    masters: usize,
    arbiters: usize,
    workers: usize,
}

/// Enough hosts are installing, installed or retried. `awaited` hosts have failed, and still count.
pub(crate) fn can_install(snapshot: &Snapshot, awaited: &[HostId]) -> bool {
    let counts = |host: &Host| is_installable(host) || awaited.contains(&host.id);
    enough(snapshot, counts, false)
}

/// Enough hosts are installed for the control plane to be finalized.
pub(crate) fn can_finalize(snapshot: &Snapshot) -> bool {
    enough(snapshot, |host| host.status == HostStatus::Installed, true)
}

/// The cluster fails without that host.
pub(crate) fn fails_without(snapshot: &Snapshot, host: HostId) -> bool {
    let counts = |other: &Host| is_installable(other) && other.id != host;
    !enough(snapshot, counts, false)
}

fn is_installable(host: &Host) -> bool {
    INSTALLABLE.contains(&host.status) || retry::RETRIED.contains(&host.status)
}

fn enough(snapshot: &Snapshot, counts: impl Fn(&Host) -> bool, finalizing: bool) -> bool {
    let mut planned = Counts::default();
    let mut counted = Counts::default();
    for host in &snapshot.hosts {
        let role = effective_role(&host.record);
        add(&mut planned, role);
        if counts(&host.record) {
            add(&mut counted, role);
        }
    }
    if roles::is_single_node(&snapshot.cluster) {
        return counted.masters == 1;
    }
    let fenced = roles::is_fenced(snapshot);
    let least = if planned.arbiters > 0 || fenced {
        SMALL_CONTROL_PLANE
    } else {
        CONTROL_PLANE
    };
    // All planned masters count while the installation can still place them; once they are installed, a quorum
    // is enough.
    let masters = counted.masters >= least
        && (counted.masters == planned.masters || (finalizing && counted.masters >= CONTROL_PLANE))
        && counted.arbiters == planned.arbiters;
    let workers = planned.workers < WORKERS || counted.workers >= WORKERS;
    masters && workers
}

fn add(counts: &mut Counts, role: HostRole) {
    match role {
        HostRole::Master | HostRole::Bootstrap => counts.masters += 1,
        HostRole::Arbiter => counts.arbiters += 1,
        HostRole::Worker => counts.workers += 1,
        HostRole::AutoAssign => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    fn with(statuses: &[HostStatus]) -> Snapshot {
        let mut snapshot = fixtures::snapshot(3, 2);
        for (host, status) in snapshot.hosts.iter_mut().zip(statuses) {
            host.record.status = *status;
        }
        snapshot
    }

    use HostStatus::{Error, Installed, Installing, InstallingPendingUserAction};

    #[test]
    fn all_masters_and_two_workers_are_needed() {
        assert!(can_install(&with(&[Installing; 5]), &[]));
        assert!(!can_install(
            &with(&[Error, Installing, Installing, Installing, Installing]),
            &[]
        ));
        assert!(!can_install(
            &with(&[Installing, Installing, Installing, Error, Installing]),
            &[]
        ));
        assert!(can_finalize(&with(&[Installed; 5])));
        assert!(!can_finalize(&with(&[
            Installed, Installed, Installed, Installed, Installing
        ])));
    }

    #[test]
    fn a_third_worker_can_be_done_without() {
        let mut snapshot = fixtures::snapshot(3, 3);
        for host in &mut snapshot.hosts {
            host.record.status = Installing;
        }
        snapshot.hosts[5].record.status = InstallingPendingUserAction;
        assert!(!fails_without(&snapshot, snapshot.hosts[5].record.id));
        assert!(fails_without(&snapshot, snapshot.hosts[0].record.id));
    }

    #[test]
    fn single_node_needs_its_one_host() {
        let mut snapshot = fixtures::snapshot(1, 0);
        snapshot.hosts[0].record.status = Installing;
        assert!(can_install(&snapshot, &[]));
        snapshot.hosts[0].record.status = Error;
        assert!(!can_install(&snapshot, &[]));
    }
}
