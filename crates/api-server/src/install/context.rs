//! What a preparation needs, takes and gives.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use model::ids::ClusterId;
use model::infra_env::InfraEnv;
use rules::Policy;
use secrecy::SecretString;
use tokio::sync::{OwnedMutexGuard, Semaphore, SemaphorePermit};
use uuid::Uuid;

use super::confinement::Confinement;
use super::mirrors::Mirrors;
use super::registry_limit::{Admission, Admitted};
use super::release::ReleaseInfo;
use super::signers::Signers;
use super::work_folder::Claim;
use crate::files::Store;
use concurrency::KeyedMutex;

/// How preparations are made, fixed at start.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where results go; the installer cache and the private work folders lie beside them.
    pub store: Store,
    /// `DUMMY_IGNITION`: neither registry nor installer, made-up files; a test mode.
    pub dummy_ignition: bool,
    /// `INSTALL_INVOKER`: who installs, as the cluster records it.
    pub invoker: String,
    /// What the manifests of the service follow.
    pub policy: Policy,
    /// How registries are reached.
    pub registry: RegistryAccess,
    /// How the installer and its loader are confined.
    pub confinement: Confinement,
    /// Content of `SERVICE_CA_CERT_PATH`, added to what the nodes trust.
    pub service_ca: Option<String>,
    /// How many preparations run the installer at the same time; the others wait.
    pub concurrency: usize,
    /// `INSTALLER_CACHE_CAPACITY`: what the installers kept for later may take on disk; 0 for no limit. Units: bytes.
    pub cache_capacity_bytes: u64,
    /// What one preparation may take, waiting for its turn included. `PREPARE_FOR_INSTALLATION_TIMEOUT`.
    pub time_limit: Duration,
    /// `RELEASE_IMAGE_TIMEOUT`: how long one registry may take to deliver what a release image says about itself, and the
    /// stores together to deliver its signature.
    pub release_timeout: Duration,
    /// Who may sign release images; none without `RELEASE_KEYRING`.
    pub signers: Option<Signers>,
}

/// How registries are reached.
#[derive(Debug, Clone, Default)]
pub struct RegistryAccess {
    /// Certificates, beside the system's, that a registry's chain may end in.
    pub ca_pem: Option<Vec<u8>>,
    /// `SKIP_CERT_VERIFICATION`.
    pub insecure: bool,
    /// Where mirrored images lie; none without a mirror configuration.
    pub mirrors: Option<Mirrors>,
}

/// [`Options`] with what preparations share while the process runs. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Context(pub(super) Arc<Shared>);

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: Options,
    /// One permit per installer that may run.
    pub(super) turns: Semaphore,
    /// Release images read so far.
    pub(super) releases: super::release::Cache,
    /// Guards each place of the installer cache: an image is extracted once, and images do not wait for each other.
    pub(super) extracting: KeyedMutex<PathBuf>,
    /// Bounds the preparations that one registry can hold up.
    pub(super) admission: Admission,
}

impl Context {
    /// Builds the shared part.
    pub fn new(options: Options) -> Self {
        let turns = Semaphore::new(options.concurrency.max(1));
        Self(Arc::new(Shared {
            options,
            turns,
            releases: super::release::Cache::default(),
            extracting: KeyedMutex::default(),
            admission: Admission::default(),
        }))
    }

    /// How preparations are made.
    pub fn options(&self) -> &Options {
        &self.0.options
    }

    /// Waits until one more installer may run; it may while the answer lives.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed, so there is always a permit in the end.
        self.0.turns.acquire().await.ok()
    }

    /// Release images read so far.
    pub(super) fn releases(&self) -> &super::release::Cache {
        &self.0.releases
    }

    /// Waits until no other preparation extracts the installer that `folder` of the cache is for.
    pub(super) async fn extracting(&self, folder: &Path) -> OwnedMutexGuard<()> {
        self.0.extracting.lock(folder).await
    }

    /// Admits a preparation that reads `image`; nothing while its registry has as many as it may.
    pub(crate) fn admit(&self, image: &str) -> Option<Admitted> {
        self.0.admission.admit(super::registry::registry_of(image))
    }

    /// Takes the right to prepare `cluster`, among all processes that share the files; nothing while another has it.
    ///
    /// Errors: the folder cannot be written.
    pub(crate) async fn claim(&self, cluster: ClusterId) -> Result<Option<Claim>, Failure> {
        let folder = self.work_folders();
        super::blocking(move || {
            Claim::take(&folder, cluster).map_err(|error| {
                Failure::new(format!("{} cannot be written: {error}", folder.display()))
            })
        })
        .await
    }

    /// Where the installer of each release image is kept.
    pub(super) fn installer_cache(&self) -> PathBuf {
        self.0.options.store.root().join("installercache")
    }

    /// Where installers run, each in a folder of its own.
    pub(super) fn work_folders(&self) -> PathBuf {
        self.0.options.store.root().join("install-config-generate")
    }
}

/// What is to be prepared.
#[derive(Debug, Clone)]
pub struct Input {
    /// The cluster and its hosts, roles assigned and bootstrap chosen. `cluster.ocp_release_image` names the release.
    pub snapshot: rules::Snapshot,
    /// The cluster's pull secret, as the user gave it.
    pub pull_secret: SecretString,
    /// Whether the operator lists the release image. One that a caller names has to be of the cluster's version.
    pub is_listed: bool,
    /// The infra-envs that the hosts came from, each once.
    pub infra_envs: Vec<InfraEnv>,
}

/// What a preparation found out; its files are in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The id that the cluster will report, for `openshift_cluster_id`.
    pub openshift_cluster_id: Uuid,
    /// The release that was used.
    pub release: ReleaseInfo,
}

/// Why a preparation did not succeed, in words for the user; nothing was stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Failure {
    /// What failed and where; never holds credentials.
    pub reason: String,
}

impl Failure {
    /// A failure for `reason`.
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
        }
    }
}

impl From<model::Error> for Failure {
    fn from(error: model::Error) -> Self {
        Self::new(error.chain())
    }
}
