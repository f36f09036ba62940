//! The balancers of upstreams, one of each, as long as routes lead to them.

use std::ops::Deref;
use std::sync::{Arc, Weak};

use net::resolve::Resolver;
use service::CancellationToken;
use service::forward::{Forward, ForwardSettings, Upstream};
use service::server::HttpSettings;

use crate::settings::Settings;

/// A balancer that ends when no routes lead to it and no request uses it.
#[derive(Debug)]
pub(crate) struct ActiveUpstream(Forward);

impl Deref for ActiveUpstream {
    type Target = Forward;

    fn deref(&self) -> &Forward {
        &self.0
    }
}

impl Drop for ActiveUpstream {
    fn drop(&mut self) {
        self.0.retire();
    }
}

/// Balancers of upstreams.
pub(crate) struct Upstreams {
    names: Resolver,
    settings: ForwardSettings,
    http: HttpSettings,
    shutdown: CancellationToken,
    active: Vec<Weak<ActiveUpstream>>,
}

impl Upstreams {
    /// Balancers by these settings, until `shutdown`.
    pub(crate) fn new(names: &Resolver, settings: &Settings, shutdown: &CancellationToken) -> Self {
        Self {
            names: names.clone(),
            settings: settings.forward.clone(),
            http: settings.http.clone(),
            shutdown: shutdown.clone(),
            active: Vec::new(),
        }
    }

    /// The balancer of `upstream`, which is started unless it runs.
    pub(crate) fn of(&mut self, upstream: &Upstream) -> Arc<ActiveUpstream> {
        let upstream = upstream.clone().proven_by(&self.http);
        self.active.retain(|known| known.strong_count() > 0);
        let mut known = self.active.iter().filter_map(Weak::upgrade);
        if let Some(known) = known.find(|known| *known.upstream() == upstream) {
            return known;
        }
        let names = self.names.clone();
        let started = Forward::start(upstream, names, &self.settings, &self.shutdown);
        let started = Arc::new(ActiveUpstream(started));
        self.active.push(Arc::downgrade(&started));
        started
    }

    /// Those that routes lead to.
    pub(crate) fn active(&self) -> Vec<Arc<ActiveUpstream>> {
        self.active.iter().filter_map(Weak::upgrade).collect()
    }
}
