//! Use cases of clusters.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use cluster_files::FileStore;
use model::Error;
use model::cluster::{
    Cluster, ClusterCreateParams, ClusterStatus, ClusterUpdateParams, PlatformType,
};
use model::events::EventSeverity;
use model::hardware::PreflightHardwareRequirements;
use model::host::Host;
use model::ids::{ClusterId, HostId, InfraEnvId};
use model::time::Timestamp;
use preparation::InstallContext;
use rules::InstallationPolicy;
use rules::NewEvent;
use rules::Snapshot;
use service::shared_body::{BodyPiece, SharedBody};
use sqlx::PgConnection;
use uuid::Uuid;

use super::access::AccessControl;
use super::cluster_store::LARGE_CLUSTER;
use super::component_images::ComponentSource;
use super::encoded::{BesideRecord, EncodedClusters, ListedCluster};
use super::events::Events;
use super::infra_envs::infra_envs_of;
use super::known_release::KnownRelease;
use super::offer::CurrentOffer;
use super::owners::RecordBound;
use super::preparation::check_release_image;
use super::render::HostCounts;
use super::{ClusterStore, ClusterTransaction, Heartbeats, Scope, render, request};
use crate::auth::Caller;
use crate::blocking;
use crate::db::clusters::{self, ClusterFilter, ListedRow};
use crate::db::{self, Database, OwnedSecret, tx};
use crate::db::{check_ins, hosts, locks};
use crate::measurements::CLUSTER_CREATIONS;

/// Bound of the web UI's settings of a cluster. Units: bytes.
pub(crate) const UI_SETTINGS_BYTES: usize = 256 << 10;
/// Records of a listing that are read by one statement, and are in memory together.
const RECORDS_AT_ONCE: usize = 100;

/// Filter and form of a cluster listing.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClusterListing {
    /// Include hosts.
    pub(crate) with_hosts: bool,
    /// Include deleted clusters.
    pub(crate) with_deleted: bool,
    /// Id of the installed platform.
    pub(crate) openshift_cluster_id: Option<Uuid>,
    /// User that created the cluster.
    pub(crate) owner: Option<String>,
    /// Subscriptions; all clusters if empty.
    pub(crate) ams_subscription_ids: Vec<String>,
}

impl ClusterListing {
    fn includes(&self, cluster: &ListedCluster) -> bool {
        let has_owner = |owner: &String| cluster.user_name == *owner;
        let subscription = cluster.subscription.as_ref();
        self.owner.as_ref().is_none_or(has_owner)
            && (self.ams_subscription_ids.is_empty()
                || subscription.is_some_and(|id| self.ams_subscription_ids.contains(id)))
    }
}

/// Clusters, as users manage them.
#[derive(Debug)]
pub(crate) struct Clusters {
    pub(super) db: Database,
    pub(super) store: Arc<ClusterStore>,
    pub(super) heartbeats: Arc<Heartbeats>,
    /// Clusters as they are sent.
    pub(super) encoded: EncodedClusters,
    pub(super) access: Arc<AccessControl>,
    pub(super) offer: Arc<CurrentOffer>,
    pub(super) install: InstallContext,
    pub(super) components: Arc<ComponentSource>,
    pub(super) events: Arc<Events>,
    pub(super) files: FileStore,
    pub(super) bound: RecordBound,
}

impl Clusters {
    /// Creates a cluster.
    ///
    /// Errors: Invalid; Conflict – `MAX_CLUSTERS` or `MAX_CLUSTERS_PER_OWNER` reached; Unavailable – the signature store
    /// of the release image.
    pub(crate) async fn register(
        &self,
        caller: &Caller,
        params: ClusterCreateParams,
    ) -> Result<Cluster, Error> {
        self.access.check_agents_token(&params.pull_secret)?;
        let now = service::clock::now();
        let pull_secret = params.pull_secret.clone();
        let ctx = rules::cluster::create::CreateContext {
            id: Uuid::new_v4(),
            offer: &self.offer.get(),
            policy: &self.store.policy,
            cluster: None,
        };
        let cluster = rules::cluster::create::cluster(params, &ctx, now)?;
        let image = &cluster.ocp_release_image;
        check_release_image(&self.offer.get(), &self.install, image).await?;
        let release = self.components.of_release(image, &pull_secret).await?;
        self.insert(caller, cluster, release, &pull_secret, now)
            .await
    }

    /// Stores a new cluster, with the metadata of its release if it was read.
    ///
    /// Errors: Conflict – `MAX_CLUSTERS` or `MAX_CLUSTERS_PER_OWNER` reached.
    pub(super) async fn insert(
        &self,
        caller: &Caller,
        mut cluster: Cluster,
        release: Option<KnownRelease>,
        pull_secret: &str,
        now: Timestamp,
    ) -> Result<Cluster, Error> {
        if let Some(owner) = caller.owner() {
            cluster.user_name.clone_from(&owner.name);
            cluster.org_id.clone_from(&owner.org_id);
            cluster.email_domain.clone_from(&owner.email_domain);
        }
        let kind = cluster.kind;
        let images = release.as_ref().map(|it| it.components.clone());
        let mut snapshot = Snapshot {
            cluster,
            components: self.store.components.or(&images.unwrap_or_default()),
            ..Snapshot::default()
        };
        let id = snapshot.cluster.id;
        let (status, status_info) = (
            snapshot.cluster.status,
            snapshot.cluster.status_info.clone(),
        );
        let text = format!("Registered cluster {} with id {id}", snapshot.cluster.name);
        let mut new = vec![
            NewEvent::new("cluster_registration_succeeded", EventSeverity::Info, text)
                .cluster(id)
                .prop("cluster_kind", kind),
        ];
        new.extend(rules::cluster::refresh::cluster(
            &mut snapshot,
            &self.store.policy,
            now,
        ));
        let owner = self.access.owner(caller);
        let secret = OwnedSecret { owner, pull_secret };
        tx("register cluster", async || {
            let mut tx = self.db.pool()?.begin().await?;
            locks::lock_registrations(&mut tx).await?;
            self.bound
                .check(clusters::count(&mut tx, owner).await?, owner)?;
            clusters::insert(&mut tx, &self.db.keys().await, &snapshot, secret, now).await?;
            if let Some(release) = &release {
                clusters::set_release_info(&mut tx, id, release).await?;
            }
            self.events.insert(&mut tx, &new, now).await?;
            request::commit(tx).await?;
            Ok(())
        })
        .await?;
        if !request::is_dry_run() {
            CLUSTER_CREATIONS.count(&[]).record();
        }
        // The response has the status of the registration: the first refresh comes after it.
        // Source: assisted-service, internal/cluster/cluster.go, RegisterCluster.
        let mut registered = render::cluster(&snapshot, true);
        registered.status = status;
        registered.status_info = status_info;
        Ok(registered)
    }

    /// Clusters, oldest first, as JSON: pieces of kept bytes.
    pub(crate) async fn list(
        &self,
        caller: &Caller,
        listing: ClusterListing,
    ) -> Result<SharedBody, Error> {
        let filter = ClusterFilter {
            id: None,
            openshift_cluster_id: listing.openshift_cluster_id,
            with_deleted: listing.with_deleted,
        };
        let (found, counts) = tx("list clusters", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            let found = self.listed(&mut connection, filter).await?;
            Ok((found, hosts::count_by_status(&mut connection).await?))
        })
        .await?;
        let mut by_cluster: HashMap<Uuid, HostCounts> = HashMap::new();
        for row in counts {
            if let Ok(status) = row.status.parse() {
                let counts = by_cluster.entry(row.cluster_id).or_default();
                counts.add(status, row.count);
            }
        }
        let mut pieces = vec![text(b"[")];
        for (row, cluster) in found {
            if !self
                .access
                .lists(caller, &cluster.user_name, &cluster.org_id)
                || !listing.includes(&cluster)
            {
                continue;
            }
            if pieces.len() > 1 {
                pieces.push(text(b","));
            }
            let counts = by_cluster.remove(&row.id.0).unwrap_or_default();
            if listing.with_hosts && counts.total > 0 {
                // Deleted since the listing: its row is shown as listed.
                if let Ok(whole) = self.encoded_pieces(row.id, true).await {
                    pieces.extend(whole);
                    continue;
                }
            }
            let deleted_at = row.deleted_at.map(Into::into);
            let beside = BesideRecord { deleted_at, counts };
            let cluster = self.encoded.listed_with(row.id, cluster, beside)?;
            pieces.push(cluster.print(listing.with_hosts)?);
        }
        pieces.push(text(b"]"));
        Ok(SharedBody::new(pieces))
    }

    /// Clusters, oldest first. Records that are encoded already are not read.
    async fn listed(
        &self,
        connection: &mut PgConnection,
        filter: ClusterFilter,
    ) -> Result<Vec<(ListedRow, Arc<ListedCluster>)>, db::Error> {
        let rows = clusters::list(connection, filter).await?;
        let mut encoded: HashMap<ClusterId, Arc<ListedCluster>> = HashMap::new();
        let mut missing = Vec::new();
        for row in &rows {
            match self.encoded.listed(row.id, row.version) {
                Some(known) => drop(encoded.insert(row.id, known)),
                None => missing.push(row.id),
            }
        }
        for ids in missing.chunks(RECORDS_AT_ONCE) {
            for (record, version) in
                clusters::records(connection, &self.db.keys().await, ids).await?
            {
                let id = record.id;
                encoded.insert(id, self.encoded.list(record, version)?);
            }
        }
        let found = rows.into_iter().filter_map(|row| {
            let cluster = encoded.remove(&row.id)?;
            Some((row, cluster))
        });
        Ok(found.collect())
    }

    /// A cluster as JSON: pieces of kept bytes, with the last heartbeats of its hosts.
    ///
    /// Errors: NotFound.
    async fn encoded_pieces(
        &self,
        id: ClusterId,
        with_hosts: bool,
    ) -> Result<Vec<BodyPiece>, Error> {
        let (stored, flushed) = tx("read cluster", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            let head = clusters::revisions(&mut connection, id).await?;
            let head = head.ok_or_else(|| Error::not_found("cluster", id))?;
            let flushed = if with_hosts {
                check_ins::of_cluster(&mut connection, id).await?
            } else {
                Vec::new()
            };
            drop(connection);
            let stored = self.store.at_least(id, head.revision).await?;
            Ok((
                stored.ok_or_else(|| Error::not_found("cluster", id))?,
                flushed,
            ))
        })
        .await?;
        let is_large = stored.snapshot.hosts.len() > LARGE_CLUSTER;
        let long = is_large && !self.encoded.has(id, &stored);
        let encoded = blocking::unless_short(long, || self.encoded.whole(id, &stored))?;
        if with_hosts {
            encoded.print(self.heartbeats.of_hosts(&stored.snapshot, flushed))
        } else {
            Ok(encoded.print_alone().into())
        }
    }

    /// One cluster as JSON; a deleted one only if `with_deleted`.
    pub(crate) async fn get(
        &self,
        id: ClusterId,
        with_hosts: bool,
        with_deleted: bool,
    ) -> Result<SharedBody, Error> {
        let pieces = match self.encoded_pieces(id, with_hosts).await {
            Err(Error::NotFound { .. }) if with_deleted => {
                vec![self.deleted(id, with_hosts).await?]
            }
            found => found?,
        };
        Ok(SharedBody::new(pieces))
    }

    async fn deleted(&self, id: ClusterId, with_hosts: bool) -> Result<BodyPiece, Error> {
        let filter = ClusterFilter {
            id: Some(id.0),
            with_deleted: true,
            ..ClusterFilter::default()
        };
        let found = tx("read deleted cluster", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            self.listed(&mut connection, filter).await
        })
        .await?;
        let found = found.into_iter().next();
        let (row, cluster) = found.ok_or_else(|| Error::not_found("cluster", id))?;
        let beside = BesideRecord {
            deleted_at: row.deleted_at.map(Into::into),
            ..BesideRecord::default()
        };
        let cluster = self.encoded.listed_with(id, cluster, beside)?;
        cluster.print(with_hosts)
    }

    /// Updates a cluster with a user's parameters.
    pub(crate) async fn update(
        &self,
        id: ClusterId,
        params: &ClusterUpdateParams,
    ) -> Result<Cluster, Error> {
        let depends_on_machines = params.olm_operators.is_some()
            || params.operator_bundles.is_some()
            || params.user_managed_networking.is_some();
        let infra_envs = if depends_on_machines {
            infra_envs_of(&self.db, id).await?
        } else {
            Vec::new()
        };
        let ctx = rules::cluster::update::UpdateContext {
            offer: &self.offer.get(),
            policy: &self.store.policy,
            cluster: None,
            infra_envs: &infra_envs,
        };
        let decide = |change: &mut ClusterTransaction| {
            let new = rules::cluster::update::cluster(&mut change.snapshot, params, &ctx)?;
            change.events.extend(new);
            change
                .side_writes
                .pull_secret
                .clone_from(&params.pull_secret);
            change.refresh();
            Ok(())
        };
        let ((), stored) = self
            .store
            .change("update cluster", Scope::Cluster(id), decide)
            .await?;
        Ok(render::cluster(&stored.snapshot, true))
    }

    /// Deletes a cluster and the hosts of its infra-envs; those, and hosts of other infra-envs, are unbound. The record
    /// of the cluster keeps the deleted hosts for administrators.
    ///
    /// Errors: Conflict – it is being installed.
    /// Source: assisted-service, internal/bminventory/inventory.go, deleteOrUnbindHosts.
    pub(crate) async fn deregister(&self, id: ClusterId) -> Result<(), Error> {
        let own = infra_envs_of(&self.db, id).await?;
        let own: Vec<_> = own.iter().map(|infra_env| infra_env.id).collect();
        let decide = |change: &mut ClusterTransaction| {
            let cluster = &change.snapshot.cluster;
            if cluster.status == ClusterStatus::Installing {
                return Err(Error::conflict(format!(
                    "cluster {id} is being installed: cancel the installation before deleting it"
                )));
            }
            let text = format!("Deregistered cluster {}", cluster.name);
            change
                .events
                .push(NewEvent::new("cluster_deregistered", EventSeverity::Info, text).cluster(id));
            release_hosts(change, &own, &self.store.policy);
            let hosts = change.snapshot.hosts.iter();
            change.snapshot.cluster.hosts = hosts.map(render::left_host).collect();
            change.snapshot.hosts.truncate(0);
            change.side_writes.delete_cluster = true;
            Ok(())
        };
        self.store
            .change("deregister cluster", Scope::Cluster(id), decide)
            .await?;
        if request::is_dry_run() {
            return Ok(());
        }
        self.store.evict(id);
        self.encoded.remove(id);
        self.files.delete_cluster(id).await
    }

    /// The web UI's settings of a cluster.
    pub(crate) async fn ui_settings(&self, id: ClusterId) -> Result<String, Error> {
        let found = tx("read ui settings", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            clusters::ui_settings(&mut connection, id).await
        })
        .await?;
        found.ok_or_else(|| Error::not_found("cluster", id))
    }

    /// Replaces the web UI's settings of a cluster.
    pub(crate) async fn set_ui_settings(&self, id: ClusterId, text: &str) -> Result<(), Error> {
        if text.len() > UI_SETTINGS_BYTES {
            return Err(Error::TooLarge {
                what: "the UI settings",
                limit: UI_SETTINGS_BYTES as u64,
            });
        }
        let found = tx("write ui settings", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            clusters::set_ui_settings(&mut connection, id, text).await
        })
        .await?;
        if found {
            Ok(())
        } else {
            Err(Error::not_found("cluster", id))
        }
    }
}

/// The hosts of a cluster; empty for an unknown cluster.
pub(crate) async fn hosts_of_cluster(
    clusters: &ClusterStore,
    id: ClusterId,
) -> Result<Vec<Host>, Error> {
    match clusters.stored(id).await {
        Ok(stored) => Ok(stored.snapshot.hosts.iter().map(render::host).collect()),
        Err(Error::NotFound { .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Platforms that suit a cluster's hosts.
///
/// Errors: NotFound.
pub(crate) async fn supported_platforms(
    clusters: &ClusterStore,
    id: ClusterId,
) -> Result<Vec<PlatformType>, Error> {
    let stored = clusters.stored(id).await?;
    Ok(rules::operators::support::supported_platforms(
        &stored.snapshot,
    ))
}

/// Hardware requirements by role, of the platform and of operators.
pub(crate) async fn preflight_requirements(
    clusters: &ClusterStore,
    id: ClusterId,
) -> Result<PreflightHardwareRequirements, Error> {
    let stored = clusters.stored(id).await?;
    let cluster = &stored.snapshot.cluster;
    Ok(rules::cluster::preflight::preflight_requirements(
        cluster,
        &clusters.policy,
    ))
}

fn text(json: &'static [u8]) -> BodyPiece {
    BodyPiece::Plain(Bytes::from_static(json))
}

/// Releases the hosts of other infra-envs than `own` to the pool, except those in a status without a rule for it.
fn release_hosts(change: &mut ClusterTransaction, own: &[InfraEnvId], policy: &InstallationPolicy) {
    let now = change.now;
    let hosts = change.snapshot.hosts.iter();
    let guests = hosts.filter(|host| !own.contains(&host.record.infra_env_id));
    let guests: Vec<HostId> = guests.map(|host| host.record.id).collect();
    for id in guests {
        let Some(host) = change.snapshot.host_mut(id) else {
            continue;
        };
        if let Ok(new) = rules::host::leave(host, policy, now) {
            change.events.extend(new);
            change.release(id);
        }
    }
}
