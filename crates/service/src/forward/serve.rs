//! What servers that forward have in common: the handler, and what their `/ready` says.

use std::net::SocketAddr;

use axum::Extension;
use axum::extract::{ConnectInfo, Request, State};
use axum::response::Response;
use tokio::sync::watch::Receiver;
use tokio::task::JoinSet;

use super::headers::Origin;
use super::inner::Forward;
use crate::health::Health;
use crate::server::ClientAddress;

/// Passes every request on; a handler for the routes of an upstream.
pub async fn pass(
    State(forward): State<Forward>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Extension(client): Extension<ClientAddress>,
    request: Request,
) -> Response {
    let peer = peer.ip();
    forward.answer(Origin { peer, client }, request).await
}

/// Keeps `component` of `health` true to which of `upstreams` have a ready replica.
pub async fn keep(health: Health, component: &'static str, upstreams: Vec<Forward>) {
    let mut unready: Vec<(&str, Receiver<Option<String>>)> = upstreams
        .iter()
        .map(|forward| (forward.upstream().name(), forward.unready()))
        .collect();
    loop {
        let reasons: Vec<String> = unready
            .iter_mut()
            .filter_map(|(name, reason)| {
                let reason = reason.borrow_and_update();
                reason.as_ref().map(|reason| format!("{name} {reason}"))
            })
            .collect();
        if reasons.is_empty() {
            health.ready(component);
        } else {
            health.unready(component, reasons.join(", "));
        }
        let mut changes: JoinSet<_> = unready
            .iter()
            .map(|(_, reason)| {
                let mut reason = reason.clone();
                async move { reason.changed().await }
            })
            .collect();
        if !matches!(changes.join_next().await, Some(Ok(Ok(())))) {
            return;
        }
    }
}
