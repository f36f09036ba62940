//! State shared by handlers and tasks; the use cases, one module per noun.

pub(crate) mod access;
pub(crate) mod agent;
pub(crate) mod audit;
mod audit_file;
pub(crate) mod audit_writer;
mod binding;
pub(crate) mod bmc_boots;
pub(crate) mod change_stream;
pub(crate) mod cluster_store;
pub(crate) mod clusters;
mod day2;
pub(crate) mod declarations;
mod encoded;
pub(crate) mod event_stream;
pub(crate) mod events;
pub(crate) mod expected_hosts;
pub(crate) mod explain;
pub(crate) mod files;
mod heartbeats;
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
pub(crate) mod log_in_codes;
pub(crate) mod logs;
pub(crate) mod manifests;
pub(crate) mod monitor;
pub(crate) mod offer;
pub(crate) mod operators;
pub(crate) mod os_images;
mod owners;
pub(crate) mod preparation;
pub(crate) mod redacted_files;
pub(crate) mod release_images;
pub(crate) mod render;
pub(crate) mod repeated_replies;
pub(crate) mod request;
pub(crate) mod sealing;
pub(crate) mod site_checks;
mod steps;
pub(crate) mod token_validity;
mod url_tokens;
pub(crate) mod versions;

use std::sync::Arc;

use axum::extract::FromRef;
use model::Error;
use net::resolve::Resolver;
use sqlx::PgPool;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use access::AccessControl;
use audit::{AuditQueue, AuditRecords};
use change_stream::ChangeStreams;
pub(crate) use cluster_store::{ClusterStore, ClusterTransaction, Scope, StoredSnapshot};
use event_stream::EventStreams;
use events::Events;
pub(crate) use heartbeats::Heartbeats;
use jobs::Jobs;
use links::Links;
use log_in_codes::LogInLinks;
use offer::CurrentOffer;
use os_images::OsImageOffer;
pub(crate) use preparation::PreparationAttempt;
use release_images::ReleaseOffer;
use site_checks::SiteChecks;
pub(crate) use site_checks::remote_services;
use token_validity::InfraEnvTokens;

use crate::auth::Authentication;
use crate::carry_in::CarryIn;
use crate::db::Database;
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
    pub(crate) settings: Arc<Settings>,
    /// Verification of credentials.
    pub(crate) auth: Arc<Authentication>,
    access: Arc<AccessControl>,
    tokens: Arc<InfraEnvTokens>,
    links: Arc<Links>,
    pub(crate) clusters: Arc<ClusterStore>,
    pub(crate) heartbeats: Arc<Heartbeats>,
    pub(crate) offer: Arc<CurrentOffer>,
    pub(crate) releases: Arc<ReleaseOffer>,
    pub(crate) os_images: Arc<OsImageOffer>,
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
    pub(crate) events: Arc<Events>,
    pub(crate) event_streams: Arc<EventStreams>,
    pub(crate) change_streams: Arc<ChangeStreams>,
    pub(crate) audit: Arc<AuditQueue>,
    audit_records: Arc<AuditRecords>,
    /// In-flight requests: the pool closes after they are drained.
    pub(crate) requests: TaskTracker,
    repeated_replies: repeated_replies::RepeatedReplies,
    /// Clusters as they are sent.
    encoded: encoded::EncodedClusters,
    /// Infra-envs of polls, valid while their version is the database's.
    infra_envs: infra_envs::InfraEnvCache,
    /// Concurrency limit of explanations.
    explanations: Semaphore,
    pub(crate) jobs: Arc<Jobs>,
    log_in_links: Arc<LogInLinks>,
    site_checks: Arc<SiteChecks>,
    pub(crate) bmc_boots: bmc_boots::BmcBoots,
    installed_reads: installed_nodes::InstalledReads,
}

impl ApiServer {
    /// Builds the state from its parts.
    pub(crate) fn new(
        settings: Settings,
        auth: Authentication,
        store: FileStore,
        discovery: discovery::DiscoveryOptions,
        install: install::InstallContext,
        offer: CurrentOffer,
    ) -> Self {
        let carry_in = CarryIn::new(&settings, install.registry_access());
        let (settings, auth, offer) = (Arc::new(settings), Arc::new(auth), Arc::new(offer));
        let db = Database::new(&settings, Resolver::system(), store.keyring().clone());
        let tokens = InfraEnvTokens::new(db.clone(), Arc::clone(&auth), &settings);
        let (tokens, links) = (
            Arc::new(tokens),
            Links::new(db.clone(), settings.base_url()),
        );
        let links = Arc::new(links);
        let access = AccessControl::new(
            db.clone(),
            Arc::clone(&auth),
            Arc::clone(&tokens),
            Arc::clone(&links),
            settings.enable_org_tenancy,
        );
        let requests = TaskTracker::new();
        let events = Arc::new(Events::new(db.clone(), &settings));
        let heartbeats = Arc::new(Heartbeats::new(db.clone()));
        let clusters = ClusterStore::new(
            db.clone(),
            &settings,
            Arc::clone(&events),
            Arc::clone(&heartbeats),
            requests.clone(),
        );
        let own_releases = settings.release_images.0.clone();
        Self(Arc::new(ServerState {
            step_settings: settings.steps(),
            releases: Arc::new(ReleaseOffer::new(
                db.clone(),
                Arc::clone(&offer),
                own_releases,
            )),
            os_images: Arc::new(OsImageOffer::new(db.clone(), Arc::clone(&offer))),
            clusters: Arc::new(clusters),
            heartbeats,
            events,
            event_streams: Arc::new(EventStreams::new(db.clone(), settings.max_event_streams)),
            change_streams: Arc::new(ChangeStreams::new(db.clone())),
            audit: Arc::default(),
            audit_records: Arc::new(AuditRecords::new(db.clone())),
            jobs: Arc::new(Jobs::new(db.clone(), Arc::clone(&settings), carry_in)),
            log_in_links: Arc::new(LogInLinks::new(db.clone(), Arc::clone(&auth))),
            site_checks: Arc::new(SiteChecks::new(
                Arc::clone(&settings),
                Arc::clone(&offer),
                install.registry_access().clone(),
            )),
            access: Arc::new(access),
            auth,
            tokens,
            links,
            offer,
            db,
            settings,
            store,
            discovery,
            install,
            requests,
            repeated_replies: repeated_replies::RepeatedReplies::default(),
            encoded: encoded::EncodedClusters::default(),
            infra_envs: infra_envs::InfraEnvCache::default(),
            explanations: Semaphore::new(1),
            bmc_boots: bmc_boots::BmcBoots::default(),
            installed_reads: installed_nodes::InstalledReads::default(),
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
}

impl std::ops::Deref for ApiServer {
    type Target = ServerState;

    fn deref(&self) -> &ServerState {
        &self.0
    }
}

/// Parts of the state that handlers extract.
macro_rules! extracted {
    ($($field:ident: $part:ty),+ $(,)?) => {
        $(impl FromRef<ApiServer> for $part {
            fn from_ref(app: &ApiServer) -> Self {
                app.0.$field.clone()
            }
        })+
    };
}

extracted! {
    clusters: Arc<ClusterStore>,
    heartbeats: Arc<Heartbeats>,
    access: Arc<AccessControl>,
    audit: Arc<AuditQueue>,
    audit_records: Arc<AuditRecords>,
    change_streams: Arc<ChangeStreams>,
    event_streams: Arc<EventStreams>,
    events: Arc<Events>,
    jobs: Arc<Jobs>,
    links: Arc<Links>,
    log_in_links: Arc<LogInLinks>,
    offer: Arc<CurrentOffer>,
    os_images: Arc<OsImageOffer>,
    releases: Arc<ReleaseOffer>,
    settings: Arc<Settings>,
    site_checks: Arc<SiteChecks>,
    tokens: Arc<InfraEnvTokens>,
}
