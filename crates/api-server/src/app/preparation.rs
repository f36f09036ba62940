//! Preparation of an installation: making its files, and recording the outcome.

use std::sync::Arc;
use std::time::Duration;

use model::Error;
use model::cluster::{ClusterStatus, LastInstallationPreparation, PreparationStatus};
use model::events::EventSeverity;
use model::ids::ClusterId;
use model::infra_env::InfraEnv;
use model::time::DateTime;
use preparation::InstallContext;
use rules::NewEvent;
use rules::Offer;
use secrecy::SecretString;
use sqlx::Connection as _;
use tokio::time::timeout;

use super::infra_envs::infra_env;
use super::known_release::KnownRelease;
use super::offer::CurrentOffer;
use super::{ClusterStore, ClusterTransaction, Scope, StoredSnapshot};
use crate::db::{Database, clusters, locks, tx};

/// Timeout of the lock's statement, which does not wait for the lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(20);
/// Timeout of closing the connection; PostgreSQL also detects a lost one.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Result of one attempt to prepare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PreparationAttempt {
    /// The preparation ended; its outcome is in the record.
    Finished,
    /// Another replica prepares the cluster, or the concurrency limit of its registry is reached.
    Deferred,
}

/// `reason` of a preparation that succeeded, which clients compare.
/// Source: assisted-service, internal/cluster/cluster.go, HandlePreInstallSuccess.
const PREPARED: &str = "Installation preparation successful";

/// Preparations of installations.
#[derive(Debug)]
pub(crate) struct Preparations {
    pub(super) db: Database,
    pub(super) clusters: Arc<ClusterStore>,
    pub(super) install: InstallContext,
    pub(super) offer: Arc<CurrentOffer>,
}

impl Preparations {
    /// Clusters whose preparation is due.
    pub(crate) async fn due(&self, limit: i64) -> Result<Vec<ClusterId>, Error> {
        tx("list preparations", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            clusters::preparation_due(&mut connection, limit).await
        })
        .await
    }

    /// Prepares a cluster, unless another replica does or its registry is at its concurrency limit.
    ///
    /// Exclusive by a session lock of PostgreSQL, and by a file lock where the file system has them: both are released
    /// when this process dies, and another replica takes over.
    pub(crate) async fn prepare(&self, id: ClusterId) -> Result<PreparationAttempt, Error> {
        let doing = "preparing an installation";
        // Before a connection is taken: the pool is small, and registries may be slow.
        let image = &self
            .clusters
            .stored(id)
            .await?
            .snapshot
            .cluster
            .ocp_release_image;
        let Some(_permit) = self.install.admit(image) else {
            return Ok(PreparationAttempt::Deferred);
        };
        let to_domain = |error: sqlx::Error| crate::db::Error::from(error).into_domain(doing);
        // Detached from the pool: the lock belongs to the session, which no request may share.
        let mut connection = self.db.pool()?.acquire().await.map_err(to_domain)?.detach();
        let locking = locks::try_lock_preparation(&mut connection, id.0);
        let locked = timeout(LOCK_TIMEOUT, locking).await;
        let locked = locked.map_err(|elapsed| Error::unavailable("the database", elapsed))?;
        if !locked.map_err(to_domain)? {
            return Ok(PreparationAttempt::Deferred);
        }
        let result = match self.install.try_lock(id).await {
            // Another replica lost its connection, and the lock with it, but is still preparing.
            Ok(None) => Ok(PreparationAttempt::Deferred),
            Ok(Some(_lock)) => self
                .prepare_alone(id)
                .await
                .map(|()| PreparationAttempt::Finished),
            Err(failure) => {
                let reason = failure.reason;
                tracing::warn!(cluster.id = %id, reason, "file lock not available: preparing without it");
                self.prepare_alone(id)
                    .await
                    .map(|()| PreparationAttempt::Finished)
            }
        };
        // Closing releases the lock. Its failure does not change the outcome of the preparation.
        let _ = timeout(CLOSE_TIMEOUT, connection.close()).await;
        result
    }

    async fn prepare_alone(&self, id: ClusterId) -> Result<(), Error> {
        let stored = self.clusters.stored(id).await?;
        if !clusters::is_preparation_due(&stored.snapshot.cluster) {
            return Ok(());
        }
        let started = stored.snapshot.cluster.install_started_at;
        tracing::info!(cluster.id = %id, "preparation started");
        let image = &stored.snapshot.cluster.ocp_release_image;
        let input = self.input(&stored).await?;
        // Checked again: the cluster may have been created under other settings.
        let outcome = match check_release_image(&self.offer.get(), &self.install, image).await {
            Ok(()) => Box::pin(preparation::prepare(&self.install, input)).await,
            Err(error) => Err(error.into()),
        };
        match &outcome {
            Ok(_) => tracing::info!(cluster.id = %id, "preparation finished"),
            Err(failure) => {
                tracing::warn!(cluster.id = %id, reason = failure.reason, "preparation failed");
            }
        }
        self.finish(id, started, &outcome).await
    }

    /// Input of a preparation of the cluster as it is stored.
    pub(super) async fn input(
        &self,
        stored: &StoredSnapshot,
    ) -> Result<preparation::PreparationInput, Error> {
        let cluster = &stored.snapshot.cluster;
        Ok(preparation::PreparationInput {
            snapshot: stored.snapshot.clone(),
            pull_secret: pull_secret(&self.db, cluster.id).await?,
            is_listed: self.offer.get().lists(&cluster.ocp_release_image),
            infra_envs: self.infra_envs_of(stored).await?,
        })
    }

    /// The infra-envs of the cluster's hosts.
    async fn infra_envs_of(&self, stored: &StoredSnapshot) -> Result<Vec<InfraEnv>, Error> {
        let mut ids: Vec<_> = stored
            .snapshot
            .hosts
            .iter()
            .map(|host| host.record.infra_env_id)
            .collect();
        ids.sort_unstable();
        ids.dedup();
        let mut infra_envs = Vec::with_capacity(ids.len());
        for id in ids {
            infra_envs.push(infra_env(&self.db, id).await?);
        }
        Ok(infra_envs)
    }

    async fn finish(
        &self,
        id: ClusterId,
        started: DateTime,
        outcome: &Result<preparation::PreparationOutcome, preparation::PreparationFailure>,
    ) -> Result<(), Error> {
        let decide = |change: &mut ClusterTransaction| {
            let cluster = &mut change.snapshot.cluster;
            // Cancelled, reset or restarted meanwhile: the outcome is stale.
            if cluster.status != ClusterStatus::PreparingForInstallation
                || cluster.install_started_at != started
            {
                return Ok(());
            }
            let event = match outcome {
                Ok(outcome) => {
                    cluster.last_installation_preparation = LastInstallationPreparation {
                        status: Some(PreparationStatus::Success),
                        reason: PREPARED.to_owned(),
                    };
                    cluster.openshift_cluster_id = Some(outcome.openshift_cluster_id);
                    change.side_writes.release = Some(KnownRelease::from(&outcome.release));
                    let text =
                        "Cluster starts to prepare its hosts: the installation files are made";
                    NewEvent::new(
                        "cluster_prepare_installation_started",
                        EventSeverity::Info,
                        text,
                    )
                }
                Err(failure) => {
                    cluster.last_installation_preparation.status = Some(PreparationStatus::Failed);
                    cluster
                        .last_installation_preparation
                        .reason
                        .clone_from(&failure.reason);
                    let text = format!("Preparing the installation failed: {}", failure.reason);
                    NewEvent::new("prepare_installation_failed", EventSeverity::Warning, text)
                        .prop("error", &failure.reason)
                }
            };
            change.events.push(event.cluster(id));
            change.refresh();
            Ok(())
        };
        self.clusters
            .change("finish preparation", Scope::Cluster(id), decide)
            .await
            .map(drop)
    }
}

/// The pull secret of a cluster.
pub(super) async fn pull_secret(db: &Database, id: ClusterId) -> Result<SecretString, Error> {
    let found = tx("read pull secret", async || {
        let mut connection = db.pool()?.acquire().await?;
        clusters::pull_secret(&mut connection, &db.keys().await, id).await
    })
    .await?;
    found
        .map(Into::into)
        .ok_or_else(|| Error::not_found("cluster", id))
}

/// Checks that a release image may be installed: by its registry, or by its signature.
///
/// Errors: Invalid – neither; Unavailable – the signature store.
pub(super) async fn check_release_image(
    offer: &Offer,
    install: &InstallContext,
    image: &str,
) -> Result<(), Error> {
    let Err(refused) = offer.check_release_image(image) else {
        return Ok(());
    };
    match (refused, install.check_signed(image).await) {
        (_, Ok(())) => Ok(()),
        (Error::Invalid { field, reason }, Err(Error::Invalid { reason: why, .. })) => {
            Err(Error::invalid(field, format!("{reason} ({why})")))
        }
        (_, Err(error)) => Err(error),
    }
}
