//! Listeners of the forwarded ports.

use axum::Router;
use net::resolve::Resolver;
use service::forward::{self, Forward};
use service::server::{self, Running};
use service::{CancellationToken, Error};

use crate::settings::Settings;

/// Starts the listeners; ports of the same upstream share one balancer. The limits of clients are shared by all ports.
pub(crate) async fn start(
    settings: &Settings,
    names: &Resolver,
    shutdown: &CancellationToken,
) -> Result<(Running, Vec<Forward>), Error> {
    let mut listens = Vec::new();
    let mut upstreams: Vec<Forward> = Vec::new();
    for entry in settings.forwards.iter() {
        let known = upstreams
            .iter()
            .find(|forward| *forward.upstream() == entry.upstream);
        let forward = known.cloned().unwrap_or_else(|| {
            let (upstream, max) = (entry.upstream.clone(), settings.max_forwarded_requests);
            let started = Forward::start(upstream, names.clone(), max, shutdown);
            upstreams.push(started.clone());
            started
        });
        let router = Router::new().fallback(forward::forward).with_state(forward);
        let router = service::layers::apply(router, "proxy");
        listens.push((settings.listen_on(entry.port), router));
    }
    let running = server::start_each(listens, shutdown.clone()).await?;
    Ok((running, upstreams))
}
