//! Use cases of late binding: pool hosts join clusters and leave them.

use model::Error;
use model::events::EventSeverity;
use model::host::{BindHostParams, Host};
use model::ids::{ClusterId, HostId, InfraEnvId};
use rules::NewEvent;

use super::hosts::Hosts;
use super::{ClusterTransaction, Scope, infra_envs, render};

impl Hosts {
    /// Binds a pool host to a cluster.
    ///
    /// Errors: NotFound – the host; Invalid – the cluster is unknown or does not fit; Conflict – the host is bound or not
    /// known, or the cluster accepts no hosts.
    pub(crate) async fn bind(
        &self,
        infra_env: InfraEnvId,
        id: HostId,
        params: &BindHostParams,
    ) -> Result<Host, Error> {
        let host = self.get(infra_env, id).await?;
        let result = self.bind_checked(&host, params.cluster_id).await;
        self.record_refusal("host_bind_failed", "message", &host, &result)
            .await?;
        result
    }

    async fn bind_checked(&self, host: &Host, cluster: ClusterId) -> Result<Host, Error> {
        if let Some(bound) = host.cluster_id {
            return Err(Error::conflict(format!(
                "host {} is bound to cluster {bound} already: unbind it first",
                host.id
            )));
        }
        let infra_env = infra_envs::infra_env(&self.db, host.infra_env_id).await?;
        let decide = |change: &mut ClusterTransaction| {
            let now = change.now;
            let target = change.snapshot.cluster.clone();
            let (host, _) = change.host(host.id)?;
            let new = rules::host::bind(host, &infra_env, &target, &self.clusters.policy, now)?;
            change.events.extend(new);
            change.refresh();
            Ok(())
        };
        let scope = Scope::Binding(cluster, infra_env.id, host.id);
        let changed = self.clusters.change("bind host", scope, decide).await;
        let ((), stored) = changed.map_err(|error| match error {
            Error::NotFound {
                kind: "cluster",
                id,
            } => Error::invalid("cluster_id", format!("cluster {id} does not exist")),
            error => error,
        })?;
        let host = stored.snapshot.host(host.id).map(render::host);
        host.ok_or_else(|| Error::not_found("host", infra_env.id))
    }

    /// Unbinds a host from its cluster.
    ///
    /// Errors: Conflict – it is unbound or being installed, or its infra-env belongs to a cluster.
    pub(crate) async fn unbind(&self, infra_env: InfraEnvId, id: HostId) -> Result<Host, Error> {
        let host = self.get(infra_env, id).await?;
        let result = self.unbind_checked(&host).await;
        self.record_refusal("host_unbind_failed", "message", &host, &result)
            .await?;
        result
    }

    async fn unbind_checked(&self, host: &Host) -> Result<Host, Error> {
        let id = host.id;
        let infra_env = infra_envs::infra_env(&self.db, host.infra_env_id).await?;
        let decide = |change: &mut ClusterTransaction| {
            let now = change.now;
            let (host, cluster) = change.host(id)?;
            if cluster.is_none() {
                return Err(Error::conflict(format!("host {id} is unbound already")));
            }
            let new = rules::host::unbind(host, &infra_env, &self.clusters.policy, now)?;
            let shown = render::host(host);
            change.events.extend(new);
            change.release(id);
            change.refresh();
            Ok(shown)
        };
        let scope = Scope::Host(infra_env.id, id);
        let (host, _) = self.clusters.change("unbind host", scope, decide).await?;
        Ok(host)
    }

    /// Records the event of a refused request of a user to a host, with the reason as property `reason`.
    pub(super) async fn record_refusal<T>(
        &self,
        name: &'static str,
        reason: &'static str,
        host: &Host,
        result: &Result<T, Error>,
    ) -> Result<(), Error> {
        let Err(error @ (Error::Conflict { .. } | Error::Invalid { .. })) = result else {
            return Ok(());
        };
        let host_name = rules::name_of(host);
        let text = format!("Host {host_name}: {}: {error}", name.replace('_', " "));
        let event = NewEvent::new(name, EventSeverity::Error, text)
            .host(host)
            .prop("host_name", host_name)
            .prop(reason, error);
        self.events.record(&[event]).await
    }
}
