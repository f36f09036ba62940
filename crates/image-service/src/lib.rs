//! The image service: boot images for discovered hosts, customised while they are streamed.
//!
//! A base image lies on disk once; what differs between infra-envs (configuration, kernel arguments) is laid over
//! it as its bytes pass. The invariant: no request copies an image, on disk or in memory.

mod catalog;
pub mod content;
mod download;
mod http;
pub mod image;
mod populate;
mod settings;
mod turn;
mod upstream;

use std::path::Path;
use std::sync::Arc;

use service::health::Health;
use service::program::ServerSettings as _;
use service::server::{self, Running};
use service::{CancellationToken, Error};

pub use settings::{OsImage, Settings};

use catalog::Catalog;
use http::{Admission, Packing};
use upstream::Api;

/// What handlers share.
#[derive(Debug, Clone)]
pub(crate) struct App {
    catalog: Arc<Catalog>,
    api: Api,
    admission: Admission,
    packing: Packing,
}

/// Binds and serves until `shutdown`; returns once listening. Images are answered 503 until they are there.
///
/// Errors: an address in use, certificate files that cannot be used.
pub async fn start(settings: Settings, shutdown: CancellationToken) -> Result<Running, Error> {
    let api_ca = read_ca(settings.assisted_service_api_trusted_ca_file.as_deref()).await?;
    let api_client = service::http_client(api_ca.as_deref(), settings.skip_cert_verification)?;
    let download_ca = read_ca(settings.os_image_download_trusted_ca_file.as_deref()).await?;
    let download_client =
        service::http_client(download_ca.as_deref(), settings.insecure_skip_verify)?;
    let catalog = Arc::new(Catalog::new(settings.images()));
    let health = Health::new();
    health.starting(populate::COMPONENT);
    let app = App {
        catalog: Arc::clone(&catalog),
        api: Api::new(api_client, &settings.api_url()),
        admission: Admission::new(settings.max_concurrent_requests),
        packing: Packing::new(),
    };
    let router = service::layers::apply(
        http::router(app, health.clone(), settings.http.metrics_on_public_port),
        "image-service",
    );
    let mut running = server::start(settings.listen(), router, shutdown.clone()).await?;
    running.also(async move {
        populate::run(catalog, &settings, download_client, health, shutdown).await;
        Ok(())
    });
    Ok(running)
}

/// [`start`], then until the server has ended.
///
/// Errors: as [`start`], or when a listener breaks.
pub async fn run(settings: Settings, shutdown: CancellationToken) -> Result<(), Error> {
    start(settings, shutdown).await?.wait().await
}

async fn read_ca(path: Option<&Path>) -> Result<Option<Vec<u8>>, Error> {
    let Some(path) = path else { return Ok(None) };
    let pem = tokio::fs::read(path).await;
    pem.map(Some)
        .map_err(|error| Error::new(format!("reading {}", path.display()), error))
}
