//! Listeners of the forwarded ports, of the static files and of the site.

use std::sync::Arc;

use axum::Router;
use net::resolve::Resolver;
use service::forward::{self, Forward, Upstream};
use service::server::{self, Listen, Running};
use service::{CancellationToken, Error};

use crate::files;
use crate::settings::Settings;
use crate::site::{self, Redirect, SiteRoutes};

/// Name of the server in logs and metrics.
const NAME: &str = "proxy";

/// Balancers of upstreams, one of each.
struct Upstreams<'a> {
    settings: &'a Settings,
    names: &'a Resolver,
    shutdown: &'a CancellationToken,
    started: Vec<Forward>,
}

impl Upstreams<'_> {
    fn forward(&mut self, upstream: &Upstream) -> Forward {
        let known = self.started.iter();
        let known = known.clone().find(|forward| forward.upstream() == upstream);
        if let Some(known) = known {
            return known.clone();
        }
        let max = self.settings.max_forwarded_requests;
        let started = Forward::start(upstream.clone(), self.names.clone(), max, self.shutdown);
        self.started.push(started.clone());
        started
    }
}

/// Starts the listeners: of the forwarded ports, of the static files if they have one, and of HTTP and HTTPS of the site
/// if it has a domain. Ports of the same upstream share one balancer. The limits of clients are shared by all ports.
pub(crate) async fn start(
    settings: &Settings,
    names: &Resolver,
    shutdown: &CancellationToken,
) -> Result<(Running, Vec<Forward>), Error> {
    let mut upstreams = Upstreams {
        settings,
        names,
        shutdown,
        started: Vec::new(),
    };
    let mut listens = Vec::new();
    for entry in settings.forwards.iter() {
        let forward = upstreams.forward(&entry.upstream);
        let router = Router::new().fallback(forward::forward).with_state(forward);
        let router = service::layers::apply(router, NAME);
        listens.push((settings.listen_on(entry.port), router));
    }
    let files = files::router(&settings.files());
    if let Some(listen) = settings.listen_files() {
        listens.push((listen, service::layers::count(files.clone(), "files")));
    }
    if settings.site.is_on() {
        listens.extend(site_listens(settings, files, &mut upstreams));
    }
    let running = server::start_each(listens, shutdown.clone()).await?;
    Ok((running, upstreams.started))
}

fn site_listens(
    settings: &Settings,
    files: Router,
    upstreams: &mut Upstreams<'_>,
) -> [(Listen, Router); 2] {
    let of_site = &settings.site;
    let hosts = site::HostTable::new(of_site);
    tracing::info!(%hosts, "serving the site");
    let redirect = Redirect {
        https_port: of_site.redirect_https_port,
        files: files.clone(),
        acme: of_site
            .acme_url
            .as_ref()
            .map(|acme| upstreams.forward(acme)),
    };
    let site = SiteRoutes {
        hosts,
        api: upstreams.forward(&of_site.api_url),
        web: upstreams.forward(&of_site.web_url),
        files,
        hsts: of_site.hsts.0.clone(),
        pages: site::ErrorPages {
            folder: of_site.error_pages.clone(),
        },
    };
    let [http, https] = settings.site_listens(upstreams.names);
    let redirect = Router::new().fallback(site::redirect).with_state(redirect);
    let site = Router::new()
        .fallback(site::serve)
        .with_state(Arc::new(site));
    [
        (http, service::layers::count(redirect, NAME)),
        (https, service::layers::count(site, NAME)),
    ]
}
