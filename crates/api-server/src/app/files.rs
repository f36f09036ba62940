//! Use cases of installation files.

use std::sync::Arc;

use cluster_files::{FileStore, Object};
use model::Error;
use model::cluster::{Cluster, ClusterStatus};
use model::ids::{ClusterId, HostId, InfraEnvId};

use super::ClusterStore;
use super::hosts::Hosts;

/// Kubeconfig with the certificate authorities of the API and the ingress.
pub(crate) const KUBECONFIG: &str = "kubeconfig";
/// Kubeconfig with the certificate authority of the API alone.
pub(crate) const KUBECONFIG_NOINGRESS: &str = "kubeconfig-noingress";
/// Password of the user kubeadmin.
pub(crate) const KUBEADMIN_PASSWORD: &str = "kubeadmin-password";

/// Checks that a file is downloadable in the cluster's state. Source: openshift/assisted-service.
///
/// Errors: Conflict.
pub(super) fn check_downloadable(cluster: &Cluster, name: &str) -> Result<(), Error> {
    let far_enough = match cluster.status {
        ClusterStatus::Finalizing
        | ClusterStatus::Installed
        | ClusterStatus::Error
        | ClusterStatus::AddingHosts
        | ClusterStatus::Cancelled
        | ClusterStatus::InstallingPendingUserAction => true,
        ClusterStatus::Installing => name != KUBECONFIG,
        _ => false,
    };
    if far_enough {
        return Ok(());
    }
    Err(Error::conflict(format!(
        "cluster {} is {}: {name} can be downloaded at a later stage of the installation",
        cluster.id, cluster.status
    )))
}

/// Files of installations.
#[derive(Debug)]
pub(crate) struct ClusterFiles {
    pub(super) clusters: Arc<ClusterStore>,
    pub(super) hosts: Arc<Hosts>,
    pub(super) files: FileStore,
}

impl ClusterFiles {
    /// A file of an installation.
    ///
    /// Errors: Conflict – not made yet.
    pub(crate) async fn get(&self, id: ClusterId, name: &str) -> Result<Object, Error> {
        let stored = self.clusters.stored(id).await?;
        check_downloadable(&stored.snapshot.cluster, name)?;
        cluster_file(&self.files, &stored.snapshot.cluster, name).await
    }

    /// Credentials of a cluster's administrator. Until the ingress certificate is uploaded, the kubeconfig lacks it.
    pub(crate) async fn credentials(&self, id: ClusterId, name: &str) -> Result<Object, Error> {
        let stored = self.clusters.stored(id).await?;
        let cluster = &stored.snapshot.cluster;
        if name == KUBECONFIG && !stored.snapshot.files.kubeconfig {
            check_downloadable(cluster, KUBECONFIG_NOINGRESS)?;
            return cluster_file(&self.files, cluster, KUBECONFIG_NOINGRESS).await;
        }
        check_downloadable(cluster, name)?;
        cluster_file(&self.files, cluster, name).await
    }

    /// Name and content of a host's ignition config.
    ///
    /// Errors: Conflict – not made yet, or the host is unbound.
    pub(crate) async fn host_ignition(
        &self,
        infra_env: InfraEnvId,
        id: HostId,
    ) -> Result<(String, Object), Error> {
        let host = self.hosts.get(infra_env, id).await?;
        let Some(cluster) = host.cluster_id else {
            return Err(Error::conflict(format!(
                "host {id} is not bound to a cluster"
            )));
        };
        let name = preparation::file_name(&host);
        match self.files.get(cluster, &name).await {
            Ok(object) => Ok((name, object)),
            Err(Error::NotFound { .. }) => Err(Error::conflict(format!(
                "the ignition of host {id} does not exist yet: it is made when the installation is prepared"
            ))),
            Err(error) => Err(error),
        }
    }

    /// The ignition config of a bound host, as text.
    ///
    /// Errors: NotFound – the host is unbound; Conflict – not made yet.
    pub(crate) async fn rendered_host_ignition(
        &self,
        infra_env: InfraEnvId,
        id: HostId,
    ) -> Result<String, Error> {
        let host = self.hosts.get(infra_env, id).await?;
        if host.cluster_id.is_none() {
            return Err(Error::not_found("cluster", format!("of host {id}")));
        }
        let (_, object) = self.host_ignition(infra_env, id).await?;
        String::from_utf8(object.bytes().await?)
            .map_err(|error| Error::internal("reading a stored ignition", error))
    }
}

/// A file that the installation of a cluster made.
///
/// Errors: Conflict – it did not make it.
pub(super) async fn cluster_file(
    files: &FileStore,
    cluster: &Cluster,
    name: &str,
) -> Result<Object, Error> {
    match files.get(cluster.id, name).await {
        Err(Error::NotFound { .. }) => Err(Error::conflict(format!(
            "{name} of cluster {} not found: the installation did not make it",
            cluster.id
        ))),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubeconfig_is_not_downloadable_while_installing() {
        let cluster = Cluster {
            status: ClusterStatus::Installing,
            ..Cluster::default()
        };
        assert!(check_downloadable(&cluster, "bootstrap.ign").is_ok());
        assert!(check_downloadable(&cluster, KUBECONFIG).is_err());
        let ready = Cluster {
            status: ClusterStatus::Ready,
            ..Cluster::default()
        };
        assert!(check_downloadable(&ready, "bootstrap.ign").is_err());
    }
}
