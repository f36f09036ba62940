//! Use cases of the install-config.

use model::Error;
use model::cluster::ClusterKind;
use model::ids::ClusterId;

use super::{ApiServer, ClusterTransaction, Scope};
use crate::install;

impl ApiServer {
    /// The install-config of a cluster as it is now, as JSON: with its overrides and its pull secret.
    ///
    /// Errors: NotFound; Invalid – the cluster only takes more hosts, or misses a member that the installer needs.
    /// Source: assisted-service, internal/bminventory/inventory_v2_handlers.go, V2GetClusterInstallConfig.
    pub(crate) async fn install_config(&self, id: ClusterId) -> Result<String, Error> {
        let stored = self.clusters.stored(id).await?;
        if stored.snapshot.cluster.kind == ClusterKind::AddHostsCluster {
            return Err(Error::invalid(
                "cluster_id",
                format!(
                    "cluster {id} only adds hosts to an installed cluster: it has no install-config"
                ),
            ));
        }
        let input = self.preparation_input(&stored).await?;
        install::install_config(&self.install, &input)
    }

    /// Replaces the overrides of the install-config.
    ///
    /// Errors: NotFound; Conflict – the cluster is being installed; Invalid – malformed overrides.
    pub(crate) async fn update_install_config(
        &self,
        id: ClusterId,
        overrides: &str,
    ) -> Result<(), Error> {
        let decide = |change: &mut ClusterTransaction| {
            let new = rules::declarations::install_config::update(&mut change.snapshot, overrides)?;
            change.events.extend(new);
            change.refresh();
            Ok(())
        };
        self.clusters
            .change("update install-config", Scope::Cluster(id), decide)
            .await
            .map(drop)
    }
}
