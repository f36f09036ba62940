//! The catalog server: operator catalogs over gRPC.
//!
//! What a catalog says is known to `catalog` alone. The one invariant: a reply is of one catalog, even when another
//! takes its place while it is sent.

pub mod grpc;
mod served;
mod settings;

use service::program::ServerSettings as _;
use service::server::{self, Running};
use service::{CancellationToken, Error};

pub use served::Catalog;
pub use settings::Settings;

/// Binds and serves until `shutdown`; returns once listening.
///
/// Errors: an address in use.
pub async fn start(settings: Settings, shutdown: CancellationToken) -> Result<Running, Error> {
    let catalog = Catalog::new();
    let router = grpc::router(&catalog);
    server::start(settings.listen(), router, shutdown).await
}

/// [`start`], then until the server has ended.
///
/// Errors: as [`start`], or when the listener breaks.
pub async fn run(settings: Settings, shutdown: CancellationToken) -> Result<(), Error> {
    start(settings, shutdown).await?.wait().await
}
