//! Use cases of day 2: hosts that join installed clusters, and clusters that are not installed here.

use std::sync::Arc;

use model::Error;
use model::cluster::{Cluster, DisconnectedClusterCreateParams, ImportClusterParams};
use model::host::{Host, HostKind, HostRole, HostStatus};
use model::ids::{ClusterId, HostId, InfraEnvId};
use preparation::day2;
use rules::HostState;
use rules::Snapshot;
use rules::cluster::Trigger as ClusterTrigger;
use rules::host::Trigger;
use rules::steps::IgnitionAccess;
use uuid::Uuid;

use super::clusters::Clusters;
use super::hosts::Hosts;
use super::installation::trigger;
use super::steps::ignition_access;
use super::{ClusterStore, ClusterTransaction, Scope, request};
use crate::auth::Caller;

/// Lets an installed cluster accept further hosts.
///
/// Errors: Invalid – it is not installed.
pub(crate) async fn allow_add_hosts(
    clusters: &Arc<ClusterStore>,
    id: ClusterId,
) -> Result<Cluster, Error> {
    trigger(clusters, "allow add hosts", id, ClusterTrigger::AddHosts).await
}

impl Clusters {
    /// Creates the record of a cluster that is installed already.
    ///
    /// Errors: Invalid; Conflict – `MAX_CLUSTERS` reached.
    pub(crate) async fn import(
        &self,
        caller: &Caller,
        params: ImportClusterParams,
    ) -> Result<Cluster, Error> {
        let now = service::clock::now();
        let cluster = rules::cluster::create::imported_cluster(params, Uuid::new_v4(), now)?;
        self.insert(caller, cluster, None, "", now).await
    }

    /// Creates the record of a cluster that a disconnected image installs.
    ///
    /// Errors: Invalid; Conflict – `MAX_CLUSTERS` reached.
    pub(crate) async fn register_disconnected(
        &self,
        caller: &Caller,
        params: DisconnectedClusterCreateParams,
    ) -> Result<Cluster, Error> {
        let now = service::clock::now();
        let cluster = rules::cluster::create::disconnected_cluster(params, Uuid::new_v4(), now)?;
        self.insert(caller, cluster, None, "", now).await
    }
}

impl Hosts {
    /// Starts the installation of a day-2 host.
    ///
    /// Errors: Conflict – it has no installed cluster, is not known, or changed meanwhile; Invalid – its ignition cannot
    /// be made.
    pub(crate) async fn install(&self, infra_env: InfraEnvId, id: HostId) -> Result<Host, Error> {
        let scope = Scope::Host(infra_env, id);
        let assign = |change: &mut ClusterTransaction| {
            let (host, _) = day2_host(change, id)?;
            if matches!(host.record.role, None | Some(HostRole::AutoAssign)) {
                host.record.role = Some(HostRole::Worker);
            }
            change.refresh();
            let (host, cluster) = day2_host(change, id)?;
            check_known(host)?;
            Ok(cluster)
        };
        let (cluster, stored) = self
            .clusters
            .change("assign day-2 role", scope, &assign)
            .await?;
        let ignition = self.node_ignition(&stored.snapshot, id).await?;
        // Before the transition: the next poll makes the agent download it.
        if !request::is_dry_run() {
            let put = self
                .files
                .put(cluster, &ignition.name, ignition.content.clone());
            put.await?;
        }
        let access = &ignition.access;
        let start = |change: &mut ClusterTransaction| {
            // Assigned again: a dry run has rolled the first assignment back.
            assign(change)?;
            let (now, target) = (change.now, change.snapshot.cluster.clone());
            let (host, _) = day2_host(change, id)?;
            if day2::pointer(&target, host, access)?.to_json() != ignition.content {
                return Err(Error::conflict(format!(
                    "host {id} changed while its ignition was made: retry"
                )));
            }
            let new = rules::host::apply(
                host,
                Some(&target),
                Trigger::Install,
                &self.clusters.policy,
                now,
            )?;
            change.events.extend(new);
            change.refresh();
            Ok(())
        };
        self.change("install day-2 host", infra_env, id, start)
            .await
    }

    async fn node_ignition(&self, snapshot: &Snapshot, id: HostId) -> Result<NodeIgnition, Error> {
        let host = snapshot.host(id);
        let host = host.ok_or_else(|| Error::not_found("host", id))?;
        let certificates = day2::certificates(&snapshot.cluster, &host.record)?;
        let access = ignition_access(&self.db, &host.record, certificates).await?;
        let config = day2::pointer(&snapshot.cluster, host, &access)?;
        Ok(NodeIgnition {
            name: preparation::file_name(&host.record),
            content: config.to_json(),
            access,
        })
    }

    /// Resets a day-2 host, or a failed host of a cluster that is being installed: it is installed again after its user
    /// booted the discovery image.
    ///
    /// Errors: Conflict – it is unbound, its status forbids it, or it cannot be retried alone.
    pub(crate) async fn reset(&self, infra_env: InfraEnvId, id: HostId) -> Result<Host, Error> {
        let host = self.get(infra_env, id).await?;
        let reset = |change: &mut ClusterTransaction| {
            let now = change.now;
            let (host, _) = bound_host(change, id)?;
            let new = if host.record.kind == HostKind::AddToExistingClusterHost {
                let target = change.snapshot.cluster.clone();
                let (host, _) = change.host(id)?;
                let policy = &self.clusters.policy;
                rules::host::apply(host, Some(&target), Trigger::Reset, policy, now)?
            } else {
                // The cluster may have failed since its last refresh.
                change.refresh();
                rules::host::retry(&mut change.snapshot, id, &self.clusters.policy, now)?
            };
            change.events.extend(new);
            change.refresh();
            Ok(())
        };
        let result = self.change("reset host", infra_env, id, reset).await;
        self.record_refusal("host_installation_reset_failed", "error", &host, &result)
            .await?;
        result
    }

    /// Drops the stored result of a host's validation; the agent checks again.
    ///
    /// Errors: Conflict – the host is unbound; Invalid – the validation cannot be reset.
    pub(crate) async fn reset_validation(
        &self,
        infra_env: InfraEnvId,
        id: HostId,
        validation: &str,
    ) -> Result<(), Error> {
        let reset = |change: &mut ClusterTransaction| {
            let (host, cluster) = change.host(id)?;
            if cluster.is_none() {
                return Err(unbound(id));
            }
            rules::cluster::update::reset_validation(host, validation)?;
            change.refresh();
            Ok(())
        };
        self.change("reset host validation", infra_env, id, reset)
            .await
            .map(drop)
    }
}

/// The ignition config of a day-2 host, with its inputs.
struct NodeIgnition {
    name: String,
    content: Vec<u8>,
    access: IgnitionAccess,
}

/// A host and its cluster's id.
///
/// Errors: Conflict – it is unbound.
fn bound_host(
    change: &mut ClusterTransaction,
    id: HostId,
) -> Result<(&mut HostState, ClusterId), Error> {
    let (host, cluster) = change.host(id)?;
    let cluster = cluster.ok_or_else(|| unbound(id))?.id;
    Ok((host, cluster))
}

/// A host that joins an installed cluster, and the cluster's id.
///
/// Errors: Conflict – it is another kind of host.
/// Source: assisted-service, internal/bminventory/inventory.go, V2InstallHost, V2ResetHost.
fn day2_host(
    change: &mut ClusterTransaction,
    id: HostId,
) -> Result<(&mut HostState, ClusterId), Error> {
    let (host, cluster) = bound_host(change, id)?;
    if host.record.kind != HostKind::AddToExistingClusterHost {
        return Err(Error::conflict(format!(
            "host {id} does not join an installed cluster: use the action of its cluster"
        )));
    }
    Ok((host, cluster))
}

fn unbound(id: HostId) -> Error {
    Error::conflict(format!(
        "host {id} is not bound to a cluster: bind it first"
    ))
}

fn check_known(host: &HostState) -> Result<(), Error> {
    let record = &host.record;
    if record.status == HostStatus::Known {
        return Ok(());
    }
    Err(Error::conflict(format!(
        "host {} is {} and cannot be installed: {}",
        record.id, record.status, record.status_info
    )))
}
