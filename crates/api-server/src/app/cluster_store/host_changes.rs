//! Changes of single hosts, committed in groups: those that arrive during a transaction share the next one.
//!
//! A cluster's changes run one after the other, in the order of their arrival, and each has an outcome of its own: a
//! group only shares the lock, the transaction and the write of the cluster's revision. 500 hosts that register in one
//! second wait for tens of commits instead of 500.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use model::Error;
use model::ids::{ClusterId, HostId, InfraEnvId};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::transaction::{CommittedChange, Extent, LockScope, MAX_WAITING, Refresh};
use super::{ClusterStore, ClusterTransaction, Scope};
use crate::app::request;
use crate::db::{self, tx};

/// Changes of one transaction at most.
const GROUP: usize = 128;
/// Time after which a group is committed, although more changes wait: it delays other requests, and inventories of some
/// machines are large. A thread beside the runtime's would keep memory of its own.
const SLICE: Duration = Duration::from_millis(20);

type HostDecision = Arc<dyn Fn(&mut ClusterTransaction) -> Result<(), Error> + Send + Sync>;
type ChangeOutcome = Result<CommittedChange<()>, db::Error>;

/// The changes of one key share transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum GroupKey {
    /// Hosts of a cluster.
    Cluster(ClusterId),
    /// New hosts of an infra-env without cluster.
    Pool(InfraEnvId),
}

/// A waiting change.
struct HostChange {
    scope: Scope,
    host: HostId,
    decide: HostDecision,
    request: Option<Uuid>,
    done: oneshot::Sender<ChangeOutcome>,
}

impl fmt::Debug for HostChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostChange")
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

impl HostChange {
    /// The request may have been closed meanwhile: its change is made or refused all the same.
    fn respond(self, outcome: ChangeOutcome) {
        drop(self.done.send(outcome));
    }
}

/// Waiting changes by key. A key is present while a task commits its changes.
#[derive(Debug, Default)]
pub(super) struct HostChanges(Mutex<HashMap<GroupKey, VecDeque<HostChange>>>);

impl HostChanges {
    fn waiting(&self) -> MutexGuard<'_, HashMap<GroupKey, VecDeque<HostChange>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a change; returns whether a task has to be started for the key.
    ///
    /// Errors: Unavailable – too many wait.
    fn add(&self, key: GroupKey, change: HostChange) -> Result<bool, Error> {
        let mut waiting = self.waiting();
        let is_first = !waiting.contains_key(&key);
        let queue = waiting.entry(key).or_default();
        if queue.len() >= MAX_WAITING {
            return Err(Error::Unavailable {
                what: "a cluster with too many waiting changes",
                source: None,
            });
        }
        queue.push_back(change);
        Ok(is_first)
    }

    /// Takes the oldest changes whose requests still wait; none ends the task of the key.
    fn take(&self, key: GroupKey) -> Option<Vec<HostChange>> {
        let mut waiting = self.waiting();
        let queue = waiting.get_mut(&key)?;
        queue.retain(|change| !change.done.is_closed());
        if queue.is_empty() {
            waiting.remove(&key);
            return None;
        }
        let count = queue.len().min(GROUP);
        Some(queue.drain(..count).collect())
    }

    /// Whether changes of a cluster's hosts wait.
    pub(super) fn is_waiting(&self, id: ClusterId) -> bool {
        let waiting = self.waiting();
        let queue = waiting.get(&GroupKey::Cluster(id));
        queue.is_some_and(|queue| !queue.is_empty())
    }

    /// Puts changes that did not run back in front.
    fn put_back(&self, key: GroupKey, changes: Vec<HostChange>) {
        let mut waiting = self.waiting();
        let queue = waiting.entry(key).or_default();
        for change in changes.into_iter().rev() {
            queue.push_front(change);
        }
    }
}

/// Ends the key's queue when its task panics: the waiting requests fail, and the next one starts a task.
struct GroupTask {
    store: Arc<ClusterStore>,
    key: GroupKey,
}

impl Drop for GroupTask {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.store.host_changes.waiting().remove(&self.key);
        }
    }
}

impl ClusterStore {
    /// Like [`ClusterStore::change`], but of one host, at a cost that does not grow with its cluster: changes that arrive
    /// together share a transaction, and the refresh of the cluster is marked as due in it, and coalesced.
    ///
    /// A `decide` that fails leaves the cluster's own record as it was. Returns the cluster before its refresh, and a
    /// handle to the refresh.
    pub(crate) async fn change_one(
        self: &Arc<Self>,
        name: &'static str,
        scope: Scope,
        host: HostId,
        decide: impl Fn(&mut ClusterTransaction) -> Result<(), Error> + Send + Sync + 'static,
    ) -> Result<CommittedChange<()>, Error> {
        let decide: HostDecision = Arc::new(decide);
        tx(name, async || {
            let lock_scope = self.lock_scope(scope).await?;
            let key = match (&lock_scope, scope) {
                (LockScope::Cluster(id), _) => Some(GroupKey::Cluster(*id)),
                (LockScope::Pool(infra_env, _), Scope::Pool(..)) => {
                    Some(GroupKey::Pool(*infra_env))
                }
                (LockScope::Pool(..), _) => None,
            };
            let (done, outcome) = oneshot::channel();
            let change = HostChange {
                scope,
                host,
                decide: Arc::clone(&decide),
                request: request::id(),
                done,
            };
            // A dry run rolls its transaction back, and shares it with no other change.
            let Some(key) = key.filter(|_| !request::is_dry_run()) else {
                return self.change_alone(&lock_scope, &change).await;
            };
            if self.host_changes.add(key, change)? {
                let store = Arc::clone(self);
                // Tracked like a request: a graceful shutdown drains it before the pool closes.
                self.requests
                    .spawn(async move { store.commit_groups(key).await });
            }
            outcome.await.unwrap_or_else(|_| {
                let what = "the transaction of a host's change";
                Err(Error::Unavailable { what, source: None }.into())
            })
        })
        .await
    }

    async fn change_alone(
        self: &Arc<Self>,
        lock_scope: &LockScope,
        change: &HostChange,
    ) -> ChangeOutcome {
        let run = |transaction: &mut ClusterTransaction| self.run(transaction, change);
        let committed = self.attempt(None, lock_scope, Extent::Hosts, true, &run);
        let committed = committed.await?.ok_or(db::Error::Moved)?;
        Ok(CommittedChange {
            value: (),
            stored: committed.stored,
            refresh: committed.refresh.filter(|_| committed.value),
        })
    }

    async fn commit_groups(self: Arc<Self>, key: GroupKey) {
        let task = GroupTask { store: self, key };
        while let Some(group) = task.store.host_changes.take(key) {
            task.store.commit_group(key, group).await;
        }
    }

    /// Commits a group. When its transaction is refused, each change gets one of its own: only the one at fault fails.
    async fn commit_group(self: &Arc<Self>, key: GroupKey, group: Vec<HostChange>) {
        match self.try_group(key, &group).await {
            Ok(committed) => self.respond(key, group, committed),
            Err(error) if group.len() == 1 || matches!(error, Error::Unavailable { .. }) => {
                refuse(group, error);
            }
            Err(_) => {
                for change in group {
                    let single = vec![change];
                    match self.try_group(key, &single).await {
                        Ok(committed) => self.respond(key, single, committed),
                        Err(error) => refuse(single, error),
                    }
                }
            }
        }
    }

    async fn try_group(
        self: &Arc<Self>,
        key: GroupKey,
        group: &[HostChange],
    ) -> Result<CommittedChange<Vec<Result<bool, db::Error>>>, Error> {
        let lock_scope = match key {
            GroupKey::Cluster(id) => LockScope::Cluster(id),
            GroupKey::Pool(infra_env) => {
                LockScope::Pool(infra_env, group.iter().map(|change| change.host).collect())
            }
        };
        let run = |transaction: &mut ClusterTransaction| Ok(self.run_group(transaction, group));
        tx("changes of hosts", async || {
            let committed = self.attempt(None, &lock_scope, Extent::Hosts, true, &run);
            committed.await?.ok_or(db::Error::Moved)
        })
        .await
    }

    /// Runs changes until [`SLICE`] has passed; the others have no outcome.
    fn run_group(
        &self,
        transaction: &mut ClusterTransaction,
        group: &[HostChange],
    ) -> Vec<Result<bool, db::Error>> {
        let started = Instant::now();
        let mut outcomes = Vec::with_capacity(group.len());
        for change in group {
            outcomes.push(self.run(transaction, change));
            if started.elapsed() > SLICE {
                break;
            }
        }
        outcomes
    }

    /// Runs one change; one that fails leaves no trace. Returns whether it made the refresh due.
    fn run(
        &self,
        transaction: &mut ClusterTransaction,
        change: &HostChange,
    ) -> Result<bool, db::Error> {
        transaction.find(change.scope)?;
        let checkpoint = transaction.snapshot.hosts.checkpoint(change.host);
        let count = transaction.events.len();
        let refresh = std::mem::replace(&mut transaction.refresh, Refresh::None);
        transaction.current = Some(change.host);
        if let Some(host) = transaction.snapshot.hosts.by_id_mut(change.host) {
            self.heartbeats.apply(&mut host.record);
            host.observed = self.heartbeats.observed(transaction.now);
        }
        let decided = (change.decide)(transaction);
        let is_due = decided.is_ok() && transaction.refresh == Refresh::Due;
        if !is_due {
            transaction.refresh = refresh;
        }
        if let Err(error) = decided {
            transaction.snapshot.hosts.restore(checkpoint);
            transaction.events.truncate(count);
            return Err(error.into());
        }
        for event in &mut transaction.events[count..] {
            event.request_id = change.request;
        }
        Ok(is_due)
    }

    fn respond(
        &self,
        key: GroupKey,
        group: Vec<HostChange>,
        committed: CommittedChange<Vec<Result<bool, db::Error>>>,
    ) {
        let mut waiting = group.into_iter();
        for (outcome, change) in committed.value.into_iter().zip(waiting.by_ref()) {
            change.respond(outcome.map(|is_due| CommittedChange {
                value: (),
                stored: Arc::clone(&committed.stored),
                refresh: committed.refresh.clone().filter(|_| is_due),
            }));
        }
        self.host_changes.put_back(key, waiting.collect());
    }
}

/// Responds with the error of a transaction: of one change, or of an unavailable database.
fn refuse(group: Vec<HostChange>, error: Error) {
    if let Error::Unavailable { what, source } = error {
        let cause = source.map(|source| source.to_string()).unwrap_or_default();
        tracing::debug!(
            what,
            cause,
            changes = group.len(),
            "changes of hosts not stored"
        );
        for change in group {
            change.respond(Err(Error::Unavailable { what, source: None }.into()));
        }
    } else if let Some(change) = group.into_iter().next() {
        change.respond(Err(error.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(number: u128) -> (HostChange, oneshot::Receiver<ChangeOutcome>) {
        let (done, outcome) = oneshot::channel();
        let id = HostId(Uuid::from_u128(number));
        let change = HostChange {
            scope: Scope::Host(InfraEnvId::default(), id),
            host: id,
            decide: Arc::new(|_| Ok(())),
            request: None,
            done,
        };
        (change, outcome)
    }

    fn numbers(group: &[HostChange]) -> Vec<u128> {
        group.iter().map(|change| change.host.0.as_u128()).collect()
    }

    #[test]
    fn changes_are_taken_in_the_order_of_their_arrival() {
        let changes = HostChanges::default();
        let key = GroupKey::Cluster(ClusterId::default());
        let mut outcomes = Vec::new();
        for number in 0..=GROUP as u128 {
            let (change, outcome) = change(number);
            assert_eq!(changes.add(key, change).unwrap(), number == 0);
            outcomes.push(outcome);
        }
        assert!(changes.is_waiting(ClusterId::default()));
        let mut group = changes.take(key).unwrap();
        assert_eq!(group.len(), GROUP);
        let rest = group.split_off(2);
        changes.put_back(key, rest);
        // A closed request is not run.
        drop(outcomes.remove(3));
        let group = changes.take(key).unwrap();
        let last = GROUP as u128;
        let expected: Vec<u128> = [2].into_iter().chain(4..=last).collect();
        assert_eq!(numbers(&group), expected);
        assert!(!changes.is_waiting(ClusterId::default()));
        assert!(changes.take(key).is_none());
        let (change, _outcome) = change(0);
        assert!(changes.add(key, change).unwrap(), "the task has ended");
    }

    // limit: changes waiting for a cluster
    #[test]
    fn no_more_than_the_bound_wait() {
        let changes = HostChanges::default();
        let key = GroupKey::Pool(InfraEnvId::default());
        let mut outcomes = Vec::new();
        for number in 0..MAX_WAITING as u128 {
            let (change, outcome) = change(number);
            changes.add(key, change).unwrap();
            outcomes.push(outcome);
        }
        let refused = changes.add(key, change(0).0);
        assert!(matches!(refused, Err(Error::Unavailable { .. })));
        let other = GroupKey::Cluster(ClusterId::default());
        assert!(changes.add(other, change(0).0).unwrap());
    }
}
