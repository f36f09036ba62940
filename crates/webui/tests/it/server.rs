//! Starts the API stand-in and the server.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use axum::Router;
use net::resolve::Resolver;
use service::CancellationToken;
use service::server::{HttpSettings, Listen, Running};
use service::settings::CommaList;

/// A running server; ends with the test.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    shutdown: CancellationToken,
    // Dropping it stops listening.
    _running: Running,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

impl Server {
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// Allows every host: names in tests resolve to no loopback address.
fn any_host() -> HttpSettings {
    HttpSettings {
        allowed_hosts: CommaList(vec!["*".to_owned()]),
        ..HttpSettings::default()
    }
}

/// An API that answers with `router`, and its address.
pub(crate) async fn api(router: Router) -> Server {
    api_on(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0), router).await
}

/// An API at that address.
pub(crate) async fn api_on(address: SocketAddr, router: Router) -> Server {
    api_with(address, router, any_host()).await
}

/// An API at that address, with those limits and proxies.
pub(crate) async fn api_with(address: SocketAddr, router: Router, http: HttpSettings) -> Server {
    let shutdown = CancellationToken::new();
    let listen = Listen::new(address, None).with(&http);
    let running = service::server::start(vec![listen], router, shutdown.clone())
        .await
        .unwrap();
    Server {
        address: running.address(),
        shutdown,
        _running: running,
    }
}

/// The web UI server in front of `api`, with the status page alone.
pub(crate) async fn webui(api: SocketAddr) -> Server {
    webui_of(api, PathBuf::from("/nonexistent")).await
}

/// The web UI server in front of `api`, with the page in that folder.
pub(crate) async fn webui_of(api: SocketAddr, static_root: PathBuf) -> Server {
    started(&api.to_string(), static_root, Resolver::system()).await
}

/// The web UI server in front of the replicas of `api`, a name and a port, resolved by `names`.
pub(crate) async fn webui_by_name(api: &str, names: Resolver) -> Server {
    started(api, PathBuf::from("/nonexistent"), names).await
}

/// The web UI server in front of `api`, with other settings.
pub(crate) async fn webui_with(
    api: SocketAddr,
    change: impl FnOnce(&mut webui::Settings),
) -> Server {
    let mut settings = settings(&api.to_string(), PathBuf::from("/nonexistent"));
    change(&mut settings);
    started_with(settings, Resolver::system()).await
}

async fn started(api: &str, static_root: PathBuf, names: Resolver) -> Server {
    started_with(settings(api, static_root), names).await
}

fn settings(api: &str, static_root: PathBuf) -> webui::Settings {
    webui::Settings {
        listen_address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        webui_port: 0,
        webui_static_port: 0,
        static_root,
        api_url: Some(format!("http://{api}")),
        http: any_host(),
        ..webui::Settings::default()
    }
}

async fn started_with(settings: webui::Settings, names: Resolver) -> Server {
    let shutdown = CancellationToken::new();
    let running = webui::start_with(settings, names, shutdown.clone())
        .await
        .unwrap();
    assert_eq!(running.addresses().len(), 2);
    Server {
        address: running.address(),
        shutdown,
        _running: running,
    }
}
