//! The container registry: distribution's protocol over a store in distribution's layout.
//!
//! Clusters are unknown here. The one invariant: what was acknowledged is durable, and nothing is visible before
//! it is whole.

mod app;
mod auth;
mod gc;
mod glob;
pub mod htpasswd;
mod http;
mod notifications;
mod observe;
mod policy;
mod purge;
mod readiness;
mod scrub;
mod settings;
mod size;
mod storage;
mod upstream;
mod validation;
mod watched;

use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use service::health::{self, Health};
use service::program::ServerSettings as _;
use service::server::{self, Listen, Running};
use service::{CancellationToken, Error};

use app::App;
use auth::Gate;
use observe::Observer;
use policy::Policies;
use upstream::Upstreams;

pub use notifications::Endpoints;
pub use settings::{
    Driver, FileChecks, Formatter, Headers, HttpAddr, Level, Net, Patterns, PlatformChecks,
    Platforms, Prefix, Settings, UpstreamConfig, UpstreamList,
};
pub use size::Size;

/// Where journals of notifications are: beside what is the store's own, and not in distribution's layout.
const JOURNALS: &str = ".atoll/notifications";
/// Opens the store, binds the address and serves there until `shutdown`.
///
/// Errors: a storage folder, bucket, password file or certificate that cannot be used; an address in use.
pub async fn start(settings: Settings, shutdown: CancellationToken) -> Result<Running, Error> {
    let (store, place) = storage::open(&settings).await?;
    let gate = Gate::open(&settings).await?;
    if auth::is_open_to_everybody(&settings, gate.as_ref()).await {
        let remedy =
            "set REGISTRY_AUTH_HTPASSWD_PATH; `atoll registry htpasswd` makes a password file";
        tracing::warn!(
            remedy,
            "everybody who reaches this registry may push or delete"
        );
    }
    // Beside a bucket, there need not be a folder that lasts.
    let root = &settings.registry_storage_filesystem_rootdirectory;
    let folder = (settings.driver() == Driver::Filesystem).then(|| root.join(JOURNALS));
    let (notifier, notifying) = notifications::open(&settings, folder.as_deref(), &shutdown)?;
    let upstreams = Upstreams::open(&settings, store.clone()).await?;
    let policies = Policies::open(&settings).await?;
    let app = App::new(store, upstreams.clone(), policies, &settings, notifier);
    app.scrub.load(&app.store).await;
    app.pulls.load(&app.store).await;
    let health = Health::new();
    let router = http::router(&app, gate)
        .merge(health::routes(
            health.clone(),
            settings.http.metrics_on_public_port,
        ))
        .merge(health::debug_route(health.clone()));
    let observer =
        Observer::new(&settings).map_err(|e| Error::new("starting the access log", e))?;
    let router = observer.around(service::layers::trace(router, "registry"));
    let mut running = server::start(settings.listen(), router, shutdown.clone()).await?;
    tracing::info!(address = %running.address(), storage = place, "the registry listens");
    if let Some(address) = settings.registry_http_debug_addr {
        let listen = vec![Listen::new(address.0, None)];
        let router = debug_router(&settings, &health);
        let aside = server::start(listen, router, shutdown.clone()).await?;
        tracing::info!(address = %aside.address(), "health and metrics are told there");
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
    for work in notifying {
        running.also(async move {
            work.await;
            Ok(())
        });
    }
    for task in tasks(app, health, settings) {
        let shutdown = shutdown.clone();
        running.also(async move {
            shutdown.run_until_cancelled(task).await;
            Ok(())
        });
    }
    Ok(running)
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

/// What goes on beside requests, until the end.
fn tasks(app: App, health: Health, settings: Settings) -> Vec<Task> {
    let settings = Arc::new(settings);
    let may_clean = app.read_only.is_none();
    let mut tasks: Vec<Task> = Vec::new();
    if settings.registry_storage_maintenance_gc_enabled && may_clean {
        let (app, settings) = (app.clone(), Arc::clone(&settings));
        tasks.push(Box::pin(async move { gc::run(app, &settings).await }));
    }
    let drops_uploads = settings.registry_storage_maintenance_uploadpurging_enabled
        && !settings.registry_storage_maintenance_uploadpurging_dryrun;
    if drops_uploads && may_clean {
        let (store, settings) = (app.store.clone(), Arc::clone(&settings));
        tasks.push(Box::pin(async move { purge::run(store, &settings).await }));
    }
    if may_clean {
        let (app, settings) = (app.clone(), Arc::clone(&settings));
        tasks.push(Box::pin(policy::note_pulls(app.clone())));
        tasks.push(Box::pin(async move { scrub::run(app, &settings).await }));
    }
    tasks.push(Box::pin(observe::watch_storage(app.clone())));
    tasks.push(Box::pin(observe::watch_adoption(
        app.clone(),
        health.clone(),
    )));
    tasks.push(Box::pin(observe::watch_room(app.clone())));
    for (index, check) in settings.registry_health_file.0.iter().enumerate() {
        let component = format!("file {index}");
        let watch = readiness::watch_file(check.clone(), component, health.clone());
        tasks.push(Box::pin(watch));
    }
    if settings.registry_health_storagedriver_enabled {
        tasks.push(Box::pin(async move {
            readiness::watch_storage(app, health, &settings).await;
        }));
    }
    tasks
}

/// [`start`], then until the server has ended.
///
/// Errors: as [`start`], or when the listener breaks.
pub async fn run(settings: Settings, shutdown: CancellationToken) -> Result<(), Error> {
    start(settings, shutdown).await?.wait().await
}
