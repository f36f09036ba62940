//! First registration of a host.

use model::Error;
use model::cluster::{Cluster, ClusterKind, ClusterStatus};
use model::events::EventSeverity;
use model::host::{
    Host, HostCreateParams, HostKind, HostProgressInfo, HostRole, HostStatus, MediaStatus,
};
use model::infra_env::{ImageType, InfraEnv};
use model::time::Timestamp;

use crate::event::{NewEvent, about_host};
use crate::host::progress;
use crate::snapshot::host_state::HostState;
use crate::snapshot::roles;

/// Statuses of a cluster that accepts hosts and changes.
/// Source: assisted-service, internal/cluster/cluster.go, AcceptRegistration.
pub(crate) const OPEN: &[ClusterStatus] = &[
    ClusterStatus::Insufficient,
    ClusterStatus::Ready,
    ClusterStatus::PendingForInput,
    ClusterStatus::AddingHosts,
];

/// The record of a host that registers for the first time.
///
/// Errors: Invalid – the infra-env's image takes no registrations; Conflict – the cluster does not accept hosts.
/// Source: assisted-service, internal/bminventory/inventory.go, V2RegisterHost.
pub fn new_host(
    params: &HostCreateParams,
    infra_env: &InfraEnv,
    cluster: Option<&Cluster>,
    now: Timestamp,
) -> Result<HostState, Error> {
    if infra_env.r#type == ImageType::DisconnectedIso {
        return Err(Error::invalid(
            "infra_env_id",
            format!(
                "infra-env {} makes a disconnected image, whose hosts do not register here",
                infra_env.id
            ),
        ));
    }
    if let Some(cluster) = cluster {
        accepts_hosts(cluster)?;
    }
    let single_node = cluster.is_some_and(|one| roles::is_single_node(one) && !is_day2(one));
    let is_joining = cluster.is_some_and(is_day2);
    // A host that joins an installed cluster is a worker, unless the user decides otherwise.
    let role = if is_joining {
        Some(HostRole::Worker)
    } else {
        single_node.then_some(HostRole::Master)
    };
    let status = if cluster.is_some() {
        HostStatus::Discovering
    } else {
        HostStatus::DiscoveringUnbound
    };
    let mut host = Host {
        kind: kind(cluster),
        id: params.host_id,
        href: format!(
            "/api/assisted-install/v2/infra-envs/{}/hosts/{}",
            infra_env.id, params.host_id
        ),
        cluster_id: cluster.map(|cluster| cluster.id),
        infra_env_id: infra_env.id,
        status,
        status_info: "Waiting for the host to send its inventory".to_owned(),
        status_updated_at: now.into(),
        role: Some(role.unwrap_or(HostRole::AutoAssign)),
        suggested_role: role,
        machine_config_pool_name: if is_joining {
            HostRole::Worker.as_str().to_owned()
        } else {
            String::new()
        },
        bootstrap: single_node,
        progress: Some(HostProgressInfo::default()),
        created_at: now.into(),
        updated_at: now.into(),
        registered_at: now.into(),
        checked_in_at: now.into(),
        media_status: Some(MediaStatus::Connected),
        discovery_agent_version: params.discovery_agent_version.clone(),
        ..Host::default()
    };
    if let Some(cluster) = cluster {
        host.progress_stages = progress::stages(&host, cluster).to_vec();
    }
    Ok(HostState::new(host))
}

/// Errors: Conflict – the cluster's status accepts no hosts.
pub(super) fn accepts_hosts(cluster: &Cluster) -> Result<(), Error> {
    if OPEN.contains(&cluster.status) {
        return Ok(());
    }
    let open: Vec<&str> = OPEN.iter().map(|status| status.as_str()).collect();
    Err(Error::conflict(format!(
        "cluster {} is {} and accepts no hosts now; it accepts them while {}",
        cluster.id,
        cluster.status,
        open.join(", ")
    )))
}

/// Checks that a machine which registers through another infra-env of the cluster may take the place of this host, which
/// has its id: a machine that has booted another image is silent here.
///
/// Errors: Invalid – the host is still heard of. Not Conflict, after which the agent would never ask again.
/// Source: assisted-installer-agent, src/commands/register_node.go. The peer lists both, as hosts of their infra-envs.
pub fn check_replaced(host: &HostState) -> Result<(), Error> {
    if host.record.status == HostStatus::Disconnected {
        return Ok(());
    }
    Err(Error::invalid(
        "host_id",
        format!(
            "cluster has a host {} already, through infra-env {}: it is replaced when it is disconnected, or delete it",
            host.record.id, host.record.infra_env_id
        ),
    ))
}

/// The event of a removal.
pub fn deregistered(host: &HostState) -> NewEvent {
    about_host(
        host,
        "host_deregistered",
        EventSeverity::Info,
        "deregistered",
    )
}

/// The event of a registration.
pub fn registered(host: &HostState) -> NewEvent {
    about_host(
        host,
        "host_registration_succeeded",
        EventSeverity::Info,
        "registered",
    )
}

/// Kind of a cluster's hosts.
pub(super) fn kind(cluster: Option<&Cluster>) -> HostKind {
    if cluster.is_some_and(is_day2) {
        HostKind::AddToExistingClusterHost
    } else {
        HostKind::Host
    }
}

/// Whether the cluster is installed and accepts day-2 hosts.
pub(crate) fn is_day2(cluster: &Cluster) -> bool {
    cluster.kind == ClusterKind::AddHostsCluster
}
