//! Late binding: a pool host joins a cluster, and leaves it again.

use model::Error;
use model::cluster::Cluster;
use model::events::EventSeverity;
use model::host::{HostRole, HostStatus};
use model::infra_env::InfraEnv;
use model::time::Timestamp;
use model::versions::CpuArchitecture;

use super::registration::accepts_hosts;
use super::role_support;
use super::transition::apply;
use super::trigger::Trigger;
use crate::event::{NewEvent, about_host};
use crate::policy::InstallationPolicy;
use crate::snapshot::host_state::HostState;

/// Statuses in which a user cannot unbind a host.
/// Source: assisted-service, internal/host/common.go, HostInstallingStatuses.
const BEING_INSTALLED: &[HostStatus] = &[
    HostStatus::PreparingForInstallation,
    HostStatus::PreparingFailed,
    HostStatus::PreparingSuccessful,
    HostStatus::Installing,
    HostStatus::InstallingInProgress,
    HostStatus::InstallingPendingUserAction,
];

/// Binds a pool host to a cluster: its agent exits and registers again.
///
/// Errors: Invalid – the cluster takes no host of that architecture, role or fencing; Conflict – the cluster accepts no
/// hosts, or the host is not known-unbound.
/// Source: assisted-service, internal/bminventory/inventory.go, BindHostInternal.
pub fn bind(
    host: &mut HostState,
    infra_env: &InfraEnv,
    cluster: &Cluster,
    policy: &InstallationPolicy,
    now: Timestamp,
) -> Result<Vec<NewEvent>, Error> {
    check_architecture(infra_env, cluster)?;
    if host.record.role == Some(HostRole::Arbiter) {
        role_support::check_arbiter(Some(cluster))?;
    }
    if !host.record.fencing_credentials.is_empty() {
        role_support::check_fencing(Some(cluster))?;
    }
    accepts_hosts(cluster)?;
    let mut events = apply(host, Some(cluster), Trigger::Bind, policy, now)?;
    events.push(about_host(
        host,
        "host_bind_succeeded",
        EventSeverity::Info,
        &format!("bound to cluster {}", cluster.name),
    ));
    Ok(events)
}

fn check_architecture(infra_env: &InfraEnv, cluster: &Cluster) -> Result<(), Error> {
    let booted = infra_env.cpu_architecture;
    match cluster.cpu_architecture {
        None | Some(CpuArchitecture::Multi) => Ok(()),
        wanted if wanted == booted => Ok(()),
        Some(wanted) => Err(Error::invalid(
            "cluster_id",
            format!(
                "cluster {} has hosts of architecture {wanted}, and infra-env {} boots {}: choose another cluster",
                cluster.id,
                infra_env.id,
                booted.map_or("none", CpuArchitecture::as_str)
            ),
        )),
    }
}

/// Unbinds a host from its cluster on request of a user: its agent exits and registers again without a cluster.
///
/// Errors: Conflict – its infra-env belongs to a cluster, or it is being installed.
/// Source: assisted-service, internal/bminventory/inventory.go, UnbindHost, UnbindHostInternal.
pub fn unbind(
    host: &mut HostState,
    infra_env: &InfraEnv,
    policy: &InstallationPolicy,
    now: Timestamp,
) -> Result<Vec<NewEvent>, Error> {
    let (id, status) = (host.record.id, host.record.status);
    if BEING_INSTALLED.contains(&status) {
        return Err(Error::conflict(format!(
            "host {id} is {status}: cancel the installation before unbinding it"
        )));
    }
    if let Some(cluster) = infra_env.cluster_id {
        return Err(Error::conflict(format!(
            "host {id} booted the image of infra-env {}, which belongs to cluster {cluster}: delete the host instead",
            infra_env.id
        )));
    }
    let mut events = leave(host, policy, now)?;
    events.push(about_host(
        host,
        "host_unbind_succeeded",
        EventSeverity::Info,
        "unbound from its cluster",
    ));
    Ok(events)
}

/// Unbinds a host whose cluster is deleted.
///
/// Errors: Conflict – its status has no rule.
/// Source: assisted-service, internal/bminventory/inventory.go, deleteOrUnbindHosts.
pub fn leave(
    host: &mut HostState,
    policy: &InstallationPolicy,
    now: Timestamp,
) -> Result<Vec<NewEvent>, Error> {
    apply(host, None, Trigger::Unbind, policy, now)
}

#[cfg(test)]
mod tests {
    use model::cluster::ClusterStatus;
    use model::ids::ClusterId;

    use super::*;
    use crate::fixtures;

    fn pool_host() -> HostState {
        let mut host = fixtures::host(0, HostRole::AutoAssign, 1);
        host.record.cluster_id = None;
        host.record.status = HostStatus::KnownUnbound;
        host
    }

    fn bound(change: impl Fn(&mut HostState, &mut Cluster)) -> Result<HostState, Error> {
        let (mut host, mut cluster) = (pool_host(), fixtures::cluster(3));
        cluster.cpu_architecture = Some(CpuArchitecture::X86_64);
        change(&mut host, &mut cluster);
        let infra_env = InfraEnv {
            cpu_architecture: Some(CpuArchitecture::X86_64),
            ..InfraEnv::default()
        };
        let policy = InstallationPolicy::default();
        bind(&mut host, &infra_env, &cluster, &policy, fixtures::now()).map(|_| host)
    }

    #[test]
    fn a_bound_host_keeps_the_choices_of_its_user() {
        let host = bound(|host, _| {
            host.record.role = Some(HostRole::Worker);
            host.record.requested_hostname = "alpha".to_owned();
            host.record.machine_config_pool_name = "infra".to_owned();
        });
        let record = host.unwrap().record;
        assert_eq!(record.status, HostStatus::Binding);
        assert_eq!(record.cluster_id, Some(fixtures::cluster(3).id));
        assert!(record.inventory.is_empty(), "the next agent sends it");
        assert_eq!(record.role, Some(HostRole::Worker));
        assert_eq!(record.requested_hostname, "alpha");
        assert_eq!(record.machine_config_pool_name, "infra");
    }

    #[test]
    fn clusters_that_do_not_fit_are_refused() {
        let invalid = |change: fn(&mut HostState, &mut Cluster)| {
            let refused = bound(change).unwrap_err();
            assert!(matches!(refused, Error::Invalid { .. }), "{refused}");
        };
        invalid(|_, cluster| cluster.cpu_architecture = Some(CpuArchitecture::Arm64));
        invalid(|host, cluster| {
            host.record.role = Some(HostRole::Arbiter);
            cluster.openshift_version = "4.18.1".to_owned();
        });
        invalid(|host, _| host.record.fencing_credentials = "{}".to_owned());
        assert!(
            bound(|_, cluster| cluster.cpu_architecture = Some(CpuArchitecture::Multi)).is_ok()
        );
        assert!(bound(|_, cluster| cluster.cpu_architecture = None).is_ok());
        let conflict = |change: fn(&mut HostState, &mut Cluster)| {
            let refused = bound(change).unwrap_err();
            assert!(matches!(refused, Error::Conflict { .. }), "{refused}");
        };
        conflict(|_, cluster| cluster.status = ClusterStatus::Installing);
        conflict(|host, _| host.record.status = HostStatus::InsufficientUnbound);
    }

    #[test]
    fn an_unbound_host_forgets_its_cluster() {
        let policy = InstallationPolicy::default();
        let mut host = fixtures::host(0, HostRole::Master, 3);
        let own = InfraEnv {
            cluster_id: Some(ClusterId::default()),
            ..InfraEnv::default()
        };
        assert!(unbind(&mut host, &own, &policy, fixtures::now()).is_err());
        let pool = InfraEnv::default();
        for status in BEING_INSTALLED {
            host.record.status = *status;
            assert!(unbind(&mut host, &pool, &policy, fixtures::now()).is_err());
        }
        host.record.status = HostStatus::Known;
        let events = unbind(&mut host, &pool, &policy, fixtures::now()).unwrap();
        assert!(events.iter().any(|one| one.name == "host_unbind_succeeded"));
        let record = &host.record;
        assert_eq!(record.status, HostStatus::Unbinding);
        assert_eq!(record.cluster_id, None);
        assert_eq!(record.role, Some(HostRole::AutoAssign));
        assert!(record.connectivity.is_empty() && record.inventory.is_empty());
    }

    #[test]
    fn hosts_of_every_status_leave_a_deleted_cluster() {
        let policy = InstallationPolicy::default();
        for status in HostStatus::ALL {
            let mut host = fixtures::host(0, HostRole::Master, 3);
            host.record.status = *status;
            let is_left = leave(&mut host, &policy, fixtures::now()).is_ok();
            let without_rule = matches!(
                status,
                HostStatus::Disabled
                    | HostStatus::DisabledUnbound
                    | HostStatus::DiscoveringUnbound
                    | HostStatus::KnownUnbound
                    | HostStatus::InsufficientUnbound
                    | HostStatus::DisconnectedUnbound
                    | HostStatus::Unbinding
                    | HostStatus::UnbindingPendingUserAction
                    | HostStatus::Reclaiming
                    | HostStatus::ReclaimingRebooting
            );
            assert_eq!(is_left, !without_rule, "{status}");
        }
    }
}
