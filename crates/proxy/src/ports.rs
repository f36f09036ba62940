//! Ports that go to one service each.

use axum::Router;
use service::forward::{self, Forward};
use service::resolve::Resolver;
use service::server::{self, Running};
use service::{CancellationToken, Error};

use crate::settings::Settings;

/// Listens on every forwarded port; the upstreams are each there once, however many ports they have.
pub(crate) async fn start(
    settings: &Settings,
    names: &Resolver,
    shutdown: &CancellationToken,
) -> Result<(Vec<Running>, Vec<Forward>), Error> {
    let mut ports = Vec::new();
    let mut upstreams: Vec<Forward> = Vec::new();
    for entry in settings.forwards.iter() {
        let known = upstreams
            .iter()
            .find(|forward| *forward.upstream() == entry.upstream);
        let forward = known.cloned().unwrap_or_else(|| {
            let started = Forward::start(entry.upstream.clone(), names.clone(), shutdown);
            upstreams.push(started.clone());
            started
        });
        let router = Router::new().fallback(forward::pass).with_state(forward);
        let router = service::layers::apply(router, "proxy");
        let listen = vec![settings.listen_on(entry.port)];
        ports.push(server::start(listen, router, shutdown.clone()).await?);
    }
    Ok((ports, upstreams))
}
