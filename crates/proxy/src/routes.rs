//! The routes in force: one value, which is replaced as a whole while requests finish with theirs.

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};

use axum::Extension;
use axum::extract::{ConnectInfo, Request, State};
use axum::response::Response;
use service::forward;
use service::server::ClientAddress;

use crate::settings::Settings;
use crate::site::SiteRoutes;
use crate::upstreams::{ActiveUpstream, Upstreams};

/// Routes of all ports.
pub(crate) struct Routes {
    /// Of the forwarded ports, in the order of the settings.
    pub(crate) forwards: Vec<Arc<ActiveUpstream>>,
    /// Of the site; absent without a domain.
    pub(crate) site: Option<SiteRoutes>,
}

impl Routes {
    /// The routes of `settings`; upstreams that others have keep their balancers.
    pub(crate) fn new(settings: &Settings, upstreams: &mut Upstreams) -> Self {
        let forwards = settings.forwards.iter();
        Self {
            forwards: forwards.map(|it| upstreams.of(&it.upstream)).collect(),
            site: settings
                .site
                .is_on()
                .then(|| SiteRoutes::new(&settings.site, upstreams)),
        }
    }
}

/// The routes in force; shared by its clones.
#[derive(Clone)]
pub(crate) struct RouteTable(Arc<RwLock<Arc<Routes>>>);

impl RouteTable {
    pub(crate) fn new(routes: Routes) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(routes))))
    }

    /// The routes of a request. It keeps them until its response begins.
    pub(crate) fn current(&self) -> Arc<Routes> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn replace(&self, routes: Routes) {
        let old = {
            let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *current, Arc::new(routes))
        };
        // After the lock: the last user of an upstream ends its balancer.
        drop(old);
    }
}

/// A forwarded port.
#[derive(Clone)]
pub(crate) struct ForwardedPort {
    pub(crate) routes: RouteTable,
    /// Place in the settings.
    pub(crate) index: usize,
}

/// Forwards a request of a forwarded port.
pub(crate) async fn forward_port(
    State(port): State<ForwardedPort>,
    peer: ConnectInfo<SocketAddr>,
    client: Extension<ClientAddress>,
    request: Request,
) -> Response {
    let routes = port.routes.current();
    // A reload changes no ports.
    let upstream = State((**routes.forwards[port.index]).clone());
    forward::forward(upstream, peer, client, request).await
}
