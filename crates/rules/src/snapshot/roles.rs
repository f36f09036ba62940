//! Roles of hosts, and the control plane that a cluster requests.

use model::cluster::{Cluster, HighAvailabilityMode};
use model::host::{Host, HostRole};
use serde_json::Value;

use crate::snapshot::Snapshot;

/// Whether one host is the whole cluster.
pub fn is_single_node(cluster: &Cluster) -> bool {
    match cluster.control_plane_count {
        0 => cluster.high_availability_mode == Some(HighAvailabilityMode::None),
        count => count == 1,
    }
}

/// Number of masters that the cluster requests.
pub fn control_plane_count(cluster: &Cluster) -> usize {
    match usize::try_from(cluster.control_plane_count) {
        Ok(0) | Err(_) if is_single_node(cluster) => 1,
        Ok(0) | Err(_) => 3,
        Ok(count) => count,
    }
}

/// Two nodes with fencing: every master has fencing credentials.
pub(crate) fn is_fenced(snapshot: &Snapshot) -> bool {
    let mut masters = snapshot
        .hosts
        .iter()
        .filter(|host| effective_role(&host.record) == HostRole::Master)
        .peekable();
    control_plane_count(&snapshot.cluster) == 2
        && masters.peek().is_some()
        && (is_fenced_by_override(&snapshot.cluster)
            || masters.all(|host| !host.record.fencing_credentials.is_empty()))
}

/// Whether an override of the install-config has the credentials of both masters.
fn is_fenced_by_override(cluster: &Cluster) -> bool {
    let overrides: Value =
        serde_json::from_str(&cluster.install_config_overrides).unwrap_or_default();
    let credentials = overrides.pointer("/controlPlane/fencing/credentials");
    credentials
        .and_then(Value::as_array)
        .is_some_and(|list| list.len() == 2)
}

/// Number of workers, assigned or suggested.
pub fn workers(snapshot: &Snapshot) -> usize {
    let hosts = snapshot.hosts.iter();
    hosts
        .filter(|host| effective_role(&host.record) == HostRole::Worker)
        .count()
}

/// Role of the host, or the suggested one.
pub fn effective_role(host: &Host) -> HostRole {
    match host.role {
        Some(HostRole::AutoAssign) | None => host.suggested_role.unwrap_or_default(),
        Some(role) => role,
    }
}
