//! Making the files of an installation, and taking down how that went.

use std::time::Duration;

use model::Error;
use model::cluster::{ClusterStatus, PreparationStatus};
use model::events::EventSeverity;
use model::ids::ClusterId;
use model::infra_env::InfraEnv;
use model::time::DateTime;
use rules::NewEvent;
use serde::{Deserialize, Serialize};
use sqlx::Connection as _;
use tokio::time::timeout;

use super::{App, Scope, Stored, Work};
use crate::db::tx;
use crate::db::{clusters, locks};
use crate::install::{self, ReleaseInfo};

/// The lock is free or not: an answer that takes longer is none.
const LOCK_TIMEOUT: Duration = Duration::from_secs(20);
/// For the farewell to the database; without one it finds out by itself that a connection is gone.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// What came of an attempt to prepare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// The preparation ended, and how it ended is in the record.
    Finished,
    /// Another replica is at it, or its registry has as many preparations as it may.
    Deferred,
}

/// What is kept of a release image, beside the cluster's record.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct KnownRelease {
    /// Machine config operator.
    pub(crate) machine_config_operator: String,
    /// must-gather of the platform.
    pub(crate) must_gather: String,
}

impl From<&ReleaseInfo> for KnownRelease {
    fn from(info: &ReleaseInfo) -> Self {
        Self {
            machine_config_operator: info.mco_image.clone(),
            must_gather: info.must_gather_image.clone(),
        }
    }
}

impl KnownRelease {
    /// What was kept with a cluster; empty before its first preparation.
    pub(crate) fn of(stored: &Stored) -> Self {
        stored
            .release_info
            .as_ref()
            .and_then(|value| serde_json::from_value(value.clone()).ok())
            .unwrap_or_default()
    }
}

impl App {
    /// Clusters whose installation files have to be made.
    pub(crate) async fn preparations_due(&self, limit: i64) -> Result<Vec<ClusterId>, Error> {
        tx("list preparations", async || {
            let mut connection = self.pool()?.acquire().await?;
            clusters::preparation_due(&mut connection, limit).await
        })
        .await
    }

    /// Makes the installation files of a cluster, unless another replica does or its registry is busy.
    ///
    /// The right to do so is a lock of a connection, and a claim among the files where these can be locked: when this
    /// process dies, somebody else takes over.
    pub(crate) async fn prepare(&self, id: ClusterId) -> Result<Attempt, Error> {
        let doing = "preparing an installation";
        // Before the connection: the database has few, and registries may be slow.
        let image = &self
            .stored_cluster(id)
            .await?
            .snapshot
            .cluster
            .ocp_release_image;
        let Some(_admitted) = self.install.admit(image) else {
            return Ok(Attempt::Deferred);
        };
        let told = |error: sqlx::Error| crate::db::Error::from(error).into_domain(doing);
        // Detached from the pool: what happens to it must not happen to a request's connection.
        let mut connection = self.pool()?.acquire().await.map_err(told)?.detach();
        let locking = locks::try_lock_preparation(&mut connection, id.0);
        let locked = timeout(LOCK_TIMEOUT, locking).await;
        let locked = locked.map_err(|elapsed| Error::unavailable("the database", elapsed))?;
        if !locked.map_err(told)? {
            return Ok(Attempt::Deferred);
        }
        let result = match self.install.try_lock(id).await {
            // Another replica lost its connection, and the lock with it, but is still at it.
            Ok(None) => Ok(Attempt::Deferred),
            Ok(Some(_claim)) => self.prepare_alone(id).await.map(|()| Attempt::Finished),
            Err(failure) => {
                let reason = failure.reason;
                tracing::warn!(cluster.id = %id, reason, "preparing without a claim among the files");
                self.prepare_alone(id).await.map(|()| Attempt::Finished)
            }
        };
        // That frees the lock. Whether it works or not changes nothing of how the preparation went.
        let _ = timeout(CLOSE_TIMEOUT, connection.close()).await;
        result
    }

    async fn prepare_alone(&self, id: ClusterId) -> Result<(), Error> {
        let stored = self.stored_cluster(id).await?;
        if !clusters::is_preparation_due(&stored.snapshot.cluster) {
            return Ok(());
        }
        let started = stored.snapshot.cluster.install_started_at;
        tracing::info!(cluster.id = %id, "preparing the installation");
        let image = &stored.snapshot.cluster.ocp_release_image;
        let input = install::PreparationInput {
            snapshot: stored.snapshot.clone(),
            pull_secret: self.pull_secret(id).await?,
            is_listed: self.offer.lists(image),
            infra_envs: self.infra_envs_of(&stored).await?,
        };
        // Clusters may be older than the settings.
        let outcome = match self.check_release_image(image).await {
            Ok(()) => Box::pin(install::prepare(&self.install, input)).await,
            Err(error) => Err(error.into()),
        };
        match &outcome {
            Ok(_) => tracing::info!(cluster.id = %id, "the installation is prepared"),
            Err(failure) => {
                tracing::warn!(cluster.id = %id, reason = failure.reason, "the preparation failed");
            }
        }
        self.finish_preparation(id, started, &outcome).await
    }

    /// Whether a release image may be installed: from where it comes, or by who has signed it.
    ///
    /// Errors: Invalid – neither; Unavailable – where its signature may be.
    pub(super) async fn check_release_image(&self, image: &str) -> Result<(), Error> {
        let Err(refused) = self.offer.check_release_image(image) else {
            return Ok(());
        };
        match (refused, self.install.check_signed(image).await) {
            (_, Ok(())) => Ok(()),
            (Error::Invalid { field, reason }, Err(Error::Invalid { reason: why, .. })) => {
                Err(Error::invalid(field, format!("{reason} ({why})")))
            }
            (_, Err(error)) => Err(error),
        }
    }

    /// Where the cluster's hosts came from.
    async fn infra_envs_of(&self, stored: &Stored) -> Result<Vec<InfraEnv>, Error> {
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
            infra_envs.push(self.infra_env(id).await?);
        }
        Ok(infra_envs)
    }

    async fn finish_preparation(
        &self,
        id: ClusterId,
        started: DateTime,
        outcome: &Result<install::PreparationOutcome, install::PreparationFailure>,
    ) -> Result<(), Error> {
        let decide = |work: &mut Work| {
            let cluster = &mut work.snapshot.cluster;
            // Cancelled, reset or ordered again meanwhile: this outcome is nobody's any more.
            if cluster.status != ClusterStatus::PreparingForInstallation
                || cluster.install_started_at != started
            {
                return Ok(());
            }
            let event = match outcome {
                Ok(outcome) => {
                    cluster.last_installation_preparation.status = Some(PreparationStatus::Success);
                    cluster.last_installation_preparation.reason.clear();
                    cluster.openshift_cluster_id = Some(outcome.openshift_cluster_id);
                    work.beside.release_info =
                        serde_json::to_value(KnownRelease::from(&outcome.release)).ok();
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
            work.events.push(event.cluster(id));
            work.refresh(&self.policy);
            Ok(())
        };
        self.change("finish preparation", Scope::Cluster(id), decide)
            .await
            .map(drop)
    }
}
