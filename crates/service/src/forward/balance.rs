//! Load balancing of one upstream: its replicas, their health, and the readiness of the whole.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::concurrency::ConcurrencyLimits;
use super::metrics::Metrics;
use super::outlier::{Outcome, may_eject};
use super::replica::{Priority, Replica, ReplicaHealth};
use super::settings::ForwardSettings;
use super::upstream::Upstream;

/// How long the first requests wait for the first resolution of the name.
const FIRST_RESOLVE_TIMEOUT: Duration = Duration::from_secs(3);

/// The replicas of one upstream, their health and their limits.
pub(super) struct Balance {
    pub(super) upstream: Upstream,
    pub(super) settings: ForwardSettings,
    /// Ends tunnels.
    pub(super) shutdown: CancellationToken,
    /// Ends discovery and health checks.
    pub(super) retired: CancellationToken,
    pub(super) round_robin: AtomicUsize,
    pub(super) concurrency: ConcurrencyLimits,
    pub(super) metrics: Metrics,
    /// Cancelled when the first resolution has ended, with or without addresses.
    first_resolve: CancellationToken,
    replicas: RwLock<Arc<[Arc<Replica>]>>,
    /// Held while a replica is ejected: two at once could be too many.
    ejecting: Mutex<()>,
    /// Reason why no replica is ready, as in `answers 503`; for an operator, without addresses.
    unready: watch::Sender<Option<String>>,
}

impl Balance {
    /// No replicas yet.
    pub(super) fn new(
        upstream: Upstream,
        settings: &ForwardSettings,
        shutdown: &CancellationToken,
    ) -> Self {
        Self {
            metrics: Metrics::of(&upstream),
            upstream,
            shutdown: shutdown.clone(),
            retired: shutdown.child_token(),
            round_robin: AtomicUsize::new(0),
            concurrency: ConcurrencyLimits::new(settings.max_forwarded_requests),
            settings: settings.clone(),
            first_resolve: CancellationToken::new(),
            replicas: RwLock::new(Arc::new([])),
            ejecting: Mutex::new(()),
            unready: watch::Sender::new(Some("has not been resolved yet".to_owned())),
        }
    }

    /// Watches the reason why no replica is ready.
    pub(super) fn unready(&self) -> watch::Receiver<Option<String>> {
        self.unready.subscribe()
    }

    pub(super) fn replicas(&self) -> Arc<[Arc<Replica>]> {
        self.replicas
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The replicas, after the first resolution.
    pub(super) async fn resolved_replicas(&self) -> Arc<[Arc<Replica>]> {
        let replicas = self.replicas();
        if !replicas.is_empty() {
            return replicas;
        }
        tokio::time::timeout(FIRST_RESOLVE_TIMEOUT, self.first_resolve.cancelled())
            .await
            .ok();
        self.replicas()
    }

    pub(super) fn set_replicas(&self, replicas: Arc<[Arc<Replica>]>) {
        *self
            .replicas
            .write()
            .unwrap_or_else(PoisonError::into_inner) = replicas;
        self.first_resolve.cancel();
        self.publish();
    }

    /// Records that the name has no address; without effect once one was known.
    pub(super) fn name_not_resolved(&self) {
        self.first_resolve.cancel();
        if self.replicas().is_empty() {
            let reason = Some("has a name that cannot be resolved".to_owned());
            self.unready.send_if_modified(|last| replaced(last, reason));
        }
    }

    /// Records the result of a health check; returns the previous one.
    pub(super) fn record_check(&self, replica: &Replica, health: ReplicaHealth) -> ReplicaHealth {
        let before = replica.record_check(health);
        if before == health {
            return before;
        }
        let (upstream, address) = (self.upstream.authority(), replica.address);
        match health.priority() {
            Priority::Ready => tracing::info!(upstream, %address, "replica ready"),
            _ if before == ReplicaHealth::Ready => {
                tracing::warn!(upstream, %address, ?health, "replica no longer ready");
            }
            _ => tracing::debug!(upstream, %address, ?health, "replica not ready"),
        }
        self.publish();
        before
    }

    /// Records the outcome of an attempt at `replica`, and ejects it when it fails one request after the other while
    /// enough others are in use.
    pub(super) fn record_outcome(&self, replica: &Replica, outcome: Outcome) {
        if !replica.record_outcome(outcome) {
            return;
        }
        let _one_at_a_time = self.ejecting.lock().unwrap_or_else(PoisonError::into_inner);
        let (ready, ejected) = self.ready_and_ejected();
        // Another request may have ejected it meanwhile.
        if replica.ejected_until().is_some() || !may_eject(ready, ejected) {
            return;
        }
        let seconds = replica.eject().as_secs();
        self.metrics.ejections.increment(1);
        self.measure_ejected();
        tracing::warn!(
            upstream = self.upstream.authority(),
            address = %replica.address,
            seconds,
            "replica ejected: requests fail one after the other while its health check passes"
        );
    }

    /// The number of ready replicas, and of those among them that are ejected.
    fn ready_and_ejected(&self) -> (usize, usize) {
        let replicas = self.replicas();
        let count = |priority| {
            let found = replicas.iter().filter(|it| it.priority() == priority);
            found.count()
        };
        let ejected = count(Priority::Ejected);
        (count(Priority::Ready) + ejected, ejected)
    }

    /// Updates the metric; an ejection ends without an event.
    pub(super) fn measure_ejected(&self) {
        #[expect(clippy::cast_precision_loss, reason = "a name has few addresses")]
        self.metrics.ejected.set(self.ready_and_ejected().1 as f64);
    }

    /// Completes when `replica` is unresponsive while another one is ready.
    pub(super) async fn unresponsive(&self, replica: &Replica) {
        loop {
            replica.unresponsive.notified().await;
            let replicas = self.replicas();
            if replicas
                .iter()
                .any(|other| other.health() == ReplicaHealth::Ready)
            {
                return;
            }
        }
    }

    fn publish(&self) {
        self.unready.send_if_modified(|last| {
            // Read under the lock: the last to publish sees the results of all earlier checks.
            let replicas = self.replicas();
            let states: Vec<_> = replicas.iter().map(|replica| replica.health()).collect();
            let is_ready = |health: &&ReplicaHealth| **health == ReplicaHealth::Ready;
            let ready = states.iter().filter(is_ready).count();
            #[expect(
                clippy::cast_precision_loss,
                reason = "a name has few addresses, a gauge is a float"
            )]
            {
                self.metrics.replicas.set(states.len() as f64);
                self.metrics.ready.set(ready as f64);
            }
            replaced(last, (ready == 0).then(|| reason(&states)))
        });
    }
}

/// Replaces `last`; whether `new` differs from it.
fn replaced(last: &mut Option<String>, new: Option<String>) -> bool {
    std::mem::replace(last, new) != *last
}

/// Reason why none of the replicas is ready.
fn reason(states: &[ReplicaHealth]) -> String {
    let code = states.iter().find_map(|health| match health {
        ReplicaHealth::NotReady(code) => Some(code),
        _ => None,
    });
    match code {
        Some(code) => format!("answers {code}"),
        None if states.contains(&ReplicaHealth::Unresponsive) => "does not answer".to_owned(),
        None if states.contains(&ReplicaHealth::Unreachable) => "cannot be reached".to_owned(),
        None => "has not been checked yet".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_reason_is_reported() {
        use ReplicaHealth::{NotReady, Unknown, Unreachable, Unresponsive};
        for (states, expected) in [
            (&[Unreachable, NotReady(503)][..], "answers 503"),
            (&[Unreachable, Unresponsive], "does not answer"),
            (&[Unknown, Unreachable], "cannot be reached"),
            (&[Unknown], "has not been checked yet"),
        ] {
            assert_eq!(reason(states), expected);
        }
    }
}
