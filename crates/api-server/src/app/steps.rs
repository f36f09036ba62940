//! Steps of a host, with their inputs.

use std::sync::Arc;

use model::Error;
use model::host::{Host, HostKind, HostStatus};
use model::infra_env::InfraEnv;
use model::steps::Steps;
use model::time::Timestamp;
use preparation::day2;
use rules::HostState;
use rules::InstallationPolicy;
use rules::steps::{IgnitionAccess, ReleaseImages, StepContext};
use rules::urls::BootArtifacts;

use super::StoredSnapshot;
use super::infra_envs::HostOrigin;
use super::ipxe::boot_artifacts;
use super::offer::CurrentOffer;
use super::token_validity::InfraEnvTokens;
use crate::db::{Database, hosts, tx};

/// Steps of agents, by the rules and settings of this server.
#[derive(Debug)]
pub(super) struct AgentSteps {
    pub(super) db: Database,
    pub(super) policy: Arc<InstallationPolicy>,
    pub(super) settings: rules::steps::Settings,
    pub(super) offer: Arc<CurrentOffer>,
    pub(super) tokens: Arc<InfraEnvTokens>,
}

impl AgentSteps {
    /// Next steps of a host.
    pub(super) async fn instructions(
        &self,
        stored: &StoredSnapshot,
        host: &HostState,
        origin: &HostOrigin,
        now: Timestamp,
    ) -> Result<Steps, Error> {
        let (record, infra_env) = (&host.record, &origin.record);
        let known = &stored.release;
        let cluster = record.cluster_id.map(|_| &stored.snapshot.cluster);
        let release = ReleaseImages {
            release: cluster
                .map(|cluster| cluster.ocp_release_image.clone())
                .unwrap_or_default(),
            machine_config_operator: known.machine_config_operator.clone(),
            must_gather: known.must_gather.clone(),
            operating_system: String::new(),
        };
        let ignition = match record.kind {
            HostKind::AddToExistingClusterHost => {
                // A poll does not fail: the request to install the host names a malformed certificate.
                let certificates = day2::certificates(&stored.snapshot.cluster, record);
                ignition_access(&self.db, record, certificates.unwrap_or_default()).await?
            }
            HostKind::Host => IgnitionAccess::default(),
        };
        let boot_artifacts = match record.status {
            HostStatus::Reclaiming => self.reclaim_artifacts(infra_env).await,
            _ => None,
        };
        let ctx = StepContext {
            policy: &self.policy,
            settings: &self.settings,
            // An installed cluster has no release here: its new hosts run the images of their infra-env's.
            components: &stored.snapshot.components.or(&origin.components),
            infra_env,
            release: &release,
            ignition: &ignition,
            boot_artifacts: boot_artifacts.as_ref(),
        };
        let snapshot = cluster.map(|_| &stored.snapshot);
        Ok(rules::steps::instructions(snapshot, host, &ctx, now))
    }

    /// Boot artifacts of a reclaimed host. A poll does not fail without them: the reclaim times out.
    async fn reclaim_artifacts(&self, infra_env: &InfraEnv) -> Option<BootArtifacts> {
        match boot_artifacts(&self.offer, &self.tokens, infra_env).await {
            Ok(artifacts) => Some(artifacts),
            Err(error) => {
                tracing::warn!(
                    infra_env.id = %infra_env.id,
                    error = error.chain(),
                    "host not reclaimed: its infra-env has no boot artifacts"
                );
                None
            }
        }
    }
}

/// Credentials of a day-2 host for its ignition endpoint, with the endpoint's certificate authorities.
pub(super) async fn ignition_access(
    db: &Database,
    host: &Host,
    certificates: Option<String>,
) -> Result<IgnitionAccess, Error> {
    let (infra_env, id) = (host.infra_env_id, host.id);
    let secrets = tx("read endpoint secrets", async || {
        let mut connection = db.pool()?.acquire().await?;
        hosts::endpoint_secrets(&mut connection, &db.keys().await, infra_env, id).await
    })
    .await?;
    let headers = secrets
        .headers
        .as_deref()
        .map(serde_json::from_str)
        .transpose();
    Ok(IgnitionAccess {
        token: secrets.token,
        headers: headers
            .map_err(|error| Error::internal("reading the endpoint's headers", error))?
            .unwrap_or_default(),
        certificates,
    })
}
