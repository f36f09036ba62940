//! The state of a proxy at one moment.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use service::clock::{self, Timestamp};
use service::forward::UpstreamStatus;
use service::server::ConnectionCount;
use service::tls::{CertificateControl, CertificateStates, Passthrough, PassthroughStatus};

use crate::routes::RouteTable;
use crate::upstreams::ActiveUpstream;

/// Outcome of a reload.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ReloadOutcome {
    pub(crate) at: Timestamp,
    /// Variables that could not be used, with the reasons: nothing was taken over.
    pub(crate) problems: Vec<(String, String)>,
    /// Changed variables that take effect after a restart.
    pub(crate) needs_restart: Vec<String>,
}

/// The outcome of the last reload; shared by its clones.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReloadLog(Arc<Mutex<Option<ReloadOutcome>>>);

impl ReloadLog {
    /// Absent before the first reload.
    pub(crate) fn last(&self) -> Option<ReloadOutcome> {
        self.lock().clone()
    }

    pub(crate) fn record(&self, outcome: ReloadOutcome) {
        *self.lock() = Some(outcome);
    }

    fn lock(&self) -> MutexGuard<'_, Option<ReloadOutcome>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Parts of a running proxy that the page shows.
#[derive(Clone)]
pub(crate) struct StatusSources {
    pub(crate) started: Timestamp,
    /// Ports of the forwarded upstreams, in the order of the routes.
    pub(crate) ports: Vec<u16>,
    pub(crate) routes: RouteTable,
    pub(crate) registry: Passthrough,
    pub(crate) certificates: CertificateControl,
    pub(crate) connections: ConnectionCount,
    pub(crate) reloads: ReloadLog,
}

/// State of a proxy.
#[derive(Debug, Serialize)]
pub(crate) struct StatusReport {
    pub(crate) version: &'static str,
    pub(crate) started: Timestamp,
    pub(crate) now: Timestamp,
    pub(crate) connections: OpenConnections,
    pub(crate) routes: Vec<RouteStatus>,
    /// Absent without a domain.
    pub(crate) registry: Option<PassthroughStatus>,
    /// Absent without a domain.
    pub(crate) certificates: Option<CertificateStates>,
    /// Absent before the first.
    pub(crate) last_reload: Option<ReloadOutcome>,
}

/// Connections of all ports but this page's and the one of `/ready`.
#[derive(Debug, Serialize)]
pub(crate) struct OpenConnections {
    pub(crate) open: usize,
    pub(crate) max: usize,
}

/// A route and the replicas of its upstream.
#[derive(Debug, Serialize)]
pub(crate) struct RouteStatus {
    /// Hosts or ports of its requests.
    pub(crate) requests: Vec<String>,
    #[serde(flatten)]
    pub(crate) upstream: UpstreamStatus,
}

impl StatusSources {
    /// The state now.
    pub(crate) async fn report(&self) -> StatusReport {
        let routes = self.routes.current();
        let has_site = routes.site.is_some();
        let certificates = if has_site {
            Some(self.certificates.states().await)
        } else {
            None
        };
        StatusReport {
            version: env!("CARGO_PKG_VERSION"),
            started: self.started,
            now: clock::now(),
            connections: OpenConnections {
                open: self.connections.open(),
                max: self.connections.max(),
            },
            routes: self.route_states(),
            registry: has_site.then(|| self.registry.status()),
            certificates,
            last_reload: self.reloads.last(),
        }
    }

    /// Each upstream once, with all its requests.
    fn route_states(&self) -> Vec<RouteStatus> {
        let routes = self.routes.current();
        let forwarded = routes.forwards.iter().zip(&self.ports);
        let forwarded = forwarded.map(|(upstream, port)| (format!("port {port}"), upstream));
        let of_site = routes.site.iter().flat_map(|site| site.upstreams());
        let mut states: Vec<(&Arc<ActiveUpstream>, Vec<String>)> = Vec::new();
        for (requests, upstream) in forwarded.chain(of_site) {
            let known = states
                .iter_mut()
                .find(|(known, _)| Arc::ptr_eq(known, upstream));
            match known {
                Some((_, all)) => all.push(requests),
                None => states.push((upstream, vec![requests])),
            }
        }
        let state = |(upstream, requests): (&Arc<ActiveUpstream>, Vec<String>)| RouteStatus {
            requests,
            upstream: upstream.status(),
        };
        states.into_iter().map(state).collect()
    }
}
