//! Role assignment.
//! Source: assisted-service, internal/host/host.go (AutoAssignRole, selectRole), internal/host/monitor.go (SortHosts).

use std::cmp::Ordering;

use model::hardware::ClusterHostRequirementsDetails;
use model::host::{Host, HostKind, HostRole, HostStatus};
use model::inventory::Inventory;
use model::operators::OperatorType;

use crate::event::{NewEvent, about_host};
use crate::explain::validations::{ClusterSubject, host_operators};
use crate::hardware::requirements::{Requirements, mebibytes, usable_mib};
use crate::host::is_day2;
use crate::operators::HostResources;
use crate::policy::InstallationPolicy;
use crate::snapshot::Snapshot;
use crate::snapshot::host_state::HostState;
use crate::snapshot::roles::{control_plane_count, is_fenced, is_single_node};

use model::events::EventSeverity;

/// Replaces every automatic role by the suggested one.
pub(crate) fn assign(snapshot: &mut Snapshot, policy: &InstallationPolicy) {
    let roles = suggestions(snapshot, policy);
    for (host, role) in snapshot.hosts.iter_mut().zip(roles) {
        if is_automatic(&host.record) && role != HostRole::AutoAssign {
            host.record.role = Some(role);
            host.record.suggested_role = Some(role);
        }
    }
}

/// Refreshes the suggestions of hosts without a role.
pub(crate) fn suggest(
    snapshot: &mut Snapshot,
    policy: &InstallationPolicy,
    events: &mut Vec<NewEvent>,
) {
    let roles = suggestions(snapshot, policy);
    for (host, role) in snapshot.hosts.iter_mut().zip(roles) {
        let role = if is_automatic(&host.record) {
            role
        } else {
            host.record.role.unwrap_or_default()
        };
        if host.record.suggested_role == Some(role) {
            continue;
        }
        let reported = role != HostRole::AutoAssign && is_automatic(&host.record);
        host.record.suggested_role = Some(role);
        if reported {
            events.push(
                about_host(
                    host,
                    "host_role_updated",
                    EventSeverity::Info,
                    &format!("suggested role is {role}"),
                )
                .prop("suggested_role", role),
            );
        }
    }
}

/// Role of every host, or its suggestion: weak hosts without GPU become masters first.
fn suggestions(snapshot: &Snapshot, policy: &InstallationPolicy) -> Vec<HostRole> {
    let cluster = &snapshot.cluster;
    let mut roles: Vec<HostRole> = snapshot
        .hosts
        .iter()
        .map(|host| host.record.role.unwrap_or_default())
        .collect();
    let count = |role| roles.iter().filter(|one| **one == role).count();
    let (mut masters, mut arbiters) = (count(HostRole::Master), count(HostRole::Arbiter));
    let wanted = control_plane_count(cluster);
    let requirements = Requirements::of(policy, &cluster.openshift_version);
    let mut open: Vec<usize> = (0..roles.len())
        .filter(|index| roles[*index] == HostRole::AutoAssign)
        .filter(|index| snapshot.hosts[*index].inventory.is_some())
        .filter(|index| may_be_assigned(snapshot.hosts[*index].record.status))
        .collect();
    open.sort_by(|left, right| heavier(&snapshot.hosts[*left], &snapshot.hosts[*right]));
    let fenced = is_fenced(snapshot);
    let has_operators = cluster
        .monitored_operators
        .iter()
        .any(|one| one.operator_type == Some(OperatorType::Olm));
    let operators = has_operators.then(|| ClusterSubject::new(snapshot, &[], policy));
    let needed = requirements.role(HostRole::Master, is_single_node(cluster));
    for index in open {
        let host = &snapshot.hosts[index];
        let role = if is_day2(cluster) || host.record.kind == HostKind::AddToExistingClusterHost {
            HostRole::Worker
        } else if masters < wanted && can_be_master(host, &needed, operators.as_ref()) {
            HostRole::Master
        } else if wanted == 2 && !fenced && arbiters == 0 && masters == wanted {
            HostRole::Arbiter
        } else {
            HostRole::Worker
        };
        masters += usize::from(role == HostRole::Master);
        arbiters += usize::from(role == HostRole::Arbiter);
        roles[index] = role;
    }
    roles
}

fn is_automatic(host: &Host) -> bool {
    matches!(host.role, None | Some(HostRole::AutoAssign))
}

fn may_be_assigned(status: HostStatus) -> bool {
    !matches!(
        status,
        HostStatus::Disconnected
            | HostStatus::Binding
            | HostStatus::Unbinding
            | HostStatus::UnbindingPendingUserAction
            | HostStatus::Cancelled
            | HostStatus::Error
    )
}

/// Whether a host satisfies the platform's requirements of masters and those of chosen operators.
fn can_be_master(
    host: &HostState,
    needed: &ClusterHostRequirementsDetails,
    operators: Option<&ClusterSubject<'_>>,
) -> bool {
    let Some(inventory) = &host.inventory else {
        return false;
    };
    let more = operators.map_or_else(
        || Some(HostResources::default()),
        |cluster| host_operators::master_overhead(cluster, &host.record, inventory),
    );
    let cores = inventory.cpu.as_ref().map_or(0, |cpu| cpu.count);
    more.is_some_and(|more| {
        cores >= needed.cpu_cores.saturating_add(more.cores)
            && usable_mib(inventory) >= needed.ram_mib.saturating_add(more.mib)
    })
}

/// Order in which hosts become masters; equal ones keep the order of their ids.
fn heavier(left: &HostState, right: &HostState) -> Ordering {
    let gpu = |host: &HostState| {
        host.inventory
            .as_ref()
            .is_some_and(|one| !one.gpus.is_empty())
    };
    gpu(left)
        .cmp(&gpu(right))
        .then(weight(left).cmp(&weight(right)))
        .then(left.record.id.cmp(&right.record.id))
}

/// Surplus of a host over a master's requirements. Units: thousandths of a core.
fn weight(host: &HostState) -> i64 {
    let Some(inventory) = &host.inventory else {
        return i64::MAX;
    };
    let cores = inventory.cpu.as_ref().map_or(0, |cpu| cpu.count);
    let gib = inventory
        .memory
        .as_ref()
        .map_or(0, |memory| mebibytes(memory.physical_bytes) / 1024);
    cores
        .saturating_sub(4)
        .saturating_mul(1000)
        .saturating_add(gib.saturating_sub(16).saturating_mul(100))
        .saturating_add(
            installation_gb(host, inventory)
                .saturating_sub(100)
                .saturating_mul(4),
        )
}

fn installation_gb(host: &HostState, inventory: &Inventory) -> i64 {
    let bytes = inventory
        .disks
        .iter()
        .find(|disk| disk.id == host.record.installation_disk_id)
        .map_or(0, |disk| disk.size_bytes);
    bytes / 1_000_000_000
}
