//! Caches DNS answers for a few seconds and coalesces concurrent lookups of one name (single-flight).

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::error::Error;

type LookupResult = Result<Vec<IpAddr>, Error>;
/// Locked during the lookup of its name. When its caller is cancelled, the next one takes over.
type CacheSlot = Arc<tokio::sync::Mutex<Option<CachedAnswer>>>;

/// Limit of names; beyond it, expired ones are evicted.
const MAX_NAMES: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct AnswerCache(Mutex<HashMap<String, CacheSlot>>);

#[derive(Debug)]
struct CachedAnswer {
    found: LookupResult,
    at: Instant,
    age: Duration,
}

impl AnswerCache {
    /// The answer for `name`: cached, of a lookup in progress, or of `lookup`, which returns its time to live, too.
    pub(super) async fn answer<F>(&self, name: &str, lookup: impl FnOnce() -> F) -> LookupResult
    where
        F: Future<Output = (LookupResult, Duration)>,
    {
        let arrived = Instant::now();
        let slot = self.slot(name);
        let mut slot = slot.lock().await;
        if let Some(answer) = slot.as_ref()
            && (answer.at >= arrived || answer.at.elapsed() < answer.age)
        {
            return answer.found.clone();
        }
        let (found, age) = lookup().await;
        *slot = Some(CachedAnswer {
            found: found.clone(),
            at: Instant::now(),
            age,
        });
        found
    }

    fn slot(&self, name: &str) -> CacheSlot {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.get(name) {
            return Arc::clone(slot);
        }
        if slots.len() >= MAX_NAMES {
            slots.retain(|_, slot| is_needed(slot));
        }
        let slot = CacheSlot::default();
        // Full of names in use: this lookup is not shared.
        if slots.len() < MAX_NAMES {
            slots.insert(name.to_owned(), Arc::clone(&slot));
        }
        slot
    }
}

fn is_needed(slot: &CacheSlot) -> bool {
    let Ok(answer) = slot.try_lock() else {
        return true;
    };
    let is_fresh = |answer: &CachedAnswer| answer.at.elapsed() < answer.age;
    Arc::strong_count(slot) > 1 || answer.as_ref().is_some_and(is_fresh)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn expired_names_are_evicted() {
        let kept = AnswerCache::default();
        for n in 0..3 * MAX_NAMES {
            let name = format!("host-{n}");
            let age = if n == 0 {
                Duration::MAX
            } else {
                Duration::ZERO
            };
            let found = kept.answer(&name, || async { (Ok(Vec::new()), age) }).await;
            assert!(found.unwrap().is_empty());
        }
        let slots = kept.0.lock().unwrap();
        assert!(slots.len() <= MAX_NAMES, "{}", slots.len());
        assert!(slots.contains_key("host-0"), "not expired");
    }
}
