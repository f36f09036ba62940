//! An upstream as its users see it: requests in, its state out.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use net::resolve::Resolver;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::check;
use super::metrics::Metrics;
use super::replica::{Condition, Rank, Replica};
use super::slots::Slots;
use super::upstream::Upstream;

/// How long the first requests wait until the name has been looked up once.
const FIRST_LOOKUP_TIMEOUT: Duration = Duration::from_secs(3);

/// Forwards requests to the replicas of one upstream.
#[derive(Clone)]
pub struct Forward {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) upstream: Upstream,
    pub(super) shutdown: CancellationToken,
    pub(super) turn: AtomicUsize,
    pub(super) slots: Slots,
    pub(super) metrics: Metrics,
    /// Cancelled when the first look-up has ended, with or without addresses.
    first_lookup: CancellationToken,
    replicas: RwLock<Arc<[Arc<Replica>]>>,
    /// What it does instead when no replica is ready, as in `answers 503`; for an operator, without addresses.
    unready: watch::Sender<Option<String>>,
}

impl Forward {
    /// Begins to follow the addresses of `upstream` and whether they are ready, until `shutdown`. Requests are
    /// forwarded also after it, to the replicas that were known. At most `max_requests` and tunnels at a time, each a
    /// connection or two; 0: no limit.
    ///
    /// Panics: outside a runtime.
    pub fn start(
        upstream: Upstream,
        names: Resolver,
        max_requests: usize,
        shutdown: &CancellationToken,
    ) -> Self {
        let inner = Arc::new(Inner {
            metrics: Metrics::of(&upstream),
            upstream,
            shutdown: shutdown.clone(),
            turn: AtomicUsize::new(0),
            slots: Slots::new(max_requests),
            first_lookup: CancellationToken::new(),
            replicas: RwLock::new(Arc::new([])),
            unready: watch::Sender::new(Some("has not been looked up yet".to_owned())),
        });
        let following = check::follow(inner.clone(), names, shutdown.clone());
        tokio::spawn(shutdown.clone().run_until_cancelled_owned(following));
        Self { inner }
    }

    /// Where requests go.
    pub fn upstream(&self) -> &Upstream {
        &self.inner.upstream
    }

    /// What the upstream does instead when no replica is ready, now and from now on.
    pub(super) fn unready(&self) -> watch::Receiver<Option<String>> {
        self.inner.unready.subscribe()
    }
}

impl Inner {
    pub(super) fn replicas(&self) -> Arc<[Arc<Replica>]> {
        self.replicas
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The replicas, after the first look-up.
    pub(super) async fn looked_up(&self) -> Arc<[Arc<Replica>]> {
        let replicas = self.replicas();
        if !replicas.is_empty() {
            return replicas;
        }
        tokio::time::timeout(FIRST_LOOKUP_TIMEOUT, self.first_lookup.cancelled())
            .await
            .ok();
        self.replicas()
    }

    pub(super) fn set_replicas(&self, replicas: Arc<[Arc<Replica>]>) {
        *self
            .replicas
            .write()
            .unwrap_or_else(PoisonError::into_inner) = replicas;
        self.first_lookup.cancel();
        self.publish();
    }

    /// The name has no address; matters as long as none was ever known.
    pub(super) fn not_found(&self) {
        self.first_lookup.cancel();
        if self.replicas().is_empty() {
            let reason = Some("has a name that cannot be resolved".to_owned());
            self.unready.send_if_modified(|last| replaced(last, reason));
        }
    }

    /// Notes what a replica was found to be; the condition before.
    pub(super) fn found(&self, replica: &Replica, condition: Condition) -> Condition {
        let before = replica.found(condition);
        if before == condition {
            return before;
        }
        let (upstream, address) = (self.upstream.authority(), replica.address);
        match condition.rank() {
            Rank::Ready => tracing::info!(upstream, %address, "a replica is ready"),
            _ if before == Condition::Ready => {
                tracing::warn!(upstream, %address, ?condition, "a replica is not ready any more");
            }
            _ => tracing::debug!(upstream, %address, ?condition, "a replica is not ready"),
        }
        self.publish();
        before
    }

    /// Until `replica` is frozen while another one is ready.
    pub(super) async fn frozen(&self, replica: &Replica) {
        loop {
            replica.frozen.notified().await;
            let replicas = self.replicas();
            if replicas
                .iter()
                .any(|other| other.condition() == Condition::Ready)
            {
                return;
            }
        }
    }

    fn publish(&self) {
        self.unready.send_if_modified(|last| {
            // Looked at under the lock: whoever is last to publish has seen what all before it found.
            let replicas = self.replicas();
            let conditions: Vec<_> = replicas.iter().map(|replica| replica.condition()).collect();
            let is_ready = |condition: &&Condition| **condition == Condition::Ready;
            let ready = conditions.iter().filter(is_ready).count();
            #[expect(
                clippy::cast_precision_loss,
                reason = "a name has few addresses, a gauge is a float"
            )]
            {
                self.metrics.replicas.set(conditions.len() as f64);
                self.metrics.ready.set(ready as f64);
            }
            replaced(last, (ready == 0).then(|| reason(&conditions)))
        });
    }
}

/// Whether `new` differs from what it replaces.
fn replaced(last: &mut Option<String>, new: Option<String>) -> bool {
    std::mem::replace(last, new) != *last
}

/// Why none of the replicas is ready.
fn reason(conditions: &[Condition]) -> String {
    let code = conditions.iter().find_map(|condition| match condition {
        Condition::Answers(code) => Some(code),
        _ => None,
    });
    match code {
        Some(code) => format!("answers {code}"),
        None if conditions.contains(&Condition::Silent) => "does not answer".to_owned(),
        None if conditions.contains(&Condition::Unreachable) => "cannot be reached".to_owned(),
        None => "has not been asked yet".to_owned(),
    }
}

impl std::fmt::Debug for Forward {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Forward")
            .field("upstream", &self.inner.upstream)
            .field("unready", &*self.inner.unready.borrow())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_telling_reason_is_given() {
        use Condition::{Answers, Silent, Unchecked, Unreachable};
        for (conditions, expected) in [
            (&[Unreachable, Answers(503)][..], "answers 503"),
            (&[Unreachable, Silent], "does not answer"),
            (&[Unchecked, Unreachable], "cannot be reached"),
            (&[Unchecked], "has not been asked yet"),
        ] {
            assert_eq!(reason(conditions), expected);
        }
    }
}
