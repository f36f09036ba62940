//! Use cases of hosts, as users change them.

use std::sync::Arc;

use cluster_files::FileStore;
use model::Error;
use model::host::{Host, HostStatus, HostUpdateParams};
use model::ids::{HostId, InfraEnvId};
use rules::HostState;
use uuid::Uuid;

use super::events::Events;
use super::infra_envs::find_infra_env;
use super::logs::LogSource;
use super::{ClusterStore, ClusterTransaction, Heartbeats, Scope, render, request};
use crate::db::hosts::{self, HostRow};
use crate::db::{Database, RecordPage, tx};

/// Statuses in which a host must not be deleted: its disks are being written.
const BEING_INSTALLED: &[HostStatus] = &[
    HostStatus::PreparingForInstallation,
    HostStatus::PreparingSuccessful,
    HostStatus::Installing,
    HostStatus::InstallingInProgress,
];

/// Hosts, as users manage them.
#[derive(Debug)]
pub(crate) struct Hosts {
    pub(super) db: Database,
    pub(super) clusters: Arc<ClusterStore>,
    pub(super) heartbeats: Arc<Heartbeats>,
    pub(super) files: FileStore,
    pub(super) events: Arc<Events>,
}

impl Hosts {
    /// Ids of the hosts of an infra-env, in the order of their registration.
    ///
    /// Errors: NotFound.
    pub(crate) async fn ids(&self, infra_env: InfraEnvId) -> Result<Vec<Uuid>, Error> {
        find_infra_env(&self.db, infra_env).await?;
        tx("list hosts", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            hosts::ids(&mut connection, infra_env).await
        })
        .await
    }

    /// A page of those hosts.
    pub(crate) async fn page(
        &self,
        infra_env: InfraEnvId,
        ids: &[Uuid],
    ) -> Result<RecordPage<Host>, Error> {
        let page = tx("list hosts", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            hosts::page(&mut connection, &self.db.keys().await, infra_env, ids).await
        })
        .await?;
        let shown = |mut row: HostRow| {
            self.heartbeats.apply(&mut row.record);
            render::host_record(&row.record)
        };
        Ok(page.with(|rows| rows.into_iter().map(shown).collect()))
    }

    /// One host.
    pub(crate) async fn get(&self, infra_env: InfraEnvId, id: HostId) -> Result<Host, Error> {
        let row = tx("read host", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            hosts::find(&mut connection, &self.db.keys().await, infra_env, id).await
        })
        .await?;
        let mut host = row.ok_or_else(|| Error::not_found("host", id))?.record;
        self.heartbeats.apply(&mut host);
        Ok(render::host_record(&host))
    }

    /// Updates a host with a user's parameters.
    pub(crate) async fn update(
        &self,
        infra_env: InfraEnvId,
        id: HostId,
        params: &HostUpdateParams,
    ) -> Result<Host, Error> {
        let headers = params
            .ignition_endpoint_http_headers
            .as_ref()
            .map(serde_json::to_string)
            .transpose()
            .map_err(|error| Error::internal("writing the endpoint's headers", error))?;
        let secrets = hosts::EndpointSecrets {
            token: params.ignition_endpoint_token.clone(),
            headers,
        };
        let decide = |change: &mut ClusterTransaction| {
            let (host, cluster) = change.host(id)?;
            let new = rules::cluster::update::host(host, cluster, params.clone())?;
            change.events.extend(new);
            if secrets.token.is_some() || secrets.headers.is_some() {
                change.side_writes.endpoint = Some((infra_env, id, secrets.clone()));
            }
            change.refresh();
            Ok(())
        };
        self.change("update host", infra_env, id, decide).await
    }

    /// Removes a host.
    ///
    /// Errors: Conflict – it is being installed.
    pub(crate) async fn deregister(&self, infra_env: InfraEnvId, id: HostId) -> Result<(), Error> {
        let decide = |change: &mut ClusterTransaction| {
            let (host, _) = change.host(id)?;
            if BEING_INSTALLED.contains(&host.record.status) {
                return Err(Error::conflict(format!(
                    "host {} is {}: cancel the installation before deleting it",
                    host.name(),
                    host.record.status
                )));
            }
            let cluster = host.record.cluster_id;
            let event = rules::host::deregistered(host);
            change.events.push(event);
            change.snapshot.hosts.retain(|host| host.record.id != id);
            rules::cluster::update::release_machine_networks(&mut change.snapshot);
            change.refresh();
            Ok(cluster)
        };
        let (cluster, _) = self
            .clusters
            .change("deregister host", Scope::Host(infra_env, id), decide)
            .await?;
        // Logs of a deleted host cannot be downloaded, but count towards the quota of the cluster.
        if let Some(cluster) = cluster.filter(|_| !request::is_dry_run()) {
            let logs = LogSource::Host(id).object();
            self.files.delete(cluster, &logs).await?;
        }
        Ok(())
    }

    /// Stores extra arguments of a host's installer.
    pub(crate) async fn set_installer_args(
        &self,
        infra_env: InfraEnvId,
        id: HostId,
        args: &[String],
    ) -> Result<Host, Error> {
        self.change("update installer args", infra_env, id, |change| {
            let (host, _) = change.host(id)?;
            let new = rules::cluster::update::installer_args(host, args)?;
            change.events.extend(new);
            Ok(())
        })
        .await
    }

    /// Stores the ignition override of a host.
    pub(crate) async fn set_ignition(
        &self,
        infra_env: InfraEnvId,
        id: HostId,
        config: &str,
    ) -> Result<Host, Error> {
        self.change("update host ignition", infra_env, id, |change| {
            let (host, _) = change.host(id)?;
            let new = rules::cluster::update::host_ignition(host, config)?;
            change.events.extend(new);
            Ok(())
        })
        .await
    }

    /// Changes a host and returns its new record.
    pub(super) async fn change(
        &self,
        name: &'static str,
        infra_env: InfraEnvId,
        id: HostId,
        decide: impl Fn(&mut ClusterTransaction) -> Result<(), Error>,
    ) -> Result<Host, Error> {
        let ((), stored) = self
            .clusters
            .change(name, Scope::Host(infra_env, id), decide)
            .await?;
        let host: Option<&HostState> = stored.snapshot.host(id);
        host.map(render::host)
            .ok_or_else(|| Error::not_found("host", id))
    }
}
