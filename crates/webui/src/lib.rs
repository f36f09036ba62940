//! The web UI server: the UI's files on `/`, the installer API on `/api`.
//!
//! It knows nothing of clusters and keeps no state. The invariant: what goes through `/api` is not changed
//! beyond the headers of one connection.

mod builtin;
mod files;
mod forwarded;
mod proxy;
mod settings;
mod upstream;

use std::time::Duration;

use axum::Router;
use axum::routing::any;
use service::health::{self, Health};
use service::program::ServerSettings as _;
use service::server::{self, Running};
use service::{CancellationToken, Error};

pub use settings::Settings;
pub use upstream::{NotAnOrigin, Upstream};

use proxy::Proxy;
use upstream::ApiClient;

/// What `/ready` waits for.
const API: &str = "api";
/// How often a missing API is looked for: soon, since people wait for it.
const PROBE_INTERVAL_AWAY: Duration = Duration::from_millis(500);
/// How often a reached API is asked whether it is still there.
const PROBE_INTERVAL: Duration = Duration::from_secs(10);

/// Binds both ports and serves there until `shutdown`.
///
/// Errors: a port in use, or settings that name no API.
pub async fn start(settings: Settings, shutdown: CancellationToken) -> Result<Running, Error> {
    let upstream = settings
        .upstream()
        .map_err(|problem| Error::new(format!("reading {}", problem.variable), problem.reason))?;
    let health = Health::new();
    health.starting(API);
    let client = upstream::client();
    let proxy = Proxy {
        client: client.clone(),
        upstream: upstream.clone(),
        shutdown: shutdown.clone(),
    };
    let router = router(&settings, proxy).merge(health::routes(health.clone()));
    let router = service::layers::apply(router, "webui");
    let running = server::start(settings.listen(), router, shutdown.clone()).await?;
    tokio::spawn(shutdown.run_until_cancelled_owned(watch(client, upstream, health)));
    Ok(running)
}

/// [`start`], then until the server has ended.
///
/// Errors: as [`start`], or when a listener breaks.
pub async fn run(settings: Settings, shutdown: CancellationToken) -> Result<(), Error> {
    start(settings, shutdown).await?.wait().await
}

fn router(settings: &Settings, proxy: Proxy) -> Router {
    // Not `/api*`: `/apiary` is a page of the UI.
    Router::new()
        .route("/api", any(proxy::handle))
        .route("/api/", any(proxy::handle))
        .route("/api/{*path}", any(proxy::handle))
        .with_state(proxy)
        .fallback_service(files::service(settings))
}

/// Keeps `/ready` true to whether the API can be reached.
async fn watch(client: ApiClient, upstream: Upstream, health: Health) {
    loop {
        let interval = match upstream::is_ready(&client, &upstream).await {
            Ok(()) => {
                health.ready(API);
                PROBE_INTERVAL
            }
            Err(reason) => {
                health.unready(API, reason);
                PROBE_INTERVAL_AWAY
            }
        };
        tokio::time::sleep(interval).await;
    }
}
