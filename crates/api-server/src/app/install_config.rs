//! Use cases of the install-config.

use std::sync::Arc;

use model::Error;
use model::cluster::ClusterKind;
use model::ids::ClusterId;

use super::preparation::Preparations;
use super::redacted_files::{redacted_install_config, sees_secrets_of_cluster};
use super::{ClusterStore, ClusterTransaction, Scope};
use crate::auth::Caller;

impl Preparations {
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
        let input = self.input(&stored).await?;
        preparation::install_config(&self.install, &input)
    }

    /// The same, as a caller sees it.
    ///
    /// Errors: as [`Self::install_config`].
    pub(crate) async fn shown_install_config(
        &self,
        caller: &Caller,
        id: ClusterId,
    ) -> Result<String, Error> {
        let text = self.install_config(id).await?;
        if sees_secrets_of_cluster(&self.clusters, caller, id).await? {
            return Ok(text);
        }
        redacted_install_config(&text)
    }
}

/// Replaces the overrides of the install-config.
///
/// Errors: NotFound; Conflict – the cluster is being installed; Invalid – malformed overrides.
pub(crate) async fn update_install_config(
    clusters: &Arc<ClusterStore>,
    id: ClusterId,
    overrides: &str,
) -> Result<(), Error> {
    let decide = |change: &mut ClusterTransaction| {
        let new = rules::install_config::update(&mut change.snapshot, overrides)?;
        change.events.extend(new);
        change.refresh();
        Ok(())
    };
    clusters
        .change("update install-config", Scope::Cluster(id), decide)
        .await
        .map(drop)
}
