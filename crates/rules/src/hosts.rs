//! The hosts of a snapshot: shared between copies until one of them changes a host.
//!
//! A copy of a snapshot costs one pointer per host, so that a change of one host does not copy the others.

use std::ops::{Index, IndexMut};
use std::slice;
use std::sync::Arc;

use model::ids::{HostId, InfraEnvId};

use crate::host_state::HostState;

/// Hosts in the order of their registration, copied on write.
#[derive(Debug, Clone, Default)]
pub struct HostList(Vec<Arc<HostState>>);

/// Iterates over hosts.
pub type Iter<'a> =
    std::iter::Map<slice::Iter<'a, Arc<HostState>>, fn(&Arc<HostState>) -> &HostState>;
/// Iterates over hosts to change; each becomes a copy of its own when it is shared.
pub type IterMut<'a> =
    std::iter::Map<slice::IterMut<'a, Arc<HostState>>, fn(&mut Arc<HostState>) -> &mut HostState>;

impl HostList {
    /// The hosts, in order.
    pub fn iter(&self) -> Iter<'_> {
        self.0.iter().map(Arc::as_ref)
    }

    /// The hosts to change, in order. Every host that is visited stops being shared.
    pub fn iter_mut(&mut self) -> IterMut<'_> {
        self.0.iter_mut().map(Arc::make_mut)
    }

    /// The host with this id, to change; unlike [`Self::iter_mut`], the others stay shared.
    pub fn by_id_mut(&mut self, id: HostId) -> Option<&mut HostState> {
        let own = self.0.iter_mut().find(|host| host.record.id == id)?;
        Some(Arc::make_mut(own))
    }

    /// The number of hosts.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The host at that position.
    pub fn get(&self, at: usize) -> Option<&HostState> {
        self.0.get(at).map(Arc::as_ref)
    }

    /// The host that registered first.
    pub fn first(&self) -> Option<&HostState> {
        self.0.first().map(Arc::as_ref)
    }

    /// Adds a host as the last one.
    pub fn push(&mut self, host: HostState) {
        self.0.push(Arc::new(host));
    }

    /// Removes and returns the host with this id.
    pub fn remove(&mut self, id: HostId) -> Option<HostState> {
        let at = self.0.iter().position(|host| host.record.id == id)?;
        Some(Arc::unwrap_or_clone(self.0.remove(at)))
    }

    /// Keeps the hosts for which `keep` holds.
    pub fn retain(&mut self, keep: impl Fn(&HostState) -> bool) {
        self.0.retain(|host| keep(host));
    }

    /// Keeps the first `count` hosts.
    pub fn truncate(&mut self, count: usize) {
        self.0.truncate(count);
    }

    /// The position of a host by its key.
    pub fn position(&self, infra_env: InfraEnvId, id: HostId) -> Option<usize> {
        self.iter()
            .position(|host| host.record.id == id && host.record.infra_env_id == infra_env)
    }

    /// Whether the host at `at` and the one at `other_at` of `other` are one copy: neither was written since they
    /// were shared.
    pub fn is_shared(&self, at: usize, other: &Self, other_at: usize) -> bool {
        match (self.0.get(at), other.0.get(other_at)) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            _ => false,
        }
    }

    /// Replaces the host by the copy of `other`, so that both share it again.
    pub fn share(&mut self, at: usize, other: &Self, other_at: usize) {
        if let (Some(own), Some(other)) = (self.0.get_mut(at), other.0.get(other_at)) {
            *own = Arc::clone(other);
        }
    }
}

impl Index<usize> for HostList {
    type Output = HostState;

    fn index(&self, at: usize) -> &HostState {
        &self.0[at]
    }
}

impl IndexMut<usize> for HostList {
    fn index_mut(&mut self, at: usize) -> &mut HostState {
        Arc::make_mut(&mut self.0[at])
    }
}

impl From<Vec<HostState>> for HostList {
    fn from(hosts: Vec<HostState>) -> Self {
        hosts.into_iter().collect()
    }
}

impl FromIterator<HostState> for HostList {
    fn from_iter<I: IntoIterator<Item = HostState>>(hosts: I) -> Self {
        Self(hosts.into_iter().map(Arc::new).collect())
    }
}

impl Extend<HostState> for HostList {
    fn extend<I: IntoIterator<Item = HostState>>(&mut self, hosts: I) {
        self.0.extend(hosts.into_iter().map(Arc::new));
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

#[cfg(test)]
mod tests {
    use crate::fixtures;

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
}
