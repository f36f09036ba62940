//! The catalog server: operator catalogs over gRPC and HTTP.
//!
//! Knowledge about catalogs is in the crate `catalog`. The one invariant: a reply is of one catalog, even when a reload
//! happens while it is sent.

mod authority;
mod caches;
mod call;
mod compat;
pub mod grpc;
mod http;
mod metrics;
mod reload;
mod settings;
mod site_check;
mod snapshot;
mod source;

use std::process::ExitCode;
use std::sync::Arc;

use axum::Router;
use service::health::{self, Health};
use service::program::{self, ServerArgs};
use service::server::{self, Running};
use service::{CancellationToken, Error, ResultExt as _};

use caches::Caches;
use http::HttpApp;
use reload::{CatalogReloader, ReloadContext};

pub use compat::{COMPAT_NAMES, compat_main};
pub use settings::{CatalogConfig, CatalogList, Settings};
pub use site_check::{ServedCatalogError, served_packages};
pub use snapshot::ServedCatalog;
pub use source::{CatalogFiles, CatalogSource, Revision, Staging};

/// Binds and serves until `shutdown`; returns once listening. Catalogs load in the background.
///
/// Errors: an address in use, an unusable folder or certificate.
pub async fn start(settings: Settings, shutdown: CancellationToken) -> Result<Running, Error> {
    let health = Health::new();
    let reloaders = reloaders(&settings, &health)?;
    serve(settings, health, reloaders, shutdown).await
}

/// Runs the command line of this server; returns the exit code of the process.
pub fn main(arguments: &ServerArgs) -> ExitCode {
    program::main_with("catalog-server", arguments, run)
}

/// [`start`], then waits for the end of the server.
///
/// Errors: as [`start`], or when the listener breaks.
async fn run(settings: Settings, shutdown: CancellationToken) -> Result<(), Error> {
    start(settings, shutdown).await?.wait().await
}

/// [`run`], but listens only after every catalog is loaded; a failed one is an error. Source: `opm serve`.
///
/// Errors: as [`run`]; an invalid or unavailable catalog.
pub(crate) async fn run_strictly(
    settings: Settings,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let health = Health::new();
    let reloaders = reloaders(&settings, &health)?;
    let Some(reloaders) = shutdown.run_until_cancelled(load_all(reloaders)).await else {
        return Ok(());
    };
    let running = serve(settings, health, reloaders?, shutdown).await?;
    running.wait().await
}

/// Builds the cache of every catalog.
///
/// Errors: an unusable folder, an invalid or unavailable catalog.
pub async fn prepare(settings: Settings, shutdown: CancellationToken) -> Result<(), Error> {
    let read = load_all(reloaders(&settings, &Health::new())?);
    match shutdown.run_until_cancelled(read).await {
        Some(read) => read.map(drop),
        None => Err(Error::new("making caches", "stopped before the end")),
    }
}

/// A reloader per catalog.
fn reloaders(settings: &Settings, health: &Health) -> Result<Vec<CatalogReloader>, Error> {
    let client = settings.registry_client()?;
    let shared = Arc::new(ReloadContext {
        settings: settings.clone(),
        caches: Arc::new(Caches::open(settings)?),
        health: health.clone(),
    });
    let catalogs = settings.catalogs.0.iter();
    let reloader = |config: &CatalogConfig| {
        CatalogReloader::new(config.clone(), client.clone(), Arc::clone(&shared))
    };
    Ok(catalogs.map(reloader).collect())
}

async fn load_all(mut reloaders: Vec<CatalogReloader>) -> Result<Vec<CatalogReloader>, Error> {
    for reloader in &mut reloaders {
        let polled = reloader.poll().await;
        polled.doing(|| format!("reading the catalog {}", reloader.name()))?;
    }
    Ok(reloaders)
}

async fn serve(
    settings: Settings,
    health: Health,
    reloaders: Vec<CatalogReloader>,
    shutdown: CancellationToken,
) -> Result<Running, Error> {
    let listed = reloaders.iter().map(CatalogReloader::listed).collect();
    let http = Router::new()
        .merge(http::router(HttpApp::new(listed, health.clone())))
        .merge(health::routes(health, settings.http.metrics_on_public_port));
    let http = service::layers::apply(http, "catalog-server");
    let mut shared = Vec::new();
    let mut own = Vec::new();
    let options = grpc::GrpcOptions {
        max_request: settings.grpc_max_message_size,
        shutdown: shutdown.clone(),
    };
    for reloader in &reloaders {
        let router = grpc::router(reloader.catalog(), &options);
        match reloader.port() {
            Some(port) => own.push((port, router)),
            None => shared.push((reloader.name().to_owned(), router)),
        }
    }
    // Health is probed at the first address.
    let mut listens = Vec::new();
    let grpc = authority::by_authority(shared);
    match (settings.http(), grpc) {
        (Some(listen), grpc) => {
            listens.push((listen, http));
            let listen = settings.grpc(settings.catalog_port);
            listens.extend(grpc.map(|grpc| (listen, grpc)));
        }
        (None, grpc) => {
            let listen = settings.grpc(settings.catalog_port);
            let both = match grpc {
                Some(grpc) => authority::beside(http, grpc),
                None => http,
            };
            listens.push((listen, both));
        }
    }
    let own = own.into_iter();
    listens.extend(own.map(|(port, router)| (settings.grpc(port), router)));
    let listens = listens
        .into_iter()
        .map(|(listen, router)| (listen, router.into()));
    let mut running = server::start_each(listens.collect(), shutdown.clone()).await?;
    tracing::info!(addresses = ?running.addresses(), "catalog server listening");
    for reloader in reloaders {
        let (shutdown, interval) = (shutdown.clone(), settings.catalog_poll_interval);
        running.also(async move {
            shutdown.run_until_cancelled(reloader.run(interval)).await;
            Ok(())
        });
    }
    Ok(running)
}
