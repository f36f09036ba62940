//! Caches DNS answers for a few seconds and coalesces concurrent lookups of one name (single-flight).
//!
//! hickory's own cache has one entry per server and record type: a name of the second server would cost a query to the
//! first one with each lookup.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hickory_resolver::proto::rr::Name;
use moka::sync::Cache;
use tokio::sync::Mutex;

use super::error::Error;

type LookupResult = Result<Vec<IpAddr>, Error>;
/// Locked during the lookup of its name. When its caller is cancelled, the next one takes over.
type CacheSlot = Arc<Mutex<Option<(Instant, LookupResult)>>>;

/// Limit of names; lookups of names beyond it are not shared.
const MAX_NAMES: u64 = 1024;

#[derive(Debug)]
pub(super) struct AnswerCache {
    slots: Cache<Name, CacheSlot>,
    max_age: Duration,
    absent_age: Duration,
}

impl AnswerCache {
    /// Caches addresses for `max_age`, and the absence of a name for `absent_age`.
    pub(super) fn new(max_age: Duration, absent_age: Duration) -> Self {
        Self {
            slots: Cache::new(MAX_NAMES),
            max_age,
            absent_age,
        }
    }

    /// The answer for `name`: cached, of a lookup in progress, or of `lookup`.
    pub(super) async fn answer(
        &self,
        name: &Name,
        lookup: impl Future<Output = LookupResult>,
    ) -> LookupResult {
        let arrived = Instant::now();
        let slot = self.slots.get_with_by_ref(name, CacheSlot::default);
        let mut slot = slot.lock().await;
        if let Some((at, found)) = slot.as_ref()
            && (*at >= arrived || at.elapsed() < self.age(found))
        {
            return found.clone();
        }
        let found = lookup.await;
        *slot = Some((Instant::now(), found.clone()));
        found
    }

    fn age(&self, found: &LookupResult) -> Duration {
        match found {
            Ok(_) => self.max_age,
            Err(error) if error.is_unknown() => self.absent_age,
            Err(_) => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::str::FromStr as _;

    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn concurrent_lookups_are_coalesced() {
        // Nothing is cached after the lookup that all of them wait for.
        let cache = AnswerCache::new(Duration::ZERO, Duration::ZERO);
        let name = Name::from_str("api").unwrap();
        let (lookups, gate) = (Cell::new(0), Semaphore::new(0));
        let lookup = async || {
            lookups.set(lookups.get() + 1);
            assert!(gate.acquire().await.is_err(), "closed");
            Ok(Vec::new())
        };
        let callers = (0..50).map(|_| Box::pin(cache.answer(&name, lookup())));
        let mut callers: Vec<_> = callers.collect();
        for caller in &mut callers {
            assert!(futures_util::poll!(caller.as_mut()).is_pending());
        }
        gate.close();
        for caller in callers {
            caller.await.unwrap();
        }
        assert_eq!(lookups.get(), 1);
        cache.answer(&name, lookup()).await.unwrap();
        assert_eq!(lookups.get(), 2, "a later caller");
    }

    #[tokio::test]
    async fn names_beyond_the_limit_are_evicted() {
        let cache = AnswerCache::new(Duration::MAX, Duration::ZERO);
        let used = Name::from_str("used").unwrap();
        let mut lookups = 0;
        for n in 0..3 * MAX_NAMES {
            let name = Name::from_str(&format!("host-{n}")).unwrap();
            let found = cache.answer(&name, async { Ok(Vec::new()) }).await;
            assert!(found.unwrap().is_empty());
            let counted = async {
                lookups += 1;
                Ok(Vec::new())
            };
            cache.answer(&used, counted).await.unwrap();
        }
        cache.slots.run_pending_tasks();
        assert!(cache.slots.entry_count() <= MAX_NAMES);
        assert_eq!(lookups, 1, "a name in use is kept");
    }
}
