//! Connections or streams that clients hold open, by their holders.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// Things that are open, each of one holder.
#[derive(Debug)]
pub(super) struct HeldTable<K, T> {
    total: usize,
    /// Only holders that have a thing, the newest last: the table is never longer than the total.
    by_holder: HashMap<K, Vec<Arc<T>>>,
}

impl<K, T> Default for HeldTable<K, T> {
    fn default() -> Self {
        Self {
            total: 0,
            by_holder: HashMap::new(),
        }
    }
}

impl<K: Clone + Eq + Hash, T> HeldTable<K, T> {
    /// All things.
    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// The things of a holder, the newest last.
    pub(super) fn of(&self, holder: &K) -> &[Arc<T>] {
        self.by_holder.get(holder).map_or(&[], Vec::as_slice)
    }

    /// The things of each holder.
    pub(super) fn holders(&self) -> impl Iterator<Item = (&K, &[Arc<T>])> {
        let holders = self.by_holder.iter();
        holders.map(|(holder, its)| (holder, its.as_slice()))
    }

    pub(super) fn insert(&mut self, holder: K, thing: Arc<T>) {
        self.by_holder.entry(holder).or_default().push(thing);
        self.total += 1;
    }

    /// Removes a thing; without effect if it is not there any more.
    pub(super) fn remove(&mut self, holder: &K, thing: &Arc<T>) {
        let Some(its) = self.by_holder.get_mut(holder) else {
            return;
        };
        let Some(index) = its.iter().position(|one| Arc::ptr_eq(one, thing)) else {
            return;
        };
        its.remove(index);
        if its.is_empty() {
            self.by_holder.remove(holder);
        }
        self.total -= 1;
    }
}
