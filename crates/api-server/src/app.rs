//! What every handler and task shares, and the use cases by noun.

pub(crate) mod agent;
mod cache;
mod check_ins;
pub(crate) mod clusters;
pub(crate) mod events;
pub(crate) mod files;
mod grace_period;
pub(crate) mod hosts;
pub(crate) mod ignored_validations;
pub(crate) mod infra_envs;
pub(crate) mod installation;
pub(crate) mod ipxe;
mod load;
pub(crate) mod logs;
pub(crate) mod manifests;
mod monitor;
pub(crate) mod operators;
pub(crate) mod preparation;
mod refresh;
pub(crate) mod render;
pub(crate) mod request;
mod requirements;
mod save;
mod steps;
pub(crate) mod transaction;
pub(crate) mod versions;

use std::sync::Arc;

use model::Error;
use model::ids::ClusterId;
use net::resolve::Resolver;
use rules::{Offer, Policy};
use sqlx::PgPool;
use tokio::sync::{Notify, Semaphore};
use tokio_util::task::TaskTracker;

pub(crate) use cache::Stored;
pub(crate) use preparation::Attempt;
pub(crate) use transaction::{Scope, Work};

use crate::db::{Database, EventLimits};
use crate::files::FileStore;
use crate::settings::Settings;
use crate::{discovery, install};
use concurrency::KeyedMutex;

/// The server's state. Cloning is cheap.
#[derive(Debug, Clone)]
pub(crate) struct App(Arc<Shared>);

/// What an [`App`] is made of.
#[derive(Debug)]
pub(crate) struct Shared {
    /// As the operator set them.
    pub(crate) settings: Settings,
    /// What decisions are told, made of the settings.
    pub(crate) policy: Policy,
    /// What can be installed, made of the settings.
    pub(crate) offer: Offer,
    /// What steps are made with, made of the settings.
    pub(crate) step_settings: rules::steps::Settings,
    /// Rows.
    pub(crate) db: Database,
    /// Files of clusters.
    pub(crate) store: FileStore,
    /// What discovery ignitions are made with.
    pub(crate) discovery: discovery::DiscoveryOptions,
    /// What installation files are made with.
    pub(crate) install: install::InstallContext,
    /// Times of polls that are not written yet.
    pub(crate) check_ins: check_ins::CheckIns,
    /// How many events are kept.
    pub(crate) event_limits: EventLimits,
    /// Since when hosts can be heard.
    pub(crate) hearing: grace_period::Hearing,
    /// Requests that are being answered: the database stays open for them.
    pub(crate) requests: TaskTracker,
    /// Wakes the preparation task.
    pub(crate) preparation: Notify,
    cache: cache::Cache,
    changing: KeyedMutex<uuid::Uuid>,
    /// Reads of whole clusters, one at a time for each.
    loads: KeyedMutex<uuid::Uuid>,
    /// Changes at the same time: they leave connections to polls.
    changes: Semaphore,
    refreshes: refresh::Refreshes,
}

impl App {
    /// Puts the parts together.
    pub(crate) fn new(
        settings: Settings,
        store: FileStore,
        discovery: discovery::DiscoveryOptions,
        install: install::InstallContext,
        mirrors: Option<&install::RegistryMirrors>,
    ) -> Self {
        // At least one, and never all: settings have at least 4 connections.
        let changes = usize::try_from(settings.db_max_open_connections / 2).unwrap_or(1);
        Self(Arc::new(Shared {
            policy: settings.policy(),
            offer: settings.offer(mirrors),
            step_settings: settings.steps(),
            db: Database::new(&settings, Resolver::system()),
            event_limits: EventLimits {
                per_cluster: settings.max_events_per_cluster.into(),
                total: settings.max_events.into(),
            },
            settings,
            store,
            discovery,
            install,
            check_ins: check_ins::CheckIns::default(),
            hearing: grace_period::Hearing::default(),
            requests: TaskTracker::new(),
            preparation: Notify::new(),
            cache: cache::Cache::default(),
            changing: KeyedMutex::default(),
            loads: KeyedMutex::default(),
            changes: Semaphore::new(changes),
            refreshes: refresh::Refreshes::default(),
        }))
    }

    /// The pool, once the schema stands.
    fn pool(&self) -> Result<&PgPool, Error> {
        self.db.pool()
    }

    /// Forgets what is in memory about a cluster that is gone.
    fn forget(&self, id: ClusterId) {
        self.cache.remove(id);
    }
}

impl std::ops::Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}
