//! A replica, its health, and the pick among several.

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::StatusCode;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

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
    /// The client gets the replica's own refusal, which is more specific than ours.
    Accepting,
    /// May be back since the last check.
    Unreachable,
}

/// Outcome of an attempt at a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Success,
    /// No connection, no response, or a gateway error.
    Failure,
}

impl Outcome {
    /// The outcome of a response with `status`.
    pub(super) fn of(status: StatusCode) -> Self {
        match status {
            StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Self::Failure,
            _ => Self::Success,
        }
    }
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
    health: Mutex<ReplicaHealth>,
    requests_in_flight: AtomicUsize,
    failures: AtomicU64,
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
            health: Mutex::new(ReplicaHealth::Unknown),
            requests_in_flight: AtomicUsize::new(0),
            failures: AtomicU64::new(0),
        }
    }

    pub(super) fn health(&self) -> ReplicaHealth {
        *self.lock()
    }

    pub(super) fn requests_in_flight(&self) -> usize {
        self.requests_in_flight.load(Ordering::Relaxed)
    }

    pub(super) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Records the outcome of an attempt.
    pub(super) fn record_outcome(&self, outcome: Outcome) {
        if outcome == Outcome::Failure {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records a result; returns the previous one.
    pub(super) fn record_check(&self, health: ReplicaHealth) -> ReplicaHealth {
        std::mem::replace(&mut self.lock(), health)
    }

    fn lock(&self) -> MutexGuard<'_, ReplicaHealth> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
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
    let best = untried().map(|replica| replica.health().priority()).min()?;
    let candidates = || untried().filter(|replica| replica.health().priority() == best);
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
