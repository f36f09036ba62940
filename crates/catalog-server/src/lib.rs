//! The catalog server: operator catalogs over gRPC, and over HTTP for whoever does not speak that.
//!
//! What a catalog says is known to `catalog` alone. The one invariant: a reply is of one catalog, even when another
//! takes its place while it is sent.

mod authority;
mod caches;
mod compat;
pub mod grpc;
mod http;
mod metrics;
mod reload;
mod settings;
mod snapshot;
mod source;

use std::sync::Arc;

use axum::Router;
use service::health::{self, Health};
use service::server::{self, Running};
use service::{CancellationToken, Error};

use caches::Caches;
use http::HttpApp;
use reload::{CatalogReloader, ReloadContext};

pub use compat::main;
pub use settings::{CatalogConfig, CatalogList, Settings};
pub use snapshot::ServedCatalog;
pub use source::{CatalogFiles, CatalogSource, Revision, Staging};

/// Binds and serves until `shutdown`; returns once listening. Catalogs are read meanwhile.
///
/// Errors: an address in use, a folder or certificate that cannot be used.
pub async fn start(settings: Settings, shutdown: CancellationToken) -> Result<Running, Error> {
    let health = Health::new();
    let keepers = keepers(&settings, &health)?;
    serve(settings, health, keepers, shutdown).await
}

/// [`start`], then until the server has ended.
///
/// Errors: as [`start`], or when the listener breaks.
pub async fn run(settings: Settings, shutdown: CancellationToken) -> Result<(), Error> {
    start(settings, shutdown).await?.wait().await
}

/// [`run`], but nothing listens before every catalog is read, and one that cannot be is an error.
///
/// Errors: as [`run`]; a catalog that cannot be served.
pub(crate) async fn run_strictly(
    settings: Settings,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let health = Health::new();
    let keepers = keepers(&settings, &health)?;
    let Some(keepers) = shutdown.run_until_cancelled(read(keepers)).await else {
        return Ok(());
    };
    let running = serve(settings, health, keepers?, shutdown).await?;
    running.wait().await
}

/// Makes every catalog's cache and ends.
///
/// Errors: a folder that cannot be used, a catalog that cannot be served.
pub async fn prepare(settings: Settings, shutdown: CancellationToken) -> Result<(), Error> {
    let read = read(keepers(&settings, &Health::new())?);
    match shutdown.run_until_cancelled(read).await {
        Some(read) => read.map(drop),
        None => Err(Error::new("making caches", "stopped before the end")),
    }
}

/// One for each catalog.
fn keepers(settings: &Settings, health: &Health) -> Result<Vec<CatalogReloader>, Error> {
    let client = source::client(settings)?;
    let shared = Arc::new(ReloadContext {
        settings: settings.clone(),
        caches: Arc::new(Caches::open(settings)?),
        health: health.clone(),
    });
    let catalogs = settings.catalogs.0.iter();
    let keeper = |config: &CatalogConfig| {
        CatalogReloader::new(config.clone(), client.clone(), Arc::clone(&shared))
    };
    Ok(catalogs.map(keeper).collect())
}

async fn read(mut keepers: Vec<CatalogReloader>) -> Result<Vec<CatalogReloader>, Error> {
    for keeper in &mut keepers {
        let looked = keeper.look().await;
        looked.map_err(|e| Error::new(format!("reading the catalog {}", keeper.name()), e))?;
    }
    Ok(keepers)
}

async fn serve(
    settings: Settings,
    health: Health,
    keepers: Vec<CatalogReloader>,
    shutdown: CancellationToken,
) -> Result<Running, Error> {
    let shelves = keepers.iter().map(CatalogReloader::shelf).collect();
    let http = Router::new()
        .merge(http::router(HttpApp::new(shelves, health.clone())))
        .merge(health::routes(health, settings.http.metrics_on_public_port));
    let http = service::layers::apply(http, "catalog-server");
    let mut shared = Vec::new();
    let mut own = Vec::new();
    let options = grpc::GrpcOptions {
        max_request: settings.grpc_max_message_size,
        shutdown: shutdown.clone(),
    };
    for keeper in &keepers {
        let router = grpc::router(keeper.catalog(), &options);
        match keeper.port() {
            Some(port) => own.push((port, router)),
            None => shared.push((keeper.name().to_owned(), router)),
        }
    }
    // The first address is where health is asked for.
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
    let mut running = server::start_each(listens, shutdown.clone()).await?;
    tracing::info!(addresses = ?running.addresses(), "the catalog server listens");
    for keeper in keepers {
        let (shutdown, interval) = (shutdown.clone(), settings.catalog_poll_interval);
        running.also(async move {
            shutdown.run_until_cancelled(keeper.keep(interval)).await;
            Ok(())
        });
    }
    Ok(running)
}
