//! Use cases of infra-envs.

use std::sync::Arc;

use concurrency::BoundedCache;
use model::Error;
use model::events::EventSeverity;
use model::ids::{ClusterId, InfraEnvId};
use model::infra_env::{ImageType, InfraEnv, InfraEnvCreateParams, InfraEnvUpdateParams};
use rules::NewEvent;
use secrecy::ExposeSecret as _;
use uuid::Uuid;

use super::owners::RecordBound;
use super::{ApiServer, ClusterTransaction, Scope, render, request};
use crate::auth::Caller;
use crate::db::{self, InfraEnvRow, OwnedSecret, RecordPage, RecordVersion, tx};
use crate::db::{clusters, infra_envs, locks};
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
    /// An infra-env at that version of its record or a later one. Reads one that is not cached over a connection of its
    /// own.
    pub(super) async fn infra_env_at(
        &self,
        id: InfraEnvId,
        version: RecordVersion,
    ) -> Result<Arc<InfraEnv>, db::Error> {
        let cache = &self.infra_envs.0;
        if let Some((known, record)) = cache.get(id)
            && known == version
        {
            return Ok(record);
        }
        let mut connection = self.pool()?.acquire().await?;
        let row = infra_envs::find(&mut connection, &self.keys().await, id).await?;
        let row = row.ok_or_else(|| Error::not_found("infra-env", id))?;
        let texts = serde_json::to_vec(&row.record);
        let size = size_of::<InfraEnv>() + texts.map_or(CACHE_BYTES, |texts| texts.len());
        let record = Arc::new(row.record);
        cache.put(id, (row.version, Arc::clone(&record)), size);
        Ok(record)
    }

    /// Creates an infra-env.
    ///
    /// Errors: NotFound – its cluster; Conflict – `MAX_INFRA_ENVS` or `MAX_INFRA_ENVS_PER_OWNER` reached.
    pub(crate) async fn register_infra_env(
        &self,
        caller: &Caller,
        params: InfraEnvCreateParams,
    ) -> Result<InfraEnv, Error> {
        self.access.check_agents_token(&params.pull_secret)?;
        let now = service::clock::now();
        let id = Uuid::new_v4();
        let (owner, bound) = (
            self.access.owner(caller),
            RecordBound::of_infra_envs(&self.settings),
        );
        let infra_env = tx("register infra-env", async || {
            let mut tx = self.pool()?.begin().await?;
            locks::lock_registrations(&mut tx).await?;
            let cluster = match params.cluster_id {
                Some(id) => clusters::find(&mut tx, &self.keys().await, id)
                    .await?
                    .map(|row| row.record),
                None => None,
            };
            let ctx = rules::cluster::create::CreateContext {
                id,
                offer: &self.offer.get(),
                policy: &self.clusters.policy,
                cluster: cluster.as_ref(),
            };
            let mut infra_env = rules::cluster::create::infra_env(params.clone(), &ctx, now)?;
            if let Some(owner) = caller.owner() {
                infra_env.user_name.clone_from(&owner.name);
                infra_env.org_id.clone_from(&owner.org_id);
                infra_env.email_domain.clone_from(&owner.email_domain);
            }
            bound.check(infra_envs::count(&mut tx, owner).await?, owner)?;
            infra_envs::insert(
                &mut tx,
                &self.keys().await,
                &infra_env,
                OwnedSecret {
                    owner,
                    pull_secret: &params.pull_secret,
                },
                now,
            )
            .await?;
            let text = format!("Registered infra-env {}", infra_env.name);
            let mut event = NewEvent::new("infra_env_registered", EventSeverity::Info, text)
                .infra_env(infra_env.id);
            event.cluster_id = infra_env.cluster_id;
            let image = rules::cluster::create::image_event(&infra_env);
            self.events.insert(&mut tx, &[event, image], now).await?;
            request::commit(tx).await?;
            Ok(infra_env)
        })
        .await?;
        self.record_usage(None, &infra_env).await;
        self.shown_infra_env(infra_env, caller).await
    }

    /// Records the features of a new or changed infra-env in those of its cluster. In a transaction of its own: a cluster
    /// is locked before its infra-envs. The entries inform only: without them, the infra-env is stored all the same.
    ///
    /// Source: assisted-service, internal/bminventory/inventory.go, handlerClusterInfoOnRegisterInfraEnv.
    async fn record_usage(&self, before: Option<&InfraEnv>, infra_env: &InfraEnv) {
        let Some(cluster) = infra_env.cluster_id else {
            return;
        };
        if before.is_some_and(|before| !rules::cluster::usage::is_changed(before, infra_env)) {
            return;
        }
        let record = |change: &mut ClusterTransaction| {
            let cluster = &mut change.snapshot.cluster;
            rules::cluster::usage::record_infra_env(cluster, before, infra_env);
            Ok(())
        };
        let recorded = self
            .clusters
            .change("record usage", Scope::Cluster(cluster), record);
        match recorded.await {
            // Deleted meanwhile.
            Ok(_) | Err(Error::NotFound { .. }) => {}
            Err(error) => tracing::warn!(
                cluster.id = %cluster,
                infra_env.id = %infra_env.id,
                %error,
                "features of an infra-env are not recorded"
            ),
        }
    }

    /// Infra-envs, oldest first: all or those of one cluster and of one owner.
    pub(crate) async fn list_infra_envs(
        &self,
        caller: &Caller,
        cluster: ClusterId,
    ) -> Result<Vec<InfraEnv>, Error> {
        let found = self.stored_infra_envs(Some(cluster)).await?;
        self.shown(caller, None, found).await
    }

    /// Ids of infra-envs, oldest first: all or those of one cluster.
    pub(crate) async fn infra_env_ids(
        &self,
        cluster: Option<ClusterId>,
    ) -> Result<Vec<Uuid>, Error> {
        tx("list infra-envs", async || {
            let mut connection = self.pool()?.acquire().await?;
            infra_envs::ids(&mut connection, cluster).await
        })
        .await
    }

    /// A page of those infra-envs: of them, those that `caller` may list, and of one owner.
    pub(crate) async fn page_of_infra_envs(
        &self,
        caller: &Caller,
        owner: Option<&str>,
        ids: &[Uuid],
    ) -> Result<RecordPage<InfraEnv>, Error> {
        let page = tx("list infra-envs", async || {
            let mut connection = self.pool()?.acquire().await?;
            infra_envs::page(&mut connection, &self.keys().await, ids).await
        })
        .await?;
        let records = self.shown(caller, owner, page.records).await?;
        let covered = page.covered;
        Ok(RecordPage { records, covered })
    }

    async fn shown(
        &self,
        caller: &Caller,
        owner: Option<&str>,
        mut found: Vec<InfraEnv>,
    ) -> Result<Vec<InfraEnv>, Error> {
        found.retain(|one| self.access.lists(caller, &one.user_name, &one.org_id));
        let mut found: Vec<InfraEnv> = found.into_iter().map(render::infra_env).collect();
        found.retain(|infra_env| owner.is_none_or(|owner| infra_env.user_name == owner));
        let offer = self.offer.get();
        for infra_env in &mut found {
            self.tokens
                .renew_download_url(&offer, infra_env, caller)
                .await?;
        }
        Ok(found)
    }

    /// Records of infra-envs, oldest first: all or those of one cluster.
    pub(super) async fn stored_infra_envs(
        &self,
        cluster: Option<ClusterId>,
    ) -> Result<Vec<InfraEnv>, Error> {
        tx("list infra-envs", async || {
            let mut connection = self.pool()?.acquire().await?;
            infra_envs::list(&mut connection, &self.keys().await, cluster).await
        })
        .await
    }

    /// One infra-env.
    pub(crate) async fn infra_env(&self, id: InfraEnvId) -> Result<InfraEnv, Error> {
        Ok(render::infra_env(self.infra_env_row(id).await?.record))
    }

    /// One infra-env, with a download URL that the caller can use.
    pub(crate) async fn infra_env_for(
        &self,
        caller: &Caller,
        id: InfraEnvId,
    ) -> Result<InfraEnv, Error> {
        let record = self.infra_env_row(id).await?.record;
        self.shown_infra_env(record, caller).await
    }

    async fn shown_infra_env(&self, record: InfraEnv, caller: &Caller) -> Result<InfraEnv, Error> {
        let mut infra_env = render::infra_env(record);
        self.tokens
            .renew_download_url(&self.offer.get(), &mut infra_env, caller)
            .await?;
        Ok(infra_env)
    }

    pub(super) async fn infra_env_row(&self, id: InfraEnvId) -> Result<InfraEnvRow, Error> {
        let row = tx("read infra-env", async || {
            let mut connection = self.pool()?.acquire().await?;
            infra_envs::find(&mut connection, &self.keys().await, id).await
        })
        .await?;
        row.ok_or_else(|| Error::not_found("infra-env", id))
    }

    /// Updates an infra-env with a user's parameters.
    pub(crate) async fn update_infra_env(
        &self,
        caller: &Caller,
        id: InfraEnvId,
        params: &InfraEnvUpdateParams,
    ) -> Result<InfraEnv, Error> {
        if !params.pull_secret.is_empty() {
            self.access.check_agents_token(&params.pull_secret)?;
        }
        let now = service::clock::now();
        let (before, updated) = tx("update infra-env", async || {
            let mut tx = self.pool()?.begin().await?;
            let Some(mut row) =
                infra_envs::find_for_update(&mut tx, &self.keys().await, id).await?
            else {
                return Err(Error::not_found("infra-env", id).into());
            };
            let cluster = match row.record.cluster_id {
                Some(id) => clusters::find(&mut tx, &self.keys().await, id)
                    .await?
                    .map(|row| row.record),
                None => None,
            };
            let ctx = rules::cluster::update::UpdateContext {
                offer: &self.offer.get(),
                policy: &self.clusters.policy,
                cluster: cluster.as_ref(),
                infra_envs: &[],
            };
            let before = row.record.clone();
            let new = rules::cluster::update::infra_env(&mut row.record, params.clone(), &ctx)?;
            row.record.updated_at = now.into();
            if !params.pull_secret.is_empty() {
                row.pull_secret.clone_from(&params.pull_secret);
            }
            infra_envs::save(
                &mut tx,
                &self.keys().await,
                &row.record,
                &row.pull_secret,
                now,
            )
            .await?;
            self.events.insert(&mut tx, &new, now).await?;
            request::commit(tx).await?;
            Ok((before, row.record))
        })
        .await?;
        self.record_usage(Some(&before), &updated).await;
        self.shown_infra_env(updated, caller).await
    }

    /// Deletes an infra-env without hosts.
    ///
    /// Errors: Invalid – it has hosts.
    pub(crate) async fn deregister_infra_env(&self, id: InfraEnvId) -> Result<(), Error> {
        let now = service::clock::now();
        tx("deregister infra-env", async || {
            let mut tx = self.pool()?.begin().await?;
            let Some(row) = infra_envs::find_for_update(&mut tx, &self.keys().await, id).await?
            else {
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
            self.events.insert(&mut tx, &[event], now).await?;
            request::commit(tx).await?;
            Ok(())
        })
        .await
    }

    /// The discovery ignition of an infra-env; `image_type` replaces its own type.
    pub(crate) async fn discovery_ignition(
        &self,
        id: InfraEnvId,
        image_type: Option<ImageType>,
    ) -> Result<Vec<u8>, Error> {
        let row = self.infra_env_row(id).await?;
        let image_type = image_type.unwrap_or(row.record.r#type);
        // Source: assisted-service, internal/bminventory/inventory.go, V2DownloadInfraEnvFiles.
        if image_type == ImageType::DisconnectedIso && row.record.cluster_id.is_none() {
            return Err(Error::not_found("cluster of infra-env", id));
        }
        let validity = self.tokens.validity(&row.record).await?;
        let secrets = discovery::DiscoverySecrets {
            agent_token: self.auth.agent_token(id, &row.pull_secret, validity)?,
            pull_secret: row.pull_secret.into(),
        };
        debug_assert!(
            !secrets.pull_secret.expose_secret().is_empty(),
            "checked when it was stored"
        );
        let config = discovery::ignition(&row.record, image_type, &secrets, &self.discovery)?;
        serde_json::to_vec(&config)
            .map_err(|error| Error::internal("writing the discovery ignition", error))
    }

    /// The static networks of an infra-env as a tar archive; empty without any.
    pub(crate) fn static_networks(&self, infra_env: &InfraEnv) -> Result<Vec<u8>, Error> {
        discovery::static_networks(infra_env, &self.discovery.nmstate_service_from)
    }

    /// The ramdisk of a network boot of an infra-env; empty without content.
    pub(crate) fn minimal_initrd(&self, infra_env: &InfraEnv) -> Result<Vec<u8>, Error> {
        discovery::minimal_initrd(infra_env, &self.discovery.nmstate_service_from)
    }
}

/// Parameters of a boot script request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IpxeScript<'a> {
    /// Boot order control: an installed host boots from its disk.
    pub(crate) by_boot_order: bool,
    /// MAC address of the requesting host.
    pub(crate) mac: Option<&'a str>,
    /// Its URLs have tokens of the infra-env.
    pub(crate) is_signed: bool,
}
