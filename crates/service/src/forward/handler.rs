//! The handler of forwarding servers, and their readiness.

use std::net::SocketAddr;

use axum::Extension;
use axum::extract::{ConnectInfo, Request, State};
use axum::response::Response;
use tokio::sync::watch::Receiver;
use tokio::task::JoinSet;

use super::forwarding::Forward;
use super::headers::ForwardedFor;
use crate::health::Health;
use crate::server::{AdmittedRequest, ClientAddress};

/// Handler that forwards every request to an upstream.
pub async fn forward(
    State(forward): State<Forward>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Extension(client): Extension<ClientAddress>,
    request: Request,
) -> Response {
    let admitted = AdmittedRequest {
        peer,
        client,
        request,
    };
    forward.forward(admitted).await
}

impl Forward {
    /// Forwards a request to the upstream; the response of a replica, or one with a [`super::GatewayError`].
    pub async fn forward(&self, admitted: AdmittedRequest) -> Response {
        let from = ForwardedFor {
            peer: admitted.peer.ip(),
            client: admitted.client,
        };
        self.forward_request(from, admitted.request).await
    }
}

/// Reports `component` as ready while each of `upstreams` has a ready replica.
pub async fn report_readiness(health: Health, component: &'static str, upstreams: Vec<Forward>) {
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
