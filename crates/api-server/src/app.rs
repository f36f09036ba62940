//! State shared by handlers and tasks; the use cases, one module per noun.

pub(crate) mod access;
pub(crate) mod agent;
pub(crate) mod audit;
mod audit_file;
pub(crate) mod audit_writer;
mod binding;
pub(crate) mod bmc_boots;
pub(crate) mod cache;
pub(crate) mod change_stream;
mod check_ins;
mod clock_watch;
pub(crate) mod clusters;
mod day2;
pub(crate) mod declarations;
mod encoded;
pub(crate) mod event_stream;
pub(crate) mod events;
pub(crate) mod expected_hosts;
pub(crate) mod explain;
pub(crate) mod files;
mod grace_period;
mod host_changes;
pub(crate) mod hosts;
pub(crate) mod ignored_validations;
pub(crate) mod infra_envs;
pub(crate) mod install_config;
pub(crate) mod installation;
pub(crate) mod installed_nodes;
pub(crate) mod ipxe;
mod job_work;
pub(crate) mod jobs;
pub(crate) mod links;
mod load;
mod log_in_codes;
pub(crate) mod logs;
pub(crate) mod manifests;
mod monitor;
pub(crate) mod offer;
pub(crate) mod operators;
pub(crate) mod os_images;
mod owners;
mod pending_refresh;
pub(crate) mod preparation;
pub(crate) mod redacted_files;
mod refresh;
pub(crate) mod release_images;
pub(crate) mod render;
pub(crate) mod repeated_replies;
pub(crate) mod request;
mod save;
mod sealing;
mod site_checks;
mod steps;
mod token_validity;
pub(crate) mod transaction;
mod url_tokens;
pub(crate) mod versions;

use std::sync::Arc;

use concurrency::{BatchLoader, KeyedMutex};
use model::Error;
use model::ids::ClusterId;
use net::resolve::Resolver;
use rules::InstallationPolicy;
use sqlx::PgPool;
use tokio::sync::{Notify, Semaphore};
use tokio_util::task::TaskTracker;

pub(crate) use cache::StoredSnapshot;
use offer::CurrentOffer;
pub(crate) use preparation::PreparationAttempt;
pub(crate) use site_checks::remote_services;
pub(crate) use transaction::{ClusterTransaction, Scope};

use crate::auth::Authentication;
use crate::carry_in::CarryIn;
use crate::db::hosts::{HostKey, HostLookup};
use crate::db::{Database, EventLimits};
use crate::files::FileStore;
use crate::secrets::KeySet;
use crate::settings::Settings;
use crate::{discovery, install};

/// Handle to the server's state. Cloning is cheap.
#[derive(Debug, Clone)]
pub(crate) struct ApiServer(Arc<ServerState>);

/// The server's state, shared by all clones of [`ApiServer`].
#[derive(Debug)]
pub(crate) struct ServerState {
    /// Settings of the environment.
    pub(crate) settings: Settings,
    /// Verification of credentials.
    pub(crate) auth: Authentication,
    /// Parameters of the rules, from the settings.
    pub(crate) policy: InstallationPolicy,
    pub(crate) current_offer: CurrentOffer,
    /// Parameters of agent steps, from the settings.
    pub(crate) step_settings: rules::steps::Settings,
    /// Connection pool.
    pub(crate) db: Database,
    /// File store of clusters.
    pub(crate) store: FileStore,
    /// Parameters of discovery ignitions.
    pub(crate) discovery: discovery::DiscoveryOptions,
    /// Parameters of preparations.
    pub(crate) install: install::InstallContext,
    /// Heartbeats that are not flushed yet.
    pub(crate) check_ins: check_ins::CheckIns,
    /// Bounds of the stored events.
    pub(crate) event_limits: EventLimits,
    /// Streams of events.
    pub(crate) event_streams: event_stream::EventStreams,
    change_streams: change_stream::ChangeStreams,
    /// Records of changes by users, on their way to the database.
    pub(crate) audit: audit::AuditQueue,
    /// Start of the time in which heartbeats were accepted without a break.
    pub(crate) grace_period: grace_period::GracePeriod,
    pub(crate) clock_watch: clock_watch::ClockWatch,
    /// In-flight requests: the pool closes after they are drained.
    pub(crate) requests: TaskTracker,
    /// Wakes the preparation task.
    pub(crate) preparation: Notify,
    cache: cache::ClusterCache,
    /// Look-ups of hosts: those that arrive together share a query.
    host_lookups: BatchLoader<HostKey, HostLookup>,
    repeated_replies: repeated_replies::RepeatedReplies,
    /// Clusters as they are sent.
    encoded: encoded::EncodedClusters,
    /// Infra-envs of polls, valid while their version is the database's.
    infra_envs: infra_envs::InfraEnvCache,
    /// Generations of tokens.
    token_generations: token_validity::TokenGenerations,
    /// Mutex of each cluster or pool host: one change at a time in this process.
    changing: KeyedMutex<uuid::Uuid>,
    /// Changes of single hosts, which share transactions.
    host_changes: host_changes::HostChanges,
    /// Single-flight reads of whole clusters.
    loads: KeyedMutex<uuid::Uuid>,
    /// Concurrency limit of changes: it leaves connections of the pool to polls.
    changes: Semaphore,
    /// Concurrency limit of explanations.
    explanations: Semaphore,
    pub(crate) jobs: jobs::Jobs,
    pub(crate) bmc_boots: bmc_boots::BmcBoots,
    installed_reads: installed_nodes::InstalledReads,
    /// Checks of the site.
    site_reports: site_checks::SiteReports,
    refreshes: pending_refresh::Refreshes,
}

impl ApiServer {
    /// Builds the state from its parts.
    pub(crate) fn new(
        settings: Settings,
        auth: Authentication,
        store: FileStore,
        discovery: discovery::DiscoveryOptions,
        install: install::InstallContext,
        current_offer: CurrentOffer,
    ) -> Self {
        let carry_in = CarryIn::new(&settings, install.registry_access());
        // At least one, and never all: settings have at least 4 connections.
        let changes = usize::try_from(settings.db_max_open_connections / 2).unwrap_or(1);
        Self(Arc::new(ServerState {
            auth,
            policy: settings.policy(),
            current_offer,
            step_settings: settings.steps(),
            db: Database::new(&settings, Resolver::system(), store.keyring().clone()),
            event_limits: EventLimits {
                per_cluster: settings.max_events_per_cluster.into(),
                per_owner: match settings.max_events_per_owner {
                    0 => i64::MAX,
                    share => share.into(),
                },
                total: settings.max_events.into(),
            },
            event_streams: event_stream::EventStreams::new(settings.max_event_streams),
            change_streams: change_stream::ChangeStreams::default(),
            audit: audit::AuditQueue::default(),
            settings,
            store,
            discovery,
            install,
            check_ins: check_ins::CheckIns::default(),
            grace_period: grace_period::GracePeriod::default(),
            clock_watch: clock_watch::ClockWatch::default(),
            requests: TaskTracker::new(),
            preparation: Notify::new(),
            cache: cache::ClusterCache::default(),
            host_lookups: BatchLoader::default(),
            repeated_replies: repeated_replies::RepeatedReplies::default(),
            encoded: encoded::EncodedClusters::default(),
            infra_envs: infra_envs::InfraEnvCache::default(),
            token_generations: token_validity::TokenGenerations::default(),
            changing: KeyedMutex::default(),
            host_changes: host_changes::HostChanges::default(),
            loads: KeyedMutex::default(),
            changes: Semaphore::new(changes),
            explanations: Semaphore::new(1),
            jobs: jobs::Jobs::new(carry_in),
            bmc_boots: bmc_boots::BmcBoots::default(),
            installed_reads: installed_nodes::InstalledReads::default(),
            site_reports: site_checks::SiteReports::default(),
            refreshes: pending_refresh::Refreshes::default(),
        }))
    }

    /// The pool.
    ///
    /// Errors: Unavailable – the schema is not migrated yet.
    fn pool(&self) -> Result<&PgPool, Error> {
        self.db.pool()
    }

    /// Keys of stored secrets; none without a key file.
    pub(crate) async fn keys(&self) -> KeySet {
        self.db.keys().await
    }

    /// Evicts a deleted cluster from the caches.
    fn evict(&self, id: ClusterId) {
        self.cache.remove(id);
        self.encoded.remove(id);
    }
}

impl std::ops::Deref for ApiServer {
    type Target = ServerState;

    fn deref(&self) -> &ServerState {
        &self.0
    }
}
