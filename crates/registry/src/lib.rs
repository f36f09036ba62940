//! The container registry: distribution's protocol over a store in distribution's layout.
//!
//! Clusters are unknown here. The one invariant: acknowledged writes are durable, and nothing is visible before
//! it is whole.

mod auth;
mod error;
mod gc;
mod glob;
pub mod htpasswd;
mod http;
mod notifications;
mod observe;
mod origin;
mod policy;
mod purge;
mod readiness;
mod scrub;
mod server_settings;
mod settings;
mod size;
mod storage;
mod upstream;
mod validation;

use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;

use axum::Router;
use service::health::{self, Health};
use service::program::{self, ServerArgs, ServerSettings as _};
use service::server::{self, HttpSettings, Listen, Running};
use service::{CancellationToken, Error, ResultExt as _};

use auth::Gate;
use gc::Collector;
use http::{App, AppParts};
use observe::{Observer, StorageCount};
use origin::Origins;
use policy::{Policies, Pulls};
use scrub::Scrub;
use upstream::Upstreams;

pub use settings::{
    Driver, Endpoints, FileChecks, Formatter, Headers, HttpAddr, Level, Net, Patterns,
    PlatformChecks, Platforms, Prefix, Settings, UpstreamConfig, UpstreamList,
};
pub use size::Size;

/// Folder of the journals of notifications: beside the store's own files, outside of distribution's layout.
const JOURNALS: &str = ".atoll/notifications";
/// Opens the store, binds the address and serves there until `shutdown`.
///
/// Errors: a storage folder, bucket, password file or certificate that cannot be used; an address in use.
pub async fn start(settings: Settings, shutdown: CancellationToken) -> Result<Running, Error> {
    let (store, place) = storage::open(&settings).await?;
    let gate = open_gate(&settings).await?;
    // Beside a bucket, there need not be a folder that lasts.
    let root = &settings.registry_storage_filesystem_rootdirectory;
    let folder = (settings.driver() == Driver::Filesystem).then(|| root.join(JOURNALS));
    let origins = Arc::new(Origins::new(&settings));
    let (notifications, deliveries) = notifications::open(
        &settings,
        Arc::clone(&origins),
        folder.as_deref(),
        &shutdown,
    )?;
    let upstreams = Upstreams::open(&settings, store.clone()).await?;
    let policies = Arc::new(Policies::open(&settings).await?);
    let (scrub, pulls, count): (Arc<Scrub>, Arc<Pulls>, Arc<StorageCount>) = Default::default();
    scrub.load(&store).await;
    pulls.load(&store).await;
    let collector = Collector::new(
        store.clone(),
        Arc::clone(&policies),
        Arc::clone(&pulls),
        Arc::clone(&count),
        settings.registry_storage_maintenance_gc_grace,
    );
    let parts = AppParts {
        read_only: storage::read_only(&store, &settings),
        store,
        upstreams: upstreams.clone(),
        origins,
        policies,
        pulls,
        notifications,
        collector: Arc::new(collector),
        scrub,
        count,
    };
    let app = App::new(parts.clone(), &settings);
    let health = Health::new();
    let router = http::router(&app, gate)
        .merge(health::routes(
            health.clone(),
            settings.http.metrics_on_public_port,
        ))
        .merge(health::debug_route(health.clone()));
    let observer = Observer::new(&settings).doing("starting the access log")?;
    let router = observer.around(service::layers::trace(router, "registry"));
    let mut running = server::start(settings.listen(), router, shutdown.clone()).await?;
    tracing::info!(address = %running.address(), storage = place, "the registry listens");
    if let Some(aside) = start_debug(&settings, &health, &shutdown).await? {
        running.also(aside.wait());
    }
    {
        let (shutdown, limit) = (shutdown.clone(), settings.registry_http_draintimeout);
        running.also(async move {
            shutdown.run_until_cancelled(upstreams.expire()).await;
            // Downloads wait for them.
            upstreams.finish(limit).await;
            upstreams.save().await;
            Ok(())
        });
    }
    for work in deliveries {
        running.also(async move {
            work.await;
            Ok(())
        });
    }
    for task in tasks(parts, health, settings) {
        let shutdown = shutdown.clone();
        running.also(async move {
            shutdown.run_until_cancelled(task).await;
            Ok(())
        });
    }
    Ok(running)
}

/// Opens the gate, and warns when there is none.
async fn open_gate(settings: &Settings) -> Result<Option<Gate>, Error> {
    let gate = Gate::open(settings).await?;
    if auth::is_open_to_everybody(settings, gate.as_ref()).await {
        let remedy =
            "set REGISTRY_AUTH_HTPASSWD_PATH; `atoll registry htpasswd` makes a password file";
        tracing::warn!(remedy, "anonymous clients may push or delete");
    }
    Ok(gate)
}

/// Starts the listener of health and metrics alone, if the settings have one.
///
/// Errors: an address that cannot be bound.
async fn start_debug(
    settings: &Settings,
    health: &Health,
    shutdown: &CancellationToken,
) -> Result<Option<Running>, Error> {
    let Some(address) = settings.registry_http_debug_addr else {
        return Ok(None);
    };
    let http = HttpSettings {
        metrics_address: None,
        ..settings.http.clone()
    };
    let listen = vec![Listen::new(address.0, None).with(&http)];
    let router = debug_router(settings, health);
    let running = server::start(listen, router, shutdown.clone()).await?;
    tracing::info!(address = %running.address(), "health and metrics listen");
    Ok(Some(running))
}

fn debug_router(settings: &Settings, health: &Health) -> Router {
    let router = health::debug_route(health.clone());
    if settings.registry_http_debug_prometheus_enabled {
        router.merge(health::metrics_route(
            &settings.registry_http_debug_prometheus_path,
        ))
    } else {
        router
    }
}

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Background tasks, until the shutdown.
fn tasks(parts: AppParts, health: Health, settings: Settings) -> Vec<Task> {
    let AppParts {
        store,
        policies,
        pulls,
        collector,
        scrub,
        count,
        read_only,
        ..
    } = parts;
    let settings = Arc::new(settings);
    let may_write = read_only.is_none();
    let mut tasks: Vec<Task> = Vec::new();
    if settings.registry_storage_maintenance_gc_enabled && may_write {
        let settings = Arc::clone(&settings);
        tasks.push(Box::pin(async move { collector.run(&settings).await }));
    }
    let drops_uploads = settings.registry_storage_maintenance_uploadpurging_enabled
        && !settings.registry_storage_maintenance_uploadpurging_dryrun;
    if drops_uploads && may_write {
        let (store, settings) = (store.clone(), Arc::clone(&settings));
        tasks.push(Box::pin(async move { purge::run(store, &settings).await }));
    }
    if may_write {
        let pulls_store = store.clone();
        tasks.push(Box::pin(async move {
            policy::record_pulls(&pulls, &policies, &pulls_store).await;
        }));
        let (store, settings) = (store.clone(), Arc::clone(&settings));
        tasks.push(Box::pin(async move {
            scrub::run(&scrub, &store, &settings).await;
        }));
    }
    tasks.push(Box::pin(observe::watch_storage(store.clone(), count)));
    tasks.push(Box::pin(observe::watch_adoption(
        store.clone(),
        health.clone(),
    )));
    tasks.push(Box::pin(observe::watch_room(store.clone())));
    for (index, check) in settings.registry_health_file.0.iter().enumerate() {
        let component = format!("file {index}");
        let watch = readiness::watch_file(check.clone(), component, health.clone());
        tasks.push(Box::pin(watch));
    }
    if settings.registry_health_storagedriver_enabled {
        tasks.push(Box::pin(async move {
            readiness::watch_storage(store, may_write, health, &settings).await;
        }));
    }
    tasks
}

/// Runs the command line of this server; returns the exit code of the process.
pub fn main(arguments: &ServerArgs) -> ExitCode {
    program::main_with("registry", arguments, run)
}

/// [`start`], then until the server has ended.
///
/// Errors: as [`start`], or when the listener breaks.
async fn run(settings: Settings, shutdown: CancellationToken) -> Result<(), Error> {
    start(settings, shutdown).await?.wait().await
}
