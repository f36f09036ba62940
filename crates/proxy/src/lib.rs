//! The front door of scaled services: each port goes to all replicas of one service.
//!
//! What comes in on such a port is not looked at: every path passes, `/health`, `/ready` and `/metrics` of the
//! service behind included. The proxy's own three are on a port of their own.

mod forwards;
mod ports;
mod settings;

use std::net::SocketAddr;

use net::resolve::Resolver;
use service::forward;
use service::health::{self, Health};
use service::server::{self, Running};
use service::{CancellationToken, Error};

pub use forwards::{Entry, Forwards};
pub use settings::Settings;

/// What `/ready` waits for.
const UPSTREAMS: &str = "upstreams";

/// A proxy that listens.
#[derive(Debug)]
pub struct Proxy {
    forwards: Vec<SocketAddr>,
    running: Running,
}

impl Proxy {
    /// Where its own `/health`, `/ready` and `/metrics` are.
    pub fn status(&self) -> SocketAddr {
        self.running.address()
    }

    /// The forwarded ports, in the order of the settings.
    pub fn forwards(&self) -> &[SocketAddr] {
        &self.forwards
    }

    /// Until every listener has ended.
    ///
    /// Errors: when a listener breaks.
    pub async fn wait(self) -> Result<(), Error> {
        self.running.wait().await
    }
}

/// Binds every port and forwards until `shutdown`. Services need not be there yet.
///
/// Errors: a port in use.
pub async fn start(settings: Settings, shutdown: CancellationToken) -> Result<Proxy, Error> {
    start_with(settings, Resolver::system(), shutdown).await
}

/// [`start`], with names looked up elsewhere than the system says.
///
/// Errors: as [`start`].
pub async fn start_with(
    settings: Settings,
    names: Resolver,
    shutdown: CancellationToken,
) -> Result<Proxy, Error> {
    let health = Health::new();
    health.starting(UPSTREAMS);
    let router = service::layers::apply(health::routes(health.clone(), true), "proxy-status");
    let mut running = server::start(vec![settings.status()], router, shutdown.clone()).await?;
    let (ports, upstreams) = ports::start(&settings, &names, &shutdown).await?;
    let forwards = ports.addresses()[..settings.forwards.len()].to_vec();
    running.also(ports.wait());
    tokio::spawn(
        shutdown.run_until_cancelled_owned(forward::report_readiness(health, UPSTREAMS, upstreams)),
    );
    Ok(Proxy { forwards, running })
}

/// [`start`], then until the server has ended.
///
/// Errors: as [`start`], or when a listener breaks.
pub async fn run(settings: Settings, shutdown: CancellationToken) -> Result<(), Error> {
    start(settings, shutdown).await?.wait().await
}
