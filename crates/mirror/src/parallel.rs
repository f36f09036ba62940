//! Work at several registries at the same time.

use std::collections::BTreeMap;

use futures_util::stream::{self, Stream, StreamExt as _};
use tokio::sync::Semaphore;

/// Concurrency limit over all registries: each transfer holds about a mebibyte.
const ALL: usize = 32;

/// Concurrency limits of registries.
pub(crate) struct RegistryLimit {
    /// Concurrency limit of one registry.
    each: usize,
    all: Semaphore,
}

impl RegistryLimit {
    /// At most `each` at a time at one registry.
    pub(crate) fn new(each: usize) -> Self {
        let each = each.max(1);
        Self {
            each,
            all: Semaphore::new(ALL.max(each)),
        }
    }

    /// Runs the work for all items; yields results with the items' numbers, in any order.
    pub(crate) fn work<'a, I, K: Ord, R>(
        &'a self,
        items: impl IntoIterator<Item = I>,
        registry: impl Fn(&I) -> K,
        work: impl AsyncFn(I) -> R + Copy + 'a,
    ) -> impl Stream<Item = (usize, R)>
    where
        I: 'a,
        R: 'a,
    {
        let mut groups: BTreeMap<K, Vec<(usize, I)>> = BTreeMap::new();
        for (number, item) in items.into_iter().enumerate() {
            let group = groups.entry(registry(&item)).or_default();
            group.push((number, item));
        }
        let groups = groups.into_values().map(|group| {
            let works = stream::iter(group).map(move |(number, item)| async move {
                // The semaphore is never closed.
                let _permit = self.all.acquire().await;
                (number, work(item).await)
            });
            Box::pin(works.buffer_unordered(self.each))
        });
        stream::select_all(groups)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Highest concurrency at each registry, and in all.
    async fn most(items: &[&str], each: usize) -> BTreeMap<String, usize> {
        let (now, most) = (RefCell::default(), RefCell::new(BTreeMap::new()));
        let count = |name: &str, change: isize| {
            let mut now: std::cell::RefMut<'_, BTreeMap<String, usize>> = now.borrow_mut();
            let count = now.entry(name.to_owned()).or_default();
            *count = count.saturating_add_signed(change);
            let mut most = most.borrow_mut();
            let known: &mut usize = most.entry(name.to_owned()).or_default();
            *known = (*known).max(*count);
        };
        let work = async |name: &&str| {
            count(name, 1);
            count("all", 1);
            tokio::task::yield_now().await;
            count(name, -1);
            count("all", -1);
            (*name).to_owned()
        };
        let limit = RegistryLimit::new(each);
        let done: BTreeMap<_, _> = limit
            .work(items, |it| (**it).to_owned(), &work)
            .collect()
            .await;
        assert!(
            done.into_values()
                .eq(items.iter().map(|it| (*it).to_owned()))
        );
        most.into_inner()
    }

    #[tokio::test]
    async fn each_registry_has_its_own_limit() {
        let most = most(&["a", "a", "a", "a", "b", "b", "b", "c"], 2).await;
        let expected = [("a", 2), ("all", 5), ("b", 2), ("c", 1)];
        assert!(
            most.iter()
                .map(|(name, most)| (name.as_str(), *most))
                .eq(expected)
        );
    }

    #[tokio::test]
    async fn all_together_have_a_limit() {
        let items: Vec<_> = ["a", "b", "c", "d", "e"]
            .iter()
            .flat_map(|it| [*it; 20])
            .collect();
        let many = most(&items, 10).await;
        assert_eq!((many["a"], many["all"]), (10, ALL));
        let one = most(&["a"; 80], 50).await;
        assert_eq!(one["all"], 50);
    }
}
