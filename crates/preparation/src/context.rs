//! Options, inputs and outcome of preparations, and their shared state.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cluster_files::FileStore;
use concurrency::KeyedMutex;
use model::Error;
use model::ids::ClusterId;
use model::infra_env::InfraEnv;
use rules::InstallationPolicy;
use secrecy::SecretString;
use tokio::sync::{OwnedMutexGuard, Semaphore, SemaphorePermit};
use uuid::Uuid;

use crate::confinement::Confinement;
use crate::failure::{PreparationFailure, blocking};
use crate::installer_cache::InstallerCacheEvent;
use crate::registry::RegistryAccess;
use crate::registry_limit::{PreparationPermit, RegistryLimit};
use crate::release::{ReleaseCache, ReleaseInfo};
use crate::release_image;
use crate::signers::{Signers, unsigned};
use crate::site_catalogs::SiteCatalogs;
use crate::work_folder::PreparationLock;

/// Options of all preparations, fixed at start.
#[derive(Debug, Clone)]
pub struct InstallOptions {
    /// Store of the results; installer cache and work folders are in the same root.
    pub store: FileStore,
    /// `DUMMY_IGNITION`: test mode with dummy files, without registry and installer.
    pub dummy_ignition: bool,
    /// `INSTALL_INVOKER`: invoker, as the cluster records it.
    pub invoker: String,
    /// Policy of the generated manifests.
    pub policy: InstallationPolicy,
    /// Operator catalogs of the site.
    pub catalogs: SiteCatalogs,
    /// Access to registries.
    pub registry: RegistryAccess,
    /// Confinement of the installer and its loader.
    pub confinement: Confinement,
    /// Content of `SERVICE_CA_CERT_PATH`, for the nodes' trust.
    pub service_ca: Option<String>,
    /// Concurrency limit of installers.
    pub concurrency: usize,
    /// `INSTALLER_CACHE_CAPACITY`: capacity of the installer cache; 0 for no limit. Units: bytes.
    pub cache_capacity_bytes: u64,
    /// `PREPARE_FOR_INSTALLATION_TIMEOUT`: timeout of one preparation, with its wait for a permit.
    pub time_limit: Duration,
    /// `RELEASE_IMAGE_TIMEOUT`: timeout of reading a release image's metadata from one registry, and of reading its
    /// signature from all stores.
    pub release_timeout: Duration,
    /// Trusted signers of release images; none without `RELEASE_KEYRING`.
    pub signers: Option<Signers>,
    /// Called at each event of the installer cache, for metrics.
    pub on_cache_event: fn(&InstallerCacheEvent),
}

/// [`InstallOptions`] and the shared state of preparations. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct InstallContext(pub(crate) Arc<InstallState>);

#[derive(Debug)]
pub(crate) struct InstallState {
    pub(crate) options: InstallOptions,
    /// Concurrency limit of installers.
    pub(crate) permits: Semaphore,
    /// Cache of release metadata.
    pub(crate) releases: ReleaseCache,
    /// Locks of the installer cache's folders: extractions of one image are coalesced.
    pub(crate) extracting: KeyedMutex<PathBuf>,
    /// Concurrency limit of preparations per registry.
    pub(crate) registry_limit: RegistryLimit,
}

impl InstallContext {
    /// Access to registries.
    pub fn registry_access(&self) -> &RegistryAccess {
        &self.0.options.registry
    }

    /// Builds the shared state.
    pub fn new(options: InstallOptions) -> Self {
        let permits = Semaphore::new(options.concurrency.max(1));
        Self(Arc::new(InstallState {
            options,
            permits,
            releases: ReleaseCache::default(),
            extracting: KeyedMutex::default(),
            registry_limit: RegistryLimit::default(),
        }))
    }

    /// The options.
    pub fn options(&self) -> &InstallOptions {
        &self.0.options
    }

    /// Waits for the permit to run one installer.
    pub(crate) async fn installer_permit(&self) -> Option<SemaphorePermit<'_>> {
        // Never none: the semaphore is not closed.
        self.0.permits.acquire().await.ok()
    }

    /// Cache of release metadata.
    pub(crate) fn releases(&self) -> &ReleaseCache {
        &self.0.releases
    }

    /// Locks `folder` of the installer cache for an extraction.
    pub(crate) async fn lock_extraction(&self, folder: &Path) -> OwnedMutexGuard<()> {
        self.0.extracting.lock(folder).await
    }

    /// A permit for a preparation that reads `image`; none at the limit of its registry.
    pub fn admit(&self, image: &str) -> Option<PreparationPermit> {
        let registry = image.split('/').next().unwrap_or(image);
        self.0.registry_limit.try_acquire(registry)
    }

    /// Verifies that a trusted signer signed a release image.
    ///
    /// Errors: those of [`Signers::check`]; Invalid – no signers are trusted.
    pub async fn check_signed(&self, image: &str) -> Result<(), Error> {
        let options = self.options();
        let Some(signers) = &options.signers else {
            return Err(unsigned(
                "RELEASE_KEYRING is empty: no key is trusted to sign release images",
            ));
        };
        signers.check(image, options.release_timeout).await
    }

    /// Metadata of the release image `image`; made up without a registry if `dummy_ignition` is set.
    ///
    /// Errors: no registry that has it answers, or its metadata is malformed; with registry and image.
    pub async fn release(
        &self,
        image: &str,
        pull_secret: &SecretString,
    ) -> Result<ReleaseInfo, PreparationFailure> {
        if self.options().dummy_ignition {
            return Ok(ReleaseInfo::dummy(image));
        }
        release_image::read(self, image, pull_secret).await
    }

    /// Takes the file lock of `cluster`'s preparation, among all processes on the same files; none if it is held.
    ///
    /// Errors: the folder cannot be written.
    pub async fn try_lock(
        &self,
        cluster: ClusterId,
    ) -> Result<Option<PreparationLock>, PreparationFailure> {
        let folder = self.work_folders();
        blocking(move || {
            PreparationLock::try_take(&folder, cluster).map_err(|error| {
                PreparationFailure::new(format!("{} cannot be written: {error}", folder.display()))
            })
        })
        .await
    }

    /// Folder of the installer cache.
    pub(crate) fn installer_cache(&self) -> PathBuf {
        self.0.options.store.root().join("installercache")
    }

    /// Parent of the work folders, one per installer run.
    pub(crate) fn work_folders(&self) -> PathBuf {
        self.0.options.store.root().join("install-config-generate")
    }
}

/// Input of a preparation.
#[derive(Debug, Clone)]
pub struct PreparationInput {
    /// The cluster and its hosts, with roles and bootstrap host. `cluster.ocp_release_image` names the release.
    pub snapshot: rules::Snapshot,
    /// The cluster's pull secret, unchanged.
    pub pull_secret: SecretString,
    /// Whether RELEASE_IMAGES lists the release image. An unlisted one must have the cluster's version.
    pub is_listed: bool,
    /// Distinct infra-envs of the hosts.
    pub infra_envs: Vec<InfraEnv>,
}

/// Outcome of a preparation; its files are in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparationOutcome {
    /// Generated id of the cluster, for `openshift_cluster_id`.
    pub openshift_cluster_id: Uuid,
    /// Metadata of the release.
    pub release: ReleaseInfo,
}
