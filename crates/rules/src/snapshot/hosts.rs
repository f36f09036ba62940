//! The hosts of a snapshot: shared between copies until one of them changes a host.
//!
//! A copy of a snapshot costs one pointer per host, so that a change of one host does not copy the others. A host is
//! found by its id at a cost that does not grow with the list.

use std::collections::HashMap;
use std::ops::{Index, IndexMut};
use std::slice;
use std::sync::{Arc, OnceLock};

use model::ids::{HostId, InfraEnvId};

use crate::snapshot::host_state::HostState;
use crate::snapshot::reach::{Reach, Reaches};

/// Hosts that are scanned rather than indexed: those of small lists, and those added since the index was made.
const SCANNED: usize = 32;

/// Hosts in the order of their registration, copied on write. Their ids differ, and stay as they are.
#[derive(Debug, Clone, Default)]
pub struct HostList {
    hosts: Vec<Arc<HostState>>,
    /// Positions of the first hosts by id: made by a look-up, and shared by the copies of the list.
    index: OnceLock<Arc<HashMap<HostId, usize>>>,
}

/// A host as it was, and the number of hosts.
#[derive(Debug)]
pub struct HostCheckpoint {
    host: Option<(usize, Arc<HostState>)>,
    count: usize,
}

/// Iterates over hosts.
pub type Iter<'a> =
    std::iter::Map<slice::Iter<'a, Arc<HostState>>, fn(&Arc<HostState>) -> &HostState>;
/// Iterates over hosts to change; each becomes a copy of its own when it is shared.
pub type IterMut<'a> =
    std::iter::Map<slice::IterMut<'a, Arc<HostState>>, fn(&mut Arc<HostState>) -> &mut HostState>;

impl HostList {
    /// The hosts, in order.
    pub fn iter(&self) -> Iter<'_> {
        self.hosts.iter().map(Arc::as_ref)
    }

    /// The hosts to change, in order. Every host that is visited stops being shared.
    pub fn iter_mut(&mut self) -> IterMut<'_> {
        self.hosts.iter_mut().map(Arc::make_mut)
    }

    /// The host with this id.
    pub fn by_id(&self, id: HostId) -> Option<&HostState> {
        self.position_by_id(id).map(|at| &self[at])
    }

    /// The host with this id, to change; unlike [`Self::iter_mut`], the others stay shared.
    pub fn by_id_mut(&mut self, id: HostId) -> Option<&mut HostState> {
        let at = self.position_by_id(id)?;
        Some(&mut self[at])
    }

    /// The position of the host with this id.
    pub fn position_by_id(&self, id: HostId) -> Option<usize> {
        if self.hosts.len() <= SCANNED {
            return self.scan(0, id);
        }
        let index = self.index.get_or_init(|| Arc::new(self.positions()));
        match index.get(&id) {
            Some(at) => Some(*at),
            None => self.scan(index.len(), id),
        }
    }

    fn scan(&self, from: usize, id: HostId) -> Option<usize> {
        let found = self.iter().skip(from).position(|host| host.record.id == id);
        found.map(|at| from + at)
    }

    fn positions(&self) -> HashMap<HostId, usize> {
        let hosts = self.iter().enumerate();
        hosts.map(|(at, host)| (host.record.id, at)).collect()
    }

    /// Remembers the host with this id, if it is in the list, and the number of hosts.
    pub fn checkpoint(&self, id: HostId) -> HostCheckpoint {
        let at = self.position_by_id(id);
        HostCheckpoint {
            host: at.map(|at| (at, Arc::clone(&self.hosts[at]))),
            count: self.len(),
        }
    }

    /// Undoes a change of the checkpoint's host, and removes the hosts that were added since.
    pub fn restore(&mut self, checkpoint: HostCheckpoint) {
        self.truncate(checkpoint.count);
        if let Some((at, host)) = checkpoint.host {
            self.hosts[at] = host;
        }
    }

    /// The number of hosts.
    pub fn len(&self) -> usize {
        self.hosts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// The host at that position.
    pub fn get(&self, at: usize) -> Option<&HostState> {
        self.hosts.get(at).map(Arc::as_ref)
    }

    /// The host that registered first.
    pub fn first(&self) -> Option<&HostState> {
        self.hosts.first().map(Arc::as_ref)
    }

    /// Adds a host as the last one.
    pub fn push(&mut self, host: HostState) {
        self.hosts.push(Arc::new(host));
        // The next look-up makes it again: amortised over the scanned hosts, its cost does not grow with the list.
        let indexed = self.index.get().map(|index| index.len());
        if indexed.is_some_and(|indexed| self.hosts.len() > indexed + SCANNED) {
            self.index = OnceLock::new();
        }
    }

    /// Replaces the host at that position by a newer state of it.
    pub fn set(&mut self, at: usize, host: HostState) {
        self.hosts[at] = Arc::new(host);
    }

    /// Removes and returns the host with this id.
    pub fn remove(&mut self, id: HostId) -> Option<HostState> {
        let at = self.position_by_id(id)?;
        self.index = OnceLock::new();
        Some(Arc::unwrap_or_clone(self.hosts.remove(at)))
    }

    /// Keeps the hosts for which `keep` holds.
    pub fn retain(&mut self, keep: impl Fn(&HostState) -> bool) {
        self.index = OnceLock::new();
        self.hosts.retain(|host| keep(host));
    }

    /// Keeps the first `count` hosts.
    pub fn truncate(&mut self, count: usize) {
        if self.index.get().is_some_and(|index| index.len() > count) {
            self.index = OnceLock::new();
        }
        self.hosts.truncate(count);
    }

    /// The position of a host by its key.
    pub fn position(&self, infra_env: InfraEnvId, id: HostId) -> Option<usize> {
        let at = self.position_by_id(id)?;
        (self[at].record.infra_env_id == infra_env).then_some(at)
    }

    /// Whether the host at `at` and the one at `other_at` of `other` are one copy: neither was written since they
    /// were shared.
    pub fn is_shared(&self, at: usize, other: &Self, other_at: usize) -> bool {
        match (self.hosts.get(at), other.hosts.get(other_at)) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            _ => false,
        }
    }

    /// Replaces the host by the copy of `other`, so that both share it again.
    pub fn share(&mut self, at: usize, other: &Self, other_at: usize) {
        if let (Some(own), Some(other)) = (self.hosts.get_mut(at), other.hosts.get(other_at)) {
            *own = Arc::clone(other);
        }
    }
}

impl Index<usize> for HostList {
    type Output = HostState;

    fn index(&self, at: usize) -> &HostState {
        &self.hosts[at]
    }
}

impl IndexMut<usize> for HostList {
    fn index_mut(&mut self, at: usize) -> &mut HostState {
        Arc::make_mut(&mut self.hosts[at])
    }
}

impl From<Vec<HostState>> for HostList {
    fn from(hosts: Vec<HostState>) -> Self {
        hosts.into_iter().collect()
    }
}

impl FromIterator<HostState> for HostList {
    fn from_iter<I: IntoIterator<Item = HostState>>(hosts: I) -> Self {
        Self {
            hosts: hosts.into_iter().map(Arc::new).collect(),
            index: OnceLock::new(),
        }
    }
}

impl Extend<HostState> for HostList {
    fn extend<I: IntoIterator<Item = HostState>>(&mut self, hosts: I) {
        hosts.into_iter().for_each(|host| self.push(host));
    }
}

impl<'a> IntoIterator for &'a HostList {
    type Item = &'a HostState;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut HostList {
    type Item = &'a mut HostState;
    type IntoIter = IterMut<'a>;

    fn into_iter(self) -> IterMut<'a> {
        self.iter_mut()
    }
}

/// Positions of a list's hosts, sorted by id: reports about other hosts are sorted, too, and name nearly all of them.
#[derive(Debug)]
pub(crate) struct HostPositions(Vec<(HostId, usize)>);

impl HostPositions {
    pub(crate) fn new(hosts: &HostList) -> Self {
        let positions = hosts.iter().enumerate();
        let mut positions: Vec<_> = positions.map(|(at, host)| (host.record.id, at)).collect();
        positions.sort_unstable();
        Self(positions)
    }

    /// The hosts of a report that are in the list, with their positions.
    pub(crate) fn of_reaches<'a>(
        &'a self,
        reaches: &'a Reaches,
    ) -> impl Iterator<Item = (usize, Reach<'a>)> {
        let mut rest = self.0.iter().peekable();
        reaches.iter().filter_map(move |reach| {
            while rest.next_if(|(id, _)| *id < reach.host).is_some() {}
            // Not taken: a report may name a host twice.
            let known = rest.peek().filter(|(id, _)| *id == reach.host);
            known.map(|(_, at)| (*at, reach))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::host::Host;
    use model::ids::{HostId, InfraEnvId};
    use model::steps::{ConnectivityRemoteHost, ConnectivityReport};
    use uuid::Uuid;

    use super::{HostList, HostPositions, SCANNED};
    use crate::HostState;
    use crate::fixtures;
    use crate::snapshot::reach::Reaches;

    fn host(number: usize) -> HostState {
        HostState::new(Host {
            id: id(number),
            ..Host::default()
        })
    }

    fn id(number: usize) -> HostId {
        HostId(Uuid::from_u128(number as u128))
    }

    #[track_caller]
    fn assert_found(hosts: &HostList) {
        for at in 0..hosts.len() {
            assert_eq!(hosts.position_by_id(hosts[at].record.id), Some(at));
        }
        assert_eq!(hosts.position_by_id(id(usize::MAX)), None);
    }

    #[test]
    fn hosts_are_found_by_their_ids_after_every_change() {
        let mut hosts = HostList::default();
        for number in 0..4 * SCANNED {
            hosts.push(host(number));
            assert_found(&hosts);
        }
        hosts.remove(id(3)).unwrap();
        assert_found(&hosts);
        hosts.retain(|host| host.record.id.0.as_u128() % 7 > 0);
        assert_found(&hosts);
        hosts.truncate(2 * SCANNED);
        assert_found(&hosts);
        hosts.truncate(2 * SCANNED - 1);
        hosts.push(host(1000));
        assert_found(&hosts);
        let other = InfraEnvId(Uuid::from_u128(1));
        assert_eq!(hosts.position(other, id(1000)), None);
    }

    #[test]
    fn copies_share_the_index() {
        let mut hosts: HostList = (0..3 * SCANNED).map(host).collect();
        assert_found(&hosts);
        let index = Arc::clone(hosts.index.get().unwrap());
        for number in 0..SCANNED {
            hosts = hosts.clone();
            hosts.push(host(1000 + number));
            assert_found(&hosts);
            assert!(Arc::ptr_eq(hosts.index.get().unwrap(), &index));
        }
        hosts.push(host(2000));
        assert_found(&hosts);
        assert_eq!(hosts.index.get().unwrap().len(), hosts.len());
    }

    #[test]
    fn a_checkpoint_undoes_a_change_and_an_arrival() {
        let before: HostList = (0..3).map(host).collect();
        let mut after = before.clone();
        let known = after.checkpoint(id(1));
        after[1].record.bootstrap = true;
        after.restore(known);
        let new = after.checkpoint(id(9));
        after.push(host(9));
        after.restore(new);
        assert_eq!(after.len(), 3);
        assert!((0..3).all(|at| after.is_shared(at, &before, at)));
    }

    #[test]
    fn a_change_of_one_host_copies_that_host_alone() {
        let before = fixtures::snapshot(3, 2).hosts;
        let mut after = before.clone();
        after[1].record.role = None;
        let id = after[3].record.id;
        assert_eq!(after.by_id_mut(id).map(|host| host.record.id), Some(id));
        let shared: Vec<bool> = (0..5).map(|at| after.is_shared(at, &before, at)).collect();
        assert_eq!(shared, [true, false, true, false, true]);
        after.share(1, &before, 1);
        assert!(after.is_shared(1, &before, 1));
        assert_eq!(after[1].record, before[1].record);
    }

    #[test]
    fn reports_are_matched_with_the_hosts() {
        let hosts: HostList = [3, 1, 7].map(host).to_vec().into();
        let positions = HostPositions::new(&hosts);
        let remotes = [7, 2, 3, 9, 3].map(|number| ConnectivityRemoteHost {
            host_id: Some(id(number)),
            ..ConnectivityRemoteHost::default()
        });
        let reaches = Reaches::of(&ConnectivityReport {
            remote_hosts: remotes.to_vec(),
        });
        let found: Vec<usize> = positions.of_reaches(&reaches).map(|(at, _)| at).collect();
        assert_eq!(found, [0, 0, 2]);
    }
}
