//! The image service: discovery images, customised while they are streamed.
//!
//! A base image is on disk once; ignition and kernel arguments of an infra-env overlay its bytes in the stream. The
//! invariant: no request copies an image, on disk or in memory.

mod catalog;
pub mod content;
mod download;
mod file_lock;
mod http;
pub mod image;
mod installer_api;
mod offer;
mod os_image;
mod populate;
mod settings;
mod stale_files;
mod stream_limit;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use service::health::Health;
use service::program::{self, ServerArgs, ServerSettings as _};
use service::server::{self, Running};
use service::{CancellationToken, Error, ResultExt as _};

pub use os_image::OsImage;
pub use settings::Settings;

use catalog::ImageCatalog;
use download::{DownloadClient, DownloadLimits};
use http::ImageApp;
use http::composed::ComposedImages;
use image::agent::AgentArchives;
use installer_api::InstallerApi;
use offer::{ImageOffer, OfferLooks};
use stream_limit::StreamLimit;

/// Binds and serves until `shutdown`; returns once listening. Images get 503 until they are populated.
///
/// Errors: an address in use, certificate files that cannot be used.
pub async fn start(settings: Settings, shutdown: CancellationToken) -> Result<Running, Error> {
    http::declare();
    let api_ca = read_ca(settings.assisted_service_api_trusted_ca_file.as_deref()).await?;
    let api_client = service::http_client(api_ca.as_deref(), settings.skip_cert_verification)?;
    let download_ca = read_ca(settings.os_image_download_trusted_ca_file.as_deref()).await?;
    let download_client =
        service::http_client_with_secrets(download_ca.as_deref(), settings.insecure_skip_verify)?;
    let headers = settings.download_headers();
    let registries = registries(&settings, download_ca)?;
    let download_client = DownloadClient {
        client: download_client,
        headers: headers.doing("OS_IMAGES_REQUEST_HEADERS")?,
        query: settings.os_images_request_query_params.0.clone(),
        registries,
        limits: DownloadLimits {
            image_bytes: settings.max_os_image_bytes,
            reserve_bytes: settings.os_image_reserve_bytes,
        },
    };
    let api = InstallerApi::new(api_client, &settings.api_url());
    let looks = Arc::new(OfferLooks::default());
    let offer = ImageOffer::new(settings.images(), api.clone(), Arc::clone(&looks));
    let catalog = Arc::new(ImageCatalog::new(&offer.images()));
    let health = Health::new();
    health.starting(populate::COMPONENT);
    let app = ImageApp {
        catalog: Arc::clone(&catalog),
        looks,
        data_dir: settings.data_dir.as_path().into(),
        api,
        streams: StreamLimit::new(settings.max_concurrent_requests),
        composed: Arc::new(ComposedImages::new()),
        agents: Arc::new(AgentArchives::new(&settings.agent_dir)),
        base_url: settings.base_url().map(Arc::from),
    };
    let router = service::layers::apply(
        http::router(app, health.clone(), &settings),
        "image-service",
    );
    let mut running = server::start(settings.listen(), router, shutdown.clone()).await?;
    running.also(async move {
        populate::run(catalog, &settings, offer, download_client, health, shutdown).await;
        Ok(())
    });
    Ok(running)
}

/// Runs the command line of this server; returns the exit code of the process.
pub fn main(arguments: &ServerArgs) -> ExitCode {
    program::main_with("image-service", arguments, run)
}

/// [`start`], then waits until the server has ended.
///
/// Errors: as [`start`], or when a listener breaks.
async fn run(settings: Settings, shutdown: CancellationToken) -> Result<(), Error> {
    start(settings, shutdown).await?.wait().await
}

async fn read_ca(path: Option<&Path>) -> Result<Option<Vec<u8>>, Error> {
    let Some(path) = path else { return Ok(None) };
    let pem = tokio::fs::read(path).await;
    pem.map(Some)
        .doing(|| format!("reading {}", path.display()))
}

/// The client of registries with OS images.
fn registries(settings: &Settings, ca_pem: Option<Vec<u8>>) -> Result<oci_client::Client, Error> {
    let logins = oci_client::registry_logins(settings.registry_auth_file.as_deref());
    let options = oci_client::ClientOptions {
        credentials: logins.doing("REGISTRY_AUTH_FILE")?,
        ca_pem,
        insecure: settings.insecure_skip_verify,
        plain_http_remedy: Some("set INSECURE_SKIP_VERIFY"),
        ..oci_client::ClientOptions::default()
    };
    oci_client::Client::new(options).doing("building the client of registries")
}
