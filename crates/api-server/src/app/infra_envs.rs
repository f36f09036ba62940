//! Use cases of infra-envs.

use std::sync::Arc;

use model::Error;
use model::events::EventSeverity;
use model::ids::{ClusterId, InfraEnvId};
use model::infra_env::{InfraEnv, InfraEnvCreateParams, InfraEnvUpdateParams};
use rules::NewEvent;
use secrecy::ExposeSecret as _;
use sqlx::PgConnection;
use uuid::Uuid;

use super::bounded_cache::BoundedCache;
use super::{ApiServer, events, render};
use crate::db::{self, InfraEnvRow, RecordVersion, tx};
use crate::db::{clusters, events as event_rows, infra_envs};
use crate::discovery;

/// Capacity of the infra-envs of polls. Units: bytes.
const CACHE_BYTES: usize = 4 << 20;

/// Infra-envs with the versions of their records.
#[derive(Debug)]
pub(super) struct InfraEnvCache(BoundedCache<InfraEnvId, (RecordVersion, Arc<InfraEnv>)>);

impl Default for InfraEnvCache {
    fn default() -> Self {
        Self(BoundedCache::new(CACHE_BYTES))
    }
}

impl ApiServer {
    /// An infra-env at that version of its record or a later one.
    pub(super) async fn infra_env_at(
        &self,
        connection: &mut PgConnection,
        id: InfraEnvId,
        version: RecordVersion,
    ) -> Result<Arc<InfraEnv>, db::Error> {
        let cache = &self.infra_envs.0;
        if let Some((known, record)) = cache.get(id)
            && known == version
        {
            return Ok(record);
        }
        let row = infra_envs::find(connection, id).await?;
        let row = row.ok_or_else(|| Error::not_found("infra-env", id))?;
        let texts = serde_json::to_vec(&row.record);
        let size = size_of::<InfraEnv>() + texts.map_or(CACHE_BYTES, |texts| texts.len());
        let record = Arc::new(row.record);
        cache.put(id, (row.version, Arc::clone(&record)), size);
        Ok(record)
    }

    /// Creates an infra-env.
    ///
    /// Errors: NotFound – its cluster; Conflict – `MAX_INFRA_ENVS` reached.
    pub(crate) async fn register_infra_env(
        &self,
        params: InfraEnvCreateParams,
    ) -> Result<InfraEnv, Error> {
        let now = service::clock::now();
        let id = Uuid::new_v4();
        let infra_env = tx("register infra-env", async || {
            let mut tx = self.pool()?.begin().await?;
            let cluster = match params.cluster_id {
                Some(id) => clusters::find(&mut tx, id).await?.map(|row| row.record),
                None => None,
            };
            let ctx = rules::create::CreateContext {
                id,
                offer: &self.offer,
                policy: &self.policy,
                cluster: cluster.as_ref(),
            };
            let infra_env = rules::create::infra_env(params.clone(), &ctx, now)?;
            let limit = self.settings.max_infra_envs;
            if infra_envs::count(&mut tx).await? >= limit.into() {
                return Err(Error::conflict(format!(
                    "limit of {limit} infra-envs reached: delete some, or raise MAX_INFRA_ENVS"
                ))
                .into());
            }
            infra_envs::insert(&mut tx, &infra_env, &params.pull_secret, now).await?;
            let text = format!("Registered infra-env {}", infra_env.name);
            let mut event = NewEvent::new("infra_env_registered", EventSeverity::Info, text)
                .infra_env(infra_env.id);
            event.cluster_id = infra_env.cluster_id;
            let records = events::to_record(&[event], now);
            event_rows::insert(&mut tx, &records, self.event_limits, now).await?;
            tx.commit().await?;
            Ok(infra_env)
        })
        .await?;
        Ok(render::infra_env(infra_env))
    }

    /// Infra-envs, oldest first: all or those of one cluster and of one owner.
    pub(crate) async fn list_infra_envs(
        &self,
        cluster: Option<ClusterId>,
        owner: Option<&str>,
    ) -> Result<Vec<InfraEnv>, Error> {
        let found = tx("list infra-envs", async || {
            let mut connection = self.pool()?.acquire().await?;
            infra_envs::list(&mut connection, cluster).await
        })
        .await?;
        let mut found: Vec<InfraEnv> = found.into_iter().map(render::infra_env).collect();
        found.retain(|infra_env| owner.is_none_or(|owner| infra_env.user_name == owner));
        for infra_env in &mut found {
            self.renew_download_url(infra_env);
        }
        Ok(found)
    }

    /// One infra-env.
    pub(crate) async fn infra_env(&self, id: InfraEnvId) -> Result<InfraEnv, Error> {
        let mut infra_env = render::infra_env(self.infra_env_row(id).await?.record);
        self.renew_download_url(&mut infra_env);
        Ok(infra_env)
    }

    /// Recomputes the download URL: the address of the image service may have changed since the record was written.
    fn renew_download_url(&self, infra_env: &mut InfraEnv) {
        let version = Some(infra_env.openshift_version.as_str()).filter(|text| !text.is_empty());
        let architecture = infra_env.cpu_architecture.unwrap_or_default();
        let image = rules::versions::find_os_image(&self.offer.os_images, version, architecture);
        if let Ok(image) = image {
            let service = &self.offer.image_service_url;
            infra_env.download_url =
                rules::urls::download_url(service, infra_env.id, image, infra_env.r#type);
        }
    }

    pub(super) async fn infra_env_row(&self, id: InfraEnvId) -> Result<InfraEnvRow, Error> {
        let row = tx("read infra-env", async || {
            let mut connection = self.pool()?.acquire().await?;
            infra_envs::find(&mut connection, id).await
        })
        .await?;
        row.ok_or_else(|| Error::not_found("infra-env", id))
    }

    /// Updates an infra-env with a user's parameters.
    pub(crate) async fn update_infra_env(
        &self,
        id: InfraEnvId,
        params: &InfraEnvUpdateParams,
    ) -> Result<InfraEnv, Error> {
        let now = service::clock::now();
        tx("update infra-env", async || {
            let mut tx = self.pool()?.begin().await?;
            let Some(mut row) = infra_envs::find_for_update(&mut tx, id).await? else {
                return Err(Error::not_found("infra-env", id).into());
            };
            let cluster = match row.record.cluster_id {
                Some(id) => clusters::find(&mut tx, id).await?.map(|row| row.record),
                None => None,
            };
            let ctx = rules::update::UpdateContext {
                offer: &self.offer,
                policy: &self.policy,
                cluster: cluster.as_ref(),
                infra_envs: &[],
            };
            let new = rules::update::infra_env(&mut row.record, params.clone(), &ctx)?;
            row.record.updated_at = now.into();
            if !params.pull_secret.is_empty() {
                row.pull_secret.clone_from(&params.pull_secret);
            }
            infra_envs::save(&mut tx, &row.record, &row.pull_secret, now).await?;
            let records = events::to_record(&new, now);
            event_rows::insert(&mut tx, &records, self.event_limits, now).await?;
            tx.commit().await?;
            Ok(render::infra_env(row.record))
        })
        .await
    }

    /// Deletes an infra-env without hosts.
    ///
    /// Errors: Invalid – it has hosts.
    pub(crate) async fn deregister_infra_env(&self, id: InfraEnvId) -> Result<(), Error> {
        let now = service::clock::now();
        tx("deregister infra-env", async || {
            let mut tx = self.pool()?.begin().await?;
            let Some(row) = infra_envs::find_for_update(&mut tx, id).await? else {
                return Err(Error::not_found("infra-env", id).into());
            };
            if infra_envs::has_hosts(&mut tx, id).await? {
                let reason = "it still has hosts: delete them first";
                return Err(Error::invalid("infra_env_id", reason).into());
            }
            infra_envs::delete(&mut tx, id).await?;
            let text = format!("Deregistered infra-env {}", row.record.name);
            let mut event =
                NewEvent::new("infra_env_deregistered", EventSeverity::Info, text).infra_env(id);
            event.cluster_id = row.record.cluster_id;
            let records = events::to_record(&[event], now);
            event_rows::insert(&mut tx, &records, self.event_limits, now).await?;
            tx.commit().await?;
            Ok(())
        })
        .await
    }

    /// The discovery ignition of an infra-env.
    pub(crate) async fn discovery_ignition(&self, id: InfraEnvId) -> Result<Vec<u8>, Error> {
        let row = self.infra_env_row(id).await?;
        let secrets = discovery::DiscoverySecrets {
            pull_secret: row.pull_secret.into(),
            agent_token: None,
        };
        debug_assert!(
            !secrets.pull_secret.expose_secret().is_empty(),
            "checked when it was stored"
        );
        let config = discovery::ignition(&row.record, &secrets, &self.discovery)?;
        serde_json::to_vec(&config)
            .map_err(|error| Error::internal("writing the discovery ignition", error))
    }
}

/// Parameters of a boot script request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IpxeScript<'a> {
    /// Boot order control: an installed host boots from its disk.
    pub(crate) by_boot_order: bool,
    /// MAC address of the requesting host.
    pub(crate) mac: Option<&'a str>,
}
