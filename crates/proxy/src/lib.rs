//! The reverse proxy: names of the site on HTTP and HTTPS, and a port of each service, balanced over all its replicas.
//!
//! There is no routing by path: `/health`, `/ready` and `/metrics` of the upstream pass, too. The proxy's own three are
//! on a port of their own.

mod files;
mod forwards;
mod ports;
mod reload;
mod routes;
mod settings;
mod site;
mod status_page;
mod upstreams;

use std::net::SocketAddr;
use std::process::ExitCode;

use net::resolve::Resolver;
use service::health::{self, Health};
use service::program::{self, ServerArgs, SettingsSource};
use service::server::{self, Running};
use service::tls::{CertificateControl, Passthrough};
use service::{AccessLog, CancellationToken, Error};

use reload::{LiveProxy, Readiness, UPSTREAMS};
use routes::{RouteTable, Routes};
use status_page::ReloadLog;
use upstreams::Upstreams;

pub use forwards::{ForwardEntry, Forwards};
pub use reload::RELOADED;
pub use settings::Settings;
pub use site::{Header, HostPort, SiteSettings};

/// A proxy that listens.
#[derive(Debug)]
pub struct RunningProxy {
    forwards: Vec<SocketAddr>,
    site: Option<SiteAddresses>,
    files: Option<SocketAddr>,
    status_page: Option<SocketAddr>,
    running: Running,
}

/// Addresses of the site.
#[derive(Debug, Clone, Copy)]
pub struct SiteAddresses {
    /// Of HTTP.
    pub http: SocketAddr,
    /// Of HTTPS.
    pub https: SocketAddr,
}

impl RunningProxy {
    /// Address of its own `/health`, `/ready` and `/metrics`.
    pub fn status(&self) -> SocketAddr {
        self.running.address()
    }

    /// The forwarded ports, in the order of the settings.
    pub fn forwards(&self) -> &[SocketAddr] {
        &self.forwards
    }

    /// The site's ports, if it has a domain.
    pub fn site(&self) -> Option<SiteAddresses> {
        self.site
    }

    /// The listener of the static files alone, if the settings name its port.
    pub fn files(&self) -> Option<SocketAddr> {
        self.files
    }

    /// The status page, if the settings name its port.
    pub fn status_page(&self) -> Option<SocketAddr> {
        self.status_page
    }

    /// Waits until every listener has ended.
    ///
    /// Errors: when a listener breaks.
    pub async fn wait(self) -> Result<(), Error> {
        self.running.wait().await
    }
}

/// Binds every port and forwards until `shutdown`. Upstreams may start later.
///
/// Errors: a port in use.
pub async fn start(settings: Settings, shutdown: CancellationToken) -> Result<RunningProxy, Error> {
    start_with(settings, Resolver::system(), shutdown).await
}

/// [`start`] with another resolver than the system's.
///
/// Errors: as [`start`].
pub async fn start_with(
    settings: Settings,
    names: Resolver,
    shutdown: CancellationToken,
) -> Result<RunningProxy, Error> {
    let (running, _) = start_live(settings, names, shutdown).await?;
    Ok(running)
}

async fn start_live(
    settings: Settings,
    names: Resolver,
    shutdown: CancellationToken,
) -> Result<(RunningProxy, LiveProxy), Error> {
    let health = Health::new();
    health.starting(UPSTREAMS);
    let router = service::layers::apply(health::routes(health.clone(), true), "proxy-status");
    let mut running = server::start(vec![settings.status()], router, shutdown.clone()).await?;
    let mut upstreams = Upstreams::new(&names, &settings, &shutdown);
    let routes = Routes::new(&settings, &mut upstreams);
    if let Some(site) = &routes.site {
        tracing::info!(hosts = %site.hosts(), "serving the site");
    }
    let HostPort { host, port } = &settings.site.registry_address;
    let registry = settings.site.registry_name();
    let access_log = AccessLog::new(settings.access_log);
    let mut live = LiveProxy {
        routes: RouteTable::new(routes),
        registry: Passthrough::new(&registry, (host, *port), names, access_log.clone()),
        access_log,
        certificates: CertificateControl::default(),
        readiness: Readiness::new(health, &shutdown),
        settings,
        upstreams,
        reloads: ReloadLog::default(),
    };
    let ports = ports::start(&live, &shutdown).await?;
    live.readiness.report(&live.upstreams);
    let settings = &live.settings;
    let (forwards, rest) = ports.addresses().split_at(settings.forwards.len());
    let (files, rest) = rest.split_at(usize::from(settings.files_port.is_some()));
    let site = match rest {
        [http, https, ..] if settings.site.is_on() => Some(SiteAddresses {
            http: *http,
            https: *https,
        }),
        _ => None,
    };
    let (forwards, files) = (forwards.to_vec(), files.first().copied());
    let page = match settings.listen_status_page() {
        Some(listen) => {
            let sources = live.status_sources(&forwards, ports.connections());
            let router = status_page::router(sources);
            Some(server::start(vec![listen], router, shutdown).await?)
        }
        None => None,
    };
    let status_page = page.as_ref().map(Running::address);
    running.also(ports.wait());
    if let Some(page) = page {
        running.also(page.wait());
    }
    let running = RunningProxy {
        forwards,
        site,
        files,
        status_page,
        running,
    };
    Ok((running, live))
}

/// Runs the command line of this server; returns the exit code of the process.
pub fn main(arguments: &ServerArgs) -> ExitCode {
    program::main_reloading_with("proxy", arguments, run_reloading)
}

/// [`start`], then waits until the server has ended, taking over settings that change in `source`.
///
/// Errors: as [`start`], or when a listener breaks.
async fn run_reloading(
    settings: Settings,
    source: SettingsSource<Settings>,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let watch = source.watch()?;
    let (running, live) = start_live(settings, Resolver::system(), shutdown.clone()).await?;
    tokio::spawn(shutdown.run_until_cancelled_owned(live.follow(watch)));
    running.wait().await
}
