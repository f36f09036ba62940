//! Files that discovery images boot with: their Ignition, static networks, and the ramdisk of network boots.

use std::sync::Arc;

use model::Error;
use model::ids::InfraEnvId;
use model::infra_env::{ImageType, InfraEnv};
use secrecy::ExposeSecret as _;

use super::ClusterStore;
use super::infra_envs::find_infra_env;
use super::token_validity::InfraEnvTokens;
use crate::db::Database;
use crate::discovery::{self, DiscoveryOptions};

/// Files of the discovery images of infra-envs.
#[derive(Debug)]
pub(crate) struct DiscoveryFiles {
    pub(super) db: Database,
    pub(super) clusters: Arc<ClusterStore>,
    pub(super) tokens: Arc<InfraEnvTokens>,
    pub(super) options: DiscoveryOptions,
}

impl DiscoveryFiles {
    /// The discovery ignition of an infra-env; `image_type` replaces its own type.
    pub(crate) async fn ignition(
        &self,
        id: InfraEnvId,
        image_type: Option<ImageType>,
    ) -> Result<Vec<u8>, Error> {
        let row = find_infra_env(&self.db, id).await?;
        let image_type = image_type.unwrap_or(row.record.r#type);
        // Source: assisted-service, internal/bminventory/inventory.go, V2DownloadInfraEnvFiles.
        if image_type == ImageType::DisconnectedIso && row.record.cluster_id.is_none() {
            return Err(Error::not_found("cluster of infra-env", id));
        }
        let validity = self.tokens.validity(&row.record).await?;
        let secrets = discovery::DiscoverySecrets {
            agent_token: self
                .tokens
                .auth
                .agent_token(id, &row.pull_secret, validity)?,
            pull_secret: row.pull_secret.into(),
        };
        debug_assert!(
            !secrets.pull_secret.expose_secret().is_empty(),
            "checked when it was stored"
        );
        let image = self.clusters.components.or(&row.components).agent;
        let config = discovery::ignition(&row.record, image_type, &image, &secrets, &self.options)?;
        serde_json::to_vec(&config)
            .map_err(|error| Error::internal("writing the discovery ignition", error))
    }

    /// The static networks of an infra-env as a tar archive; empty without any.
    pub(crate) fn static_networks(&self, infra_env: &InfraEnv) -> Result<Vec<u8>, Error> {
        discovery::static_networks(infra_env, &self.options.nmstate_service_from)
    }

    /// The ramdisk of a network boot of an infra-env; empty without content.
    pub(crate) fn minimal_initrd(&self, infra_env: &InfraEnv) -> Result<Vec<u8>, Error> {
        discovery::minimal_initrd(infra_env, &self.options.nmstate_service_from)
    }
}
