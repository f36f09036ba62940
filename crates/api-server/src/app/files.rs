//! Use cases about the files of an installation.

use model::Error;
use model::cluster::{Cluster, ClusterStatus};
use model::ids::{ClusterId, HostId, InfraEnvId};

use super::App;
use crate::files::Object;
use crate::install;

/// Trusts the API and the ingress.
pub(crate) const KUBECONFIG: &str = "kubeconfig";
/// Trusts the API alone.
pub(crate) const KUBECONFIG_NOINGRESS: &str = "kubeconfig-noingress";
/// The first user's password.
pub(crate) const KUBEADMIN_PASSWORD: &str = "kubeadmin-password";

/// Whether the cluster's state lets that file be downloaded.
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
        "cluster {} is {}: {name} can be downloaded once its installation has come far enough",
        cluster.id, cluster.status
    )))
}

impl App {
    /// A file of an installation.
    ///
    /// Errors: Conflict – it does not exist yet.
    pub(crate) async fn download(&self, id: ClusterId, name: &str) -> Result<Object, Error> {
        let stored = self.stored_cluster(id).await?;
        check_downloadable(&stored.snapshot.cluster, name)?;
        self.cluster_file(&stored.snapshot.cluster, name).await
    }

    /// A file by which a user gets into the cluster. Before the ingress is trusted there is a kubeconfig without it.
    pub(crate) async fn download_credentials(
        &self,
        id: ClusterId,
        name: &str,
    ) -> Result<Object, Error> {
        let stored = self.stored_cluster(id).await?;
        let cluster = &stored.snapshot.cluster;
        if name == KUBECONFIG && !stored.snapshot.files.kubeconfig {
            check_downloadable(cluster, KUBECONFIG_NOINGRESS)?;
            return self.cluster_file(cluster, KUBECONFIG_NOINGRESS).await;
        }
        check_downloadable(cluster, name)?;
        self.cluster_file(cluster, name).await
    }

    pub(super) async fn cluster_file(
        &self,
        cluster: &Cluster,
        name: &str,
    ) -> Result<Object, Error> {
        match self.store.get(cluster.id, name).await {
            Err(Error::NotFound { .. }) => Err(Error::conflict(format!(
                "{name} of cluster {} was not found: the installation did not make it",
                cluster.id
            ))),
            result => result,
        }
    }

    /// The ignition that a host is installed with, and the name of its file.
    ///
    /// Errors: Conflict – it does not exist yet.
    pub(crate) async fn host_ignition(
        &self,
        infra_env: InfraEnvId,
        id: HostId,
    ) -> Result<(String, Object), Error> {
        let host = self.host(infra_env, id).await?;
        let Some(cluster) = host.cluster_id else {
            return Err(Error::conflict(format!(
                "host {id} is not bound to a cluster"
            )));
        };
        let name = install::file_name(&host);
        match self.store.get(cluster, &name).await {
            Ok(object) => Ok((name, object)),
            Err(Error::NotFound { .. }) => Err(Error::conflict(format!(
                "the ignition of host {id} does not exist yet: it is made when the installation is prepared"
            ))),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_installing_only_the_kubeconfig_waits() {
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
