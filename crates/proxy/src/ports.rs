//! Listeners of the forwarded ports, of the static files and of the site.

use std::sync::Arc;

use axum::Router;
use service::server::{self, Listen, Running};
use service::{CancellationToken, Error};

use crate::files::StaticFiles;
use crate::reload::LiveProxy;
use crate::routes::{ForwardedPort, forward_port};
use crate::site::{self, SitePorts};

/// Name of the server in logs and metrics.
const NAME: &str = "proxy";

/// Starts the listeners: of the forwarded ports, of the static files if they have one, and of HTTP and HTTPS of the site
/// if it has a domain. The limits of clients are shared by all ports.
pub(crate) async fn start(
    live: &LiveProxy,
    shutdown: &CancellationToken,
) -> Result<Running, Error> {
    let (settings, routes) = (&live.settings, &live.routes);
    let mut listens = Vec::new();
    for (index, entry) in settings.forwards.iter().enumerate() {
        let routes = routes.clone();
        let router = Router::new()
            .fallback(forward_port)
            .with_state(ForwardedPort { routes, index });
        let router = service::layers::apply(router, NAME);
        listens.push((settings.listen_forwarded(entry.port), router.into()));
    }
    let files = Arc::new(StaticFiles::new(&settings.files()));
    if let Some(listen) = settings.listen_files() {
        let files = files.clone();
        let handler = service::layers::count("files", move |admitted| {
            let files = files.clone();
            async move { files.answer(admitted).await }
        });
        listens.push((listen, handler));
    }
    if settings.site.is_on() {
        let [http, https] = settings.site_listens();
        let https = Listen {
            passthrough: Some(live.registry.clone()),
            certificates: live.certificates.clone(),
            ..https
        };
        let routes = routes.clone();
        let ports = SitePorts { routes, files };
        let redirected = ports.clone();
        let redirect = move |admitted| site::redirect(redirected.clone(), admitted);
        let serve = move |admitted| site::serve(ports.clone(), admitted);
        listens.push((http, service::layers::count(NAME, redirect)));
        listens.push((https, service::layers::count(NAME, serve)));
    }
    for (listen, _) in &mut listens {
        listen.access_log = Some(live.access_log.clone());
    }
    server::start_each(listens, shutdown.clone()).await
}
