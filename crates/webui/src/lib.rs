//! The web UI server: the UI's files on `/`, the installer API on `/api`, the catalog server's query API on
//! `/services/catalogs`, the registry's on `/services/registry`.
//!
//! It knows nothing of clusters and keeps no state. The invariant: requests to `/api` change in their hop-by-hop
//! headers and, with a log-in, their credentials alone; the UI relies on `//` inside paths.

mod connector;
mod files;
mod login;
mod page_files;
mod registry;
mod services;
mod settings;
mod status_page;

use std::process::ExitCode;
use std::sync::Arc;

use axum::Router;
use axum::middleware;
use axum::routing::any;
use net::resolve::Resolver;
use service::forward::{self, Forward};
use service::health::{self, Health};
use service::program::{self, ServerArgs, ServerSettings as _};
use service::server::{self, Running};
use service::settings::Problem;
use service::{CancellationToken, Error};

use login::LogIn;
use registry::RegistryApi;
use services::SiteUpstreams;

pub use settings::{AuthType, Settings};

/// Component of `/ready`.
const API: &str = "api";

/// Binds both ports and serves there until `shutdown`.
///
/// Errors: a port in use, or settings that name no API.
pub async fn start(settings: Settings, shutdown: CancellationToken) -> Result<Running, Error> {
    start_with(settings, Resolver::system(), shutdown).await
}

/// [`start`] with another resolver than the system's.
///
/// Errors: as [`start`].
pub async fn start_with(
    settings: Settings,
    names: Resolver,
    shutdown: CancellationToken,
) -> Result<Running, Error> {
    let wrong =
        |problem: Problem| Error::new(format!("reading {}", problem.variable), problem.reason);
    let upstream = settings.upstream().map_err(wrong)?;
    let upstream = upstream.proven_by(&settings.http);
    let catalog_server = settings.catalog_server().map_err(wrong)?;
    let registry = settings.registry().map_err(wrong)?;
    let health = Health::new();
    health.starting(API);
    let forward = &settings.forward;
    let api = Forward::start(upstream, names.clone(), forward, &shutdown);
    let catalogs = catalog_server
        .map(|upstream| upstream.proven_by(&settings.http))
        .map(|upstream| Forward::start(upstream, names.clone(), forward, &shutdown));
    let registry = match registry {
        Some(url) => {
            let ca = settings.registry_ca_file.as_deref();
            Some(RegistryApi::open(url, ca, names.clone()).await?)
        }
        None => None,
    };
    let log_in = LogIn::open(&settings, &names, api.clone())?;
    let own = health::routes(health.clone(), settings.http.metrics_on_public_port);
    let router = router(
        &settings,
        api.clone(),
        SiteUpstreams { catalogs, registry },
        log_in,
    )
    .merge(own);
    let router = service::layers::apply(router, "webui");
    let running = server::start(settings.listen(), router, shutdown.clone()).await?;
    tokio::spawn(
        shutdown.run_until_cancelled_owned(forward::report_readiness(health, API, vec![api])),
    );
    Ok(running)
}

/// Runs the command line of this server; returns the exit code of the process.
pub fn main(arguments: &ServerArgs) -> ExitCode {
    program::main_with("webui", arguments, run)
}

/// [`start`], then waits until the server has ended.
///
/// Errors: as [`start`], or when a listener breaks.
async fn run(settings: Settings, shutdown: CancellationToken) -> Result<(), Error> {
    start(settings, shutdown).await?.wait().await
}

fn router(
    settings: &Settings,
    api: Forward,
    site: SiteUpstreams,
    log_in: Option<Arc<LogIn>>,
) -> Router {
    // Not `/api*`: `/apiary` is a page of the UI. nginx under the specification's rules forwards it, too.
    let router = Router::new()
        .route("/api", any(forward::forward))
        .route("/api/", any(forward::forward))
        .route("/api/{*path}", any(forward::forward))
        .with_state(api)
        .nest("/services", services::routes(settings, site))
        .fallback_service(files::service(settings));
    match log_in {
        Some(log_in) => router
            .merge(login::routes(Arc::clone(&log_in)))
            .layer(middleware::from_fn_with_state(log_in, login::gate)),
        None => router,
    }
}
