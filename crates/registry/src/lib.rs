//! The container registry: distribution's protocol over a store in distribution's layout.
//!
//! Clusters are unknown here. The one invariant: what was acknowledged is durable, and nothing is visible before
//! it is whole.

mod app;
mod auth;
mod gc;
pub mod htpasswd;
mod http;
mod purge;
mod settings;

use oci::store::DiskStore;
use service::health::{self, Health};
use service::program::ServerSettings as _;
use service::server::{self, Running};
use service::{CancellationToken, Error};

use app::App;
use auth::Gate;

pub use settings::{HttpAddr, Settings};

/// Opens the store, binds the address and serves there until `shutdown`.
///
/// Errors: a storage folder, password file or certificate that cannot be used; an address in use.
pub async fn start(settings: Settings, shutdown: CancellationToken) -> Result<Running, Error> {
    let root = &settings.registry_storage_filesystem_rootdirectory;
    let store = DiskStore::open(root)
        .await
        .map_err(|e| Error::new(format!("opening the storage in {}", root.display()), e))?;
    let gate = Gate::open(&settings).await?;
    let app = App::new(store.clone(), &settings);
    let router = http::router(app.clone(), gate).merge(health::routes(Health::new()));
    let router = service::layers::apply(router, "registry");
    let mut running = server::start(settings.listen(), router, shutdown.clone()).await?;
    tracing::info!(address = %running.address(), storage = %root.display(), "the registry listens");
    if settings.registry_storage_maintenance_gc_enabled {
        let (settings, shutdown) = (settings.clone(), shutdown.clone());
        running.also(async move {
            shutdown.run_until_cancelled(gc::run(app, &settings)).await;
            Ok(())
        });
    }
    if settings.registry_storage_maintenance_uploadpurging_enabled {
        running.also(async move {
            shutdown
                .run_until_cancelled(purge::run(store, &settings))
                .await;
            Ok(())
        });
    }
    Ok(running)
}

/// [`start`], then until the server has ended.
///
/// Errors: as [`start`], or when the listener breaks.
pub async fn run(settings: Settings, shutdown: CancellationToken) -> Result<(), Error> {
    start(settings, shutdown).await?.wait().await
}
