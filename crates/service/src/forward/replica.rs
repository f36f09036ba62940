//! One replica, and which of several gets a request.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::pool::Pool;

/// What the last look at a replica found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    /// It says that it is ready.
    Ready,
    /// It says something else.
    Answers(u16),
    /// It accepts connections and does not answer.
    Silent,
    /// Nobody has looked yet.
    Unchecked,
    /// It accepts no connection.
    Unreachable,
}

/// Which replicas come first; later ranks are asked when earlier ones are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    Ready,
    /// Their own refusal tells a client more than ours.
    Accepting,
    /// May have come back since the last look.
    Unreachable,
}

impl Condition {
    pub(super) fn rank(self) -> Rank {
        match self {
            Self::Ready => Rank::Ready,
            Self::Answers(_) | Self::Silent | Self::Unchecked => Rank::Accepting,
            Self::Unreachable => Rank::Unreachable,
        }
    }
}

/// One address behind a name.
pub(super) struct Replica {
    pub(super) address: SocketAddr,
    pub(super) pool: Pool,
    /// Asks for a look before its time.
    pub(super) doubted: Notify,
    /// Tells those who wait for an answer that it was silent at looks in a row.
    pub(super) frozen: Notify,
    /// Cancelled when the name does not stand for this address any more.
    pub(super) gone: CancellationToken,
    condition: Mutex<Condition>,
}

impl Replica {
    pub(super) fn new(address: SocketAddr, gone: CancellationToken) -> Self {
        Self {
            address,
            pool: Pool::default(),
            doubted: Notify::new(),
            frozen: Notify::new(),
            gone,
            condition: Mutex::new(Condition::Unchecked),
        }
    }

    pub(super) fn condition(&self) -> Condition {
        *self.last_found()
    }

    /// Notes what was found; the condition before.
    pub(super) fn found(&self, condition: Condition) -> Condition {
        std::mem::replace(&mut self.last_found(), condition)
    }

    fn last_found(&self) -> MutexGuard<'_, Condition> {
        self.condition
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The name stands for other addresses now; requests that are on it finish.
    pub(super) fn retire(&self) {
        self.gone.cancel();
        self.pool.close();
    }
}

/// The replica for a request: the `turn`-th of the best rank among those that were not `tried`.
pub(super) fn choose<'a>(
    replicas: &'a [Arc<Replica>],
    turn: usize,
    tried: &[SocketAddr],
) -> Option<&'a Arc<Replica>> {
    let untried = || {
        replicas
            .iter()
            .filter(|replica| !tried.contains(&replica.address))
    };
    let best = untried().map(|replica| replica.condition().rank()).min()?;
    let of_best = || untried().filter(|replica| replica.condition().rank() == best);
    // A condition may change between the two passes: then any will do.
    of_best()
        .nth(turn % of_best().count().max(1))
        .or_else(|| untried().next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn replicas(conditions: &[Condition]) -> Vec<Arc<Replica>> {
        (1_u8..)
            .zip(conditions)
            .map(|(last, condition)| {
                let address = SocketAddr::from((Ipv4Addr::new(10, 0, 0, last), 80));
                let replica = Replica::new(address, CancellationToken::new());
                replica.found(*condition);
                Arc::new(replica)
            })
            .collect()
    }

    fn chosen(replicas: &[Arc<Replica>], turns: usize) -> Vec<usize> {
        let mut counts = vec![0; replicas.len()];
        for turn in 0..turns {
            let chosen = choose(replicas, turn, &[]).unwrap().address;
            let index = replicas.iter().position(|one| one.address == chosen);
            counts[index.unwrap()] += 1;
        }
        counts
    }

    #[test]
    fn ready_replicas_share_evenly_and_others_get_nothing() {
        use Condition::{Answers, Ready, Silent, Unchecked, Unreachable};
        let all = replicas(&[Ready, Ready, Ready]);
        assert_eq!(chosen(&all, 9), [3, 3, 3]);
        let some = replicas(&[Answers(503), Ready, Silent, Ready, Unreachable, Unchecked]);
        assert_eq!(chosen(&some, 10), [0, 5, 0, 5, 0, 0]);
        let none = replicas(&[Answers(503), Unreachable, Silent, Unchecked]);
        assert_eq!(chosen(&none, 9), [3, 0, 3, 3]);
        let dead = replicas(&[Unreachable, Unreachable]);
        assert_eq!(chosen(&dead, 4), [2, 2]);
    }

    #[test]
    fn each_is_tried_once_the_best_first() {
        let all = replicas(&[
            Condition::Unreachable,
            Condition::Silent,
            Condition::Ready,
            Condition::Ready,
        ]);
        let mut tried = Vec::new();
        while let Some(next) = choose(&all, 7, &tried) {
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
