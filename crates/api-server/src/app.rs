//! The use cases, one module per noun, and the state of the application: handlers and tasks take the nouns that they need.

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
mod component_images;
pub(crate) mod day2;
pub(crate) mod declarations;
pub(crate) mod discovery_files;
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
mod job_runner;
mod job_work;
pub(crate) mod jobs;
mod known_release;
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
pub(crate) mod registry_content;
pub(crate) mod release_images;
pub(crate) mod render;
mod repeated_replies;
pub(crate) mod request;
pub(crate) mod sealing;
pub(crate) mod site_checks;
mod steps;
pub(crate) mod token_validity;
mod url_tokens;
pub(crate) mod versions;

use std::sync::Arc;

use axum::extract::FromRef;
use net::resolve::Resolver;
use tokio_util::task::TaskTracker;

pub(crate) use cluster_store::{ClusterStore, ClusterTransaction, Scope, StoredSnapshot};
pub(crate) use heartbeats::Heartbeats;
pub(crate) use site_checks::remote_services;

use ::preparation::InstallContext;
use access::AccessControl;
use agent::Agents;
use audit::{AuditQueue, AuditRecords};
use bmc_boots::BmcBoots;
use change_stream::ChangeStreams;
use cluster_files::FileStore;
use clusters::Clusters;
use component_images::ComponentSource;
use declarations::Declarations;
use discovery_files::DiscoveryFiles;
use encoded::EncodedClusters;
use event_stream::EventStreams;
use events::Events;
use expected_hosts::ExpectedHosts;
use explain::Explanations;
use files::ClusterFiles;
use hosts::Hosts;
use infra_envs::{InfraEnvCache, InfraEnvs};
use installation::Installations;
use installed_nodes::InstalledNodes;
use ipxe::IpxeScripts;
use jobs::Jobs;
use links::Links;
use log_in_codes::LogInLinks;
use logs::Logs;
use manifests::Manifests;
use offer::CurrentOffer;
use owners::RecordBound;
use preparation::Preparations;
use registry_content::SiteContent;
use repeated_replies::RepeatedReplies;
use site_checks::SiteChecks;
use steps::AgentSteps;
use token_validity::InfraEnvTokens;

use crate::auth::Authentication;
use crate::carry_in::CarryIn;
use crate::db::Database;
use crate::discovery::DiscoveryOptions;
use crate::settings::Settings;

/// The state of the application, as a list of parts: nothing else reaches them all. Cloning is cheap.
#[derive(Debug, Clone)]
pub(crate) struct App(Arc<Parts>);

/// Declares the parts; each is extracted from the state by its type.
macro_rules! parts {
    ($($name:ident: $part:ty),+ $(,)?) => {
        #[derive(Debug)]
        struct Parts {
            $($name: $part),+
        }

        $(impl FromRef<App> for $part {
            fn from_ref(app: &App) -> Self {
                app.0.$name.clone()
            }
        })+
    };
}

parts! {
    access: Arc<AccessControl>,
    agents: Arc<Agents>,
    audit: Arc<AuditQueue>,
    audit_records: Arc<AuditRecords>,
    bmc_boots: Arc<BmcBoots>,
    change_streams: Arc<ChangeStreams>,
    cluster_files: Arc<ClusterFiles>,
    cluster_store: Arc<ClusterStore>,
    clusters: Arc<Clusters>,
    db: Database,
    declarations: Arc<Declarations>,
    discovery_files: Arc<DiscoveryFiles>,
    event_streams: Arc<EventStreams>,
    events: Arc<Events>,
    expected_hosts: Arc<ExpectedHosts>,
    explanations: Arc<Explanations>,
    file_store: FileStore,
    heartbeats: Arc<Heartbeats>,
    hosts: Arc<Hosts>,
    infra_envs: Arc<InfraEnvs>,
    installations: Arc<Installations>,
    installed_nodes: Arc<InstalledNodes>,
    ipxe_scripts: Arc<IpxeScripts>,
    jobs: Arc<Jobs>,
    links: Arc<Links>,
    log_in_links: Arc<LogInLinks>,
    logs: Arc<Logs>,
    manifests: Arc<Manifests>,
    offer: Arc<CurrentOffer>,
    preparations: Arc<Preparations>,
    requests: TaskTracker,
    settings: Arc<Settings>,
    site_content: Arc<SiteContent>,
    site_checks: Arc<SiteChecks>,
    tokens: Arc<InfraEnvTokens>,
}

impl App {
    /// Builds the parts, from those that the others need to those that handlers alone take.
    #[expect(clippy::too_many_lines, reason = "one list of all parts")]
    pub(crate) fn new(
        settings: Settings,
        auth: Authentication,
        file_store: FileStore,
        discovery: DiscoveryOptions,
        install: InstallContext,
        offer: CurrentOffer,
    ) -> Self {
        let carry_in = CarryIn::new(&settings, install.registry_access());
        let (settings, auth, offer) = (Arc::new(settings), Arc::new(auth), Arc::new(offer));
        let db = Database::new(&settings, Resolver::system(), file_store.keyring().clone());
        let requests = TaskTracker::new();

        let events = Arc::new(Events::new(db.clone(), &settings));
        let heartbeats = Arc::new(Heartbeats::new(db.clone()));
        let cluster_store = Arc::new(ClusterStore::new(
            db.clone(),
            &settings,
            Arc::clone(&events),
            Arc::clone(&heartbeats),
            requests.clone(),
        ));
        let tokens = Arc::new(InfraEnvTokens::new(
            db.clone(),
            Arc::clone(&auth),
            &settings,
        ));
        let links = Arc::new(Links::new(db.clone(), settings.base_url()));
        let access = Arc::new(AccessControl::new(
            db.clone(),
            Arc::clone(&auth),
            Arc::clone(&tokens),
            Arc::clone(&links),
            settings.enable_org_tenancy,
        ));

        let components = Arc::new(ComponentSource {
            set: settings.components(),
            offer: Arc::clone(&offer),
            install: install.clone(),
        });
        let agents = Agents {
            db: db.clone(),
            clusters: Arc::clone(&cluster_store),
            heartbeats: Arc::clone(&heartbeats),
            infra_envs: InfraEnvCache::new(db.clone()),
            events: Arc::clone(&events),
            steps: AgentSteps {
                db: db.clone(),
                policy: Arc::clone(&cluster_store.policy),
                settings: settings.steps(),
                offer: Arc::clone(&offer),
                tokens: Arc::clone(&tokens),
            },
            repeated_replies: RepeatedReplies::default(),
        };
        let clusters = Arc::new(Clusters {
            db: db.clone(),
            store: Arc::clone(&cluster_store),
            heartbeats: Arc::clone(&heartbeats),
            encoded: EncodedClusters::default(),
            access: Arc::clone(&access),
            offer: Arc::clone(&offer),
            install: install.clone(),
            components: Arc::clone(&components),
            events: Arc::clone(&events),
            files: file_store.clone(),
            bound: RecordBound::of_clusters(&settings),
        });
        let infra_envs = Arc::new(InfraEnvs {
            db: db.clone(),
            clusters: Arc::clone(&cluster_store),
            access: Arc::clone(&access),
            tokens: Arc::clone(&tokens),
            offer: Arc::clone(&offer),
            components,
            events: Arc::clone(&events),
            bound: RecordBound::of_infra_envs(&settings),
        });
        let hosts = Arc::new(Hosts {
            db: db.clone(),
            clusters: Arc::clone(&cluster_store),
            heartbeats: Arc::clone(&heartbeats),
            files: file_store.clone(),
            events: Arc::clone(&events),
        });
        let expected_hosts = Arc::new(ExpectedHosts {
            db: db.clone(),
            clusters: Arc::clone(&cluster_store),
        });
        let cluster_files = Arc::new(ClusterFiles {
            clusters: Arc::clone(&cluster_store),
            hosts: Arc::clone(&hosts),
            files: file_store.clone(),
        });
        let declarations = Declarations {
            db: db.clone(),
            store: Arc::clone(&cluster_store),
            clusters: Arc::clone(&clusters),
            infra_envs: Arc::clone(&infra_envs),
            expected_hosts: Arc::clone(&expected_hosts),
            access: Arc::clone(&access),
            offer: Arc::clone(&offer),
        };
        let site_content = Arc::new(SiteContent::new(
            db.clone(),
            Arc::clone(&offer),
            &settings,
            install.registry_access(),
        ));
        Self(Arc::new(Parts {
            agents: Arc::new(agents),
            audit: Arc::default(),
            audit_records: Arc::new(AuditRecords::new(db.clone())),
            bmc_boots: Arc::new(BmcBoots::new(
                db.clone(),
                Arc::clone(&settings),
                Arc::clone(&offer),
                Arc::clone(&tokens),
            )),
            change_streams: Arc::new(ChangeStreams::new(db.clone())),
            declarations: Arc::new(declarations),
            discovery_files: Arc::new(DiscoveryFiles {
                db: db.clone(),
                clusters: Arc::clone(&cluster_store),
                tokens: Arc::clone(&tokens),
                options: discovery,
            }),
            event_streams: Arc::new(EventStreams::new(db.clone(), settings.max_event_streams)),
            explanations: Arc::new(Explanations::new(
                db.clone(),
                Arc::clone(&cluster_store),
                Arc::clone(&heartbeats),
                Arc::clone(&access),
            )),
            installations: Arc::new(Installations {
                clusters: Arc::clone(&cluster_store),
                files: file_store.clone(),
                events: Arc::clone(&events),
            }),
            installed_nodes: Arc::new(InstalledNodes::new(
                Arc::clone(&cluster_files),
                Arc::clone(&settings),
            )),
            ipxe_scripts: Arc::new(IpxeScripts {
                db: db.clone(),
                tokens: Arc::clone(&tokens),
                offer: Arc::clone(&offer),
                callback_url: settings.callback_url(),
            }),
            jobs: Arc::new(Jobs::new(
                db.clone(),
                Arc::clone(&settings),
                Arc::clone(&offer),
                carry_in,
                Arc::clone(&site_content),
            )),
            log_in_links: Arc::new(LogInLinks::new(db.clone(), auth)),
            logs: Arc::new(Logs {
                db: db.clone(),
                clusters: Arc::clone(&cluster_store),
                files: file_store.clone(),
                events: Arc::clone(&events),
                max_bytes: settings.max_log_bytes,
            }),
            manifests: Arc::new(Manifests {
                db: db.clone(),
                clusters: Arc::clone(&cluster_store),
                files: file_store.clone(),
                max_per_cluster: settings.max_manifests_per_cluster,
            }),
            site_checks: Arc::new(SiteChecks::new(
                Arc::clone(&settings),
                Arc::clone(&offer),
                install.registry_access().clone(),
                Arc::clone(&site_content),
            )),
            preparations: Arc::new(Preparations {
                db: db.clone(),
                clusters: Arc::clone(&cluster_store),
                install,
                offer: Arc::clone(&offer),
            }),
            site_content,
            access,
            cluster_files,
            cluster_store,
            clusters,
            db,
            events,
            expected_hosts,
            file_store,
            heartbeats,
            hosts,
            infra_envs,
            links,
            offer,
            requests,
            settings,
            tokens,
        }))
    }

    /// A part, by its type.
    pub(crate) fn part<T: FromRef<Self>>(&self) -> T {
        T::from_ref(self)
    }
}
