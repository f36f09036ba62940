//! Use cases of infra-envs.

use std::sync::Arc;

use concurrency::BoundedCache;
use model::Error;
use model::events::EventSeverity;
use model::ids::{ClusterId, InfraEnvId};
use model::infra_env::{InfraEnv, InfraEnvCreateParams, InfraEnvUpdateParams};
use model::release_payload::ComponentImages;
use rules::NewEvent;
use uuid::Uuid;

use super::access::AccessControl;
use super::component_images::ComponentSource;
use super::events::Events;
use super::offer::CurrentOffer;
use super::owners::RecordBound;
use super::token_validity::InfraEnvTokens;
use super::{ClusterStore, ClusterTransaction, Scope, render, request};
use crate::auth::Caller;
use crate::db::{self, Database, InfraEnvRow, OwnedSecret, RecordPage, RecordVersion, tx};
use crate::db::{clusters, infra_envs, locks};

/// Capacity of the infra-envs of polls. Units: bytes.
const CACHE_BYTES: usize = 4 << 20;

/// An infra-env that hosts poll from.
#[derive(Debug)]
pub(super) struct HostOrigin {
    pub(super) record: InfraEnv,
    /// Images of its release that hosts run.
    pub(super) components: ComponentImages,
}

/// Infra-envs of polls, at the versions of their records.
#[derive(Debug)]
pub(super) struct InfraEnvCache {
    db: Database,
    cache: BoundedCache<InfraEnvId, (RecordVersion, Arc<HostOrigin>)>,
}

impl InfraEnvCache {
    /// Infra-envs of the database.
    pub(super) fn new(db: Database) -> Self {
        Self {
            db,
            cache: BoundedCache::new(CACHE_BYTES),
        }
    }

    /// An infra-env at that version of its record or a later one. Reads one that is not cached over a connection of its
    /// own.
    pub(super) async fn at(
        &self,
        id: InfraEnvId,
        version: RecordVersion,
    ) -> Result<Arc<HostOrigin>, db::Error> {
        if let Some((known, origin)) = self.cache.get(id)
            && known == version
        {
            return Ok(origin);
        }
        let mut connection = self.db.pool()?.acquire().await?;
        let row = infra_envs::find(&mut connection, &self.db.keys().await, id).await?;
        let row = row.ok_or_else(|| Error::not_found("infra-env", id))?;
        let texts = serde_json::to_vec(&row.record);
        let images: usize = row.components.known().map(str::len).sum();
        let size = size_of::<HostOrigin>() + images + texts.map_or(CACHE_BYTES, |it| it.len());
        let origin = Arc::new(HostOrigin {
            record: row.record,
            components: row.components,
        });
        self.cache.put(id, (row.version, Arc::clone(&origin)), size);
        Ok(origin)
    }
}

/// Infra-envs, as users manage them.
#[derive(Debug)]
pub(crate) struct InfraEnvs {
    pub(super) db: Database,
    pub(super) clusters: Arc<ClusterStore>,
    pub(super) access: Arc<AccessControl>,
    pub(super) tokens: Arc<InfraEnvTokens>,
    pub(super) offer: Arc<CurrentOffer>,
    pub(super) components: Arc<ComponentSource>,
    pub(super) events: Arc<Events>,
    pub(super) bound: RecordBound,
}

impl InfraEnvs {
    /// Creates an infra-env.
    ///
    /// Errors: NotFound – its cluster; Invalid; Conflict – `MAX_INFRA_ENVS` or `MAX_INFRA_ENVS_PER_OWNER` reached.
    pub(crate) async fn register(
        &self,
        caller: &Caller,
        params: InfraEnvCreateParams,
    ) -> Result<InfraEnv, Error> {
        self.access.check_agents_token(&params.pull_secret)?;
        let now = service::clock::now();
        let id = Uuid::new_v4();
        let owner = self.access.owner(caller);
        let cluster = match params.cluster_id {
            Some(id) => Some(self.clusters.stored(id).await?),
            None => None,
        };
        let cluster = cluster.as_deref();
        let pull_secret = params.pull_secret.clone();
        let ctx = rules::cluster::create::CreateContext {
            id,
            offer: &self.offer.get(),
            policy: &self.clusters.policy,
            cluster: cluster.map(|stored| &stored.snapshot.cluster),
        };
        let mut infra_env = rules::cluster::create::infra_env(params, &ctx, now)?;
        if let Some(owner) = caller.owner() {
            infra_env.user_name.clone_from(&owner.name);
            infra_env.org_id.clone_from(&owner.org_id);
            infra_env.email_domain.clone_from(&owner.email_domain);
        }
        // Before the transaction: registries may be slow.
        let images = self
            .components
            .of_infra_env(&infra_env, cluster, &pull_secret);
        let components = images.await?;
        tx("register infra-env", async || {
            let mut tx = self.db.pool()?.begin().await?;
            locks::lock_registrations(&mut tx).await?;
            if let Some(id) = infra_env.cluster_id
                && clusters::revisions(&mut tx, id).await?.is_none()
            {
                return Err(Error::not_found("cluster", id).into());
            }
            self.bound
                .check(infra_envs::count(&mut tx, owner).await?, owner)?;
            infra_envs::insert(
                &mut tx,
                &self.db.keys().await,
                &infra_env,
                OwnedSecret {
                    owner,
                    pull_secret: &pull_secret,
                },
                now,
            )
            .await?;
            if let Some(components) = &components {
                infra_envs::set_components(&mut tx, infra_env.id, components).await?;
            }
            let text = format!("Registered infra-env {}", infra_env.name);
            let mut event = NewEvent::new("infra_env_registered", EventSeverity::Info, text)
                .infra_env(infra_env.id);
            event.cluster_id = infra_env.cluster_id;
            let image = rules::cluster::create::image_event(&infra_env);
            self.events.insert(&mut tx, &[event, image], now).await?;
            request::commit(tx).await?;
            Ok(())
        })
        .await?;
        self.record_usage(None, &infra_env).await;
        self.shown_one(infra_env, caller).await
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
    pub(crate) async fn list(
        &self,
        caller: &Caller,
        cluster: ClusterId,
    ) -> Result<Vec<InfraEnv>, Error> {
        let found = infra_envs_of(&self.db, cluster).await?;
        self.shown(caller, None, found).await
    }

    /// Ids of infra-envs, oldest first: all or those of one cluster.
    pub(crate) async fn ids(&self, cluster: Option<ClusterId>) -> Result<Vec<Uuid>, Error> {
        tx("list infra-envs", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            infra_envs::ids(&mut connection, cluster).await
        })
        .await
    }

    /// A page of those infra-envs: of them, those that `caller` may list, and of one owner.
    pub(crate) async fn page(
        &self,
        caller: &Caller,
        owner: Option<&str>,
        ids: &[Uuid],
    ) -> Result<RecordPage<InfraEnv>, Error> {
        let page = tx("list infra-envs", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            infra_envs::page(&mut connection, &self.db.keys().await, ids).await
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

    /// One infra-env.
    ///
    /// Errors: NotFound.
    pub(crate) async fn get(&self, id: InfraEnvId) -> Result<InfraEnv, Error> {
        infra_env(&self.db, id).await
    }

    /// One infra-env, with a download URL that the caller can use.
    pub(crate) async fn get_for(&self, caller: &Caller, id: InfraEnvId) -> Result<InfraEnv, Error> {
        let record = find_infra_env(&self.db, id).await?.record;
        self.shown_one(record, caller).await
    }

    async fn shown_one(&self, record: InfraEnv, caller: &Caller) -> Result<InfraEnv, Error> {
        let mut infra_env = render::infra_env(record);
        self.tokens
            .renew_download_url(&self.offer.get(), &mut infra_env, caller)
            .await?;
        Ok(infra_env)
    }

    /// Updates an infra-env with a user's parameters.
    pub(crate) async fn update(
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
            let mut tx = self.db.pool()?.begin().await?;
            let Some(mut row) =
                infra_envs::find_for_update(&mut tx, &self.db.keys().await, id).await?
            else {
                return Err(Error::not_found("infra-env", id).into());
            };
            let cluster = match row.record.cluster_id {
                Some(id) => clusters::find(&mut tx, &self.db.keys().await, id)
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
                let secret = &params.pull_secret;
                self.components.check_pull_secret(&row.components, secret)?;
                row.pull_secret.clone_from(secret);
            }
            infra_envs::save(
                &mut tx,
                &self.db.keys().await,
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
        self.shown_one(updated, caller).await
    }

    /// Deletes an infra-env without hosts.
    ///
    /// Errors: Invalid – it has hosts.
    pub(crate) async fn deregister(&self, id: InfraEnvId) -> Result<(), Error> {
        let now = service::clock::now();
        tx("deregister infra-env", async || {
            let mut tx = self.db.pool()?.begin().await?;
            let Some(row) = infra_envs::find_for_update(&mut tx, &self.db.keys().await, id).await?
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
}

/// Records of infra-envs, oldest first: those of a cluster.
pub(super) async fn infra_envs_of(
    db: &Database,
    cluster: ClusterId,
) -> Result<Vec<InfraEnv>, Error> {
    tx("list infra-envs", async || {
        let mut connection = db.pool()?.acquire().await?;
        infra_envs::list(&mut connection, &db.keys().await, Some(cluster)).await
    })
    .await
}

/// One infra-env.
pub(super) async fn infra_env(db: &Database, id: InfraEnvId) -> Result<InfraEnv, Error> {
    Ok(render::infra_env(find_infra_env(db, id).await?.record))
}

/// The record of an infra-env, with its pull secret.
///
/// Errors: NotFound.
pub(super) async fn find_infra_env(db: &Database, id: InfraEnvId) -> Result<InfraEnvRow, Error> {
    let row = tx("read infra-env", async || {
        let mut connection = db.pool()?.acquire().await?;
        infra_envs::find(&mut connection, &db.keys().await, id).await
    })
    .await?;
    row.ok_or_else(|| Error::not_found("infra-env", id))
}
