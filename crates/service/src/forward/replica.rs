//! A replica, its health, and the pick among several.

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::outlier::{Outcome, OutlierState};
use super::pool::Pool;

/// Result of the last health check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplicaHealth {
    /// It answers 200.
    Ready,
    /// It answers this status.
    NotReady(u16),
    /// It accepts connections and does not answer.
    Unresponsive,
    /// No health check has ended yet.
    Unknown,
    /// It accepts no connection.
    Unreachable,
}

/// Priority of a replica in the pick; a later one is used when the earlier ones are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Priority {
    Ready,
    /// Ready, but it has failed several requests in a row.
    Ejected,
    /// The client gets the replica's own refusal, which is more specific than ours.
    Accepting,
    /// May be back since the last check.
    Unreachable,
}

impl ReplicaHealth {
    pub(super) fn priority(self) -> Priority {
        match self {
            Self::Ready => Priority::Ready,
            Self::NotReady(_) | Self::Unresponsive | Self::Unknown => Priority::Accepting,
            Self::Unreachable => Priority::Unreachable,
        }
    }
}

/// One address behind a name.
pub(super) struct Replica {
    pub(super) address: SocketAddr,
    pub(super) pool: Pool,
    /// Triggers a health check before its interval has passed.
    pub(super) recheck: Notify,
    /// Signals requests in flight that two checks in a row timed out.
    pub(super) unresponsive: Notify,
    /// Cancelled when the name no longer resolves to this address.
    pub(super) retired: CancellationToken,
    state: Mutex<ReplicaState>,
    /// Whether its outlier state is clear: then a success changes nothing, and takes no lock.
    is_clear: AtomicBool,
    requests_in_flight: AtomicUsize,
    failures: AtomicU64,
}

#[derive(Debug, Clone, Copy)]
struct ReplicaState {
    health: ReplicaHealth,
    outlier: OutlierState,
}

/// A request or a tunnel at a replica, until it is dropped.
pub(super) struct RequestInFlight(Arc<Replica>);

impl RequestInFlight {
    pub(super) fn new(replica: &Arc<Replica>) -> Self {
        replica.requests_in_flight.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(replica))
    }
}

impl Deref for RequestInFlight {
    type Target = Replica;

    fn deref(&self) -> &Replica {
        &self.0
    }
}

impl Drop for RequestInFlight {
    fn drop(&mut self) {
        self.requests_in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Replica {
    pub(super) fn new(address: SocketAddr, retired: CancellationToken) -> Self {
        Self {
            address,
            pool: Pool::default(),
            recheck: Notify::new(),
            unresponsive: Notify::new(),
            retired,
            state: Mutex::new(ReplicaState {
                health: ReplicaHealth::Unknown,
                outlier: OutlierState::default(),
            }),
            is_clear: AtomicBool::new(true),
            requests_in_flight: AtomicUsize::new(0),
            failures: AtomicU64::new(0),
        }
    }

    pub(super) fn health(&self) -> ReplicaHealth {
        self.lock().health
    }

    pub(super) fn priority(&self) -> Priority {
        let state = self.lock();
        match state.health.priority() {
            Priority::Ready if state.outlier.ejected_until().is_some() => Priority::Ejected,
            priority => priority,
        }
    }

    /// The end of its ejection, while it is ejected.
    pub(super) fn ejected_until(&self) -> Option<Instant> {
        self.lock().outlier.ejected_until()
    }

    /// Ejects it; for how long.
    pub(super) fn eject(&self) -> Duration {
        self.lock().outlier.eject(Instant::now())
    }

    pub(super) fn requests_in_flight(&self) -> usize {
        self.requests_in_flight.load(Ordering::Relaxed)
    }

    pub(super) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Records the outcome of an attempt; whether the replica is an outlier now.
    pub(super) fn record_outcome(&self, outcome: Outcome) -> bool {
        if outcome == Outcome::Success {
            if self.is_clear.load(Ordering::Relaxed) {
                return false;
            }
        } else {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        let mut state = self.lock();
        // Others are left out by their health already.
        if state.health != ReplicaHealth::Ready {
            return false;
        }
        let is_outlier = state.outlier.record(outcome, Instant::now());
        self.is_clear
            .store(state.outlier.is_clear(), Ordering::Relaxed);
        is_outlier
    }

    /// Records a result; returns the previous one.
    pub(super) fn record_check(&self, health: ReplicaHealth) -> ReplicaHealth {
        let mut state = self.lock();
        if health == ReplicaHealth::Ready {
            state.outlier.record_ready();
        }
        std::mem::replace(&mut state.health, health)
    }

    fn lock(&self) -> MutexGuard<'_, ReplicaState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops the health checks and closes the pool; requests in flight finish.
    pub(super) fn retire(&self) {
        self.retired.cancel();
        self.pool.close();
    }
}

/// Picks by round robin among the replicas of the best priority that were not `tried`.
pub(super) fn pick<'a>(
    replicas: &'a [Arc<Replica>],
    round_robin: usize,
    tried: &[SocketAddr],
) -> Option<&'a Arc<Replica>> {
    let untried = || {
        replicas
            .iter()
            .filter(|replica| !tried.contains(&replica.address))
    };
    let best = untried().map(|replica| replica.priority()).min()?;
    let candidates = || untried().filter(|replica| replica.priority() == best);
    // The health may change between the two passes: then any will do.
    candidates()
        .nth(round_robin % candidates().count().max(1))
        .or_else(|| untried().next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn replicas(states: &[ReplicaHealth]) -> Vec<Arc<Replica>> {
        (1_u8..)
            .zip(states)
            .map(|(last, health)| {
                let address = SocketAddr::from((Ipv4Addr::new(10, 0, 0, last), 80));
                let replica = Replica::new(address, CancellationToken::new());
                replica.record_check(*health);
                Arc::new(replica)
            })
            .collect()
    }

    fn picks(replicas: &[Arc<Replica>], requests: usize) -> Vec<usize> {
        let mut counts = vec![0; replicas.len()];
        for round_robin in 0..requests {
            let picked = pick(replicas, round_robin, &[]).unwrap().address;
            let index = replicas.iter().position(|one| one.address == picked);
            counts[index.unwrap()] += 1;
        }
        counts
    }

    #[test]
    fn round_robin_picks_ready_replicas_only() {
        use ReplicaHealth::{NotReady, Ready, Unknown, Unreachable, Unresponsive};
        let all = replicas(&[Ready, Ready, Ready]);
        assert_eq!(picks(&all, 9), [3, 3, 3]);
        let some = replicas(&[
            NotReady(503),
            Ready,
            Unresponsive,
            Ready,
            Unreachable,
            Unknown,
        ]);
        assert_eq!(picks(&some, 10), [0, 5, 0, 5, 0, 0]);
        let none = replicas(&[NotReady(503), Unreachable, Unresponsive, Unknown]);
        assert_eq!(picks(&none, 9), [3, 0, 3, 3]);
        let dead = replicas(&[Unreachable, Unreachable]);
        assert_eq!(picks(&dead, 4), [2, 2]);
    }

    #[test]
    fn ejected_replicas_are_picked_before_those_that_are_not_ready() {
        use ReplicaHealth::{NotReady, Ready};
        let all = replicas(&[Ready, Ready, NotReady(503)]);
        all[1].eject();
        assert_eq!(picks(&all, 4), [4, 0, 0]);
        all[0].record_check(NotReady(503));
        assert_eq!(picks(&all, 4), [0, 4, 0]);
    }

    #[test]
    fn only_failures_of_ready_replicas_count() {
        let all = replicas(&[ReplicaHealth::Unreachable, ReplicaHealth::Ready]);
        let outlier = |replica: &Replica| {
            let found = (0..10).map(|_| replica.record_outcome(Outcome::GatewayError));
            found.filter(|is_outlier| *is_outlier).count()
        };
        assert_eq!((outlier(&all[0]), outlier(&all[1])), (0, 6));
        assert_eq!((all[0].failures(), all[1].failures()), (10, 10));
    }

    #[test]
    fn each_replica_is_picked_once_by_priority() {
        let all = replicas(&[
            ReplicaHealth::Unreachable,
            ReplicaHealth::Unresponsive,
            ReplicaHealth::Ready,
            ReplicaHealth::Ready,
        ]);
        let mut tried = Vec::new();
        while let Some(next) = pick(&all, 7, &tried) {
            tried.push(next.address);
        }
        let order: Vec<u8> = tried
            .iter()
            .map(|address| match address.ip() {
                std::net::IpAddr::V4(ip) => ip.octets()[3],
                std::net::IpAddr::V6(_) => 0,
            })
            .collect();
        assert_eq!(order.len(), 4);
        assert_eq!(order[2..], [2, 1], "{order:?}");
    }
}
