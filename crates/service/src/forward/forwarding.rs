//! Forwarding to one upstream: its start and its end.

use std::sync::Arc;

use net::resolve::Resolver;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::balance::Balance;
use super::discover::Discover;
use super::settings::ForwardSettings;
use super::upstream::Upstream;

/// Forwards requests to the replicas of one upstream.
#[derive(Clone)]
pub struct Forward {
    pub(super) balance: Arc<Balance>,
}

impl Forward {
    /// Starts discovery and health checks of `upstream`, until `shutdown`; after it, requests go to the last known
    /// replicas. A request or tunnel in flight has a connection or two.
    ///
    /// Panics: outside a runtime.
    pub fn start(
        upstream: Upstream,
        names: Resolver,
        settings: &ForwardSettings,
        shutdown: &CancellationToken,
    ) -> Self {
        let balance = Arc::new(Balance::new(upstream, settings, shutdown));
        let discover = Discover::new(balance.clone(), names).run();
        let retired = balance.retired.clone();
        tokio::spawn(retired.run_until_cancelled_owned(discover));
        Self { balance }
    }

    /// Ends discovery and health checks, and closes the pools: no further requests come. Requests in flight and tunnels
    /// go to their end.
    pub fn retire(&self) {
        self.balance.retired.cancel();
        for replica in self.balance.replicas().iter() {
            replica.retire();
        }
    }

    /// Upstream that receives the requests.
    pub fn upstream(&self) -> &Upstream {
        &self.balance.upstream
    }

    /// Watches the reason why no replica is ready.
    pub(super) fn unready(&self) -> watch::Receiver<Option<String>> {
        self.balance.unready()
    }
}

impl std::fmt::Debug for Forward {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Forward")
            .field("upstream", &self.balance.upstream)
            .field("unready", &*self.unready().borrow())
            .finish_non_exhaustive()
    }
}
