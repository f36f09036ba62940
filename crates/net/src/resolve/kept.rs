//! Answers of the last moments; who asks for the same name at the same time waits for one answer.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::error::Error;

type Found = Result<Vec<IpAddr>, Error>;
/// Locked while its name is being asked for. A caller that goes away hands the question to the next.
type Slot = Arc<tokio::sync::Mutex<Option<Answer>>>;

/// A server speaks with few others; beyond this, what is old is dropped.
const MAX_NAMES: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Kept(Mutex<HashMap<String, Slot>>);

#[derive(Debug)]
struct Answer {
    found: Found,
    at: Instant,
    age: Duration,
}

impl Kept {
    /// The answer on `name`: kept, being made for somebody else, or made by `ask`, which also tells how long to keep
    /// it.
    pub(super) async fn answer<F>(&self, name: &str, ask: impl FnOnce() -> F) -> Found
    where
        F: Future<Output = (Found, Duration)>,
    {
        let arrived = Instant::now();
        let slot = self.slot(name);
        let mut slot = slot.lock().await;
        if let Some(answer) = slot.as_ref()
            && (answer.at >= arrived || answer.at.elapsed() < answer.age)
        {
            return answer.found.clone();
        }
        let (found, age) = ask().await;
        *slot = Some(Answer {
            found: found.clone(),
            at: Instant::now(),
            age,
        });
        found
    }

    fn slot(&self, name: &str) -> Slot {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.get(name) {
            return Arc::clone(slot);
        }
        if slots.len() >= MAX_NAMES {
            slots.retain(|_, slot| is_needed(slot));
        }
        let slot = Slot::default();
        // Full of names that are wanted right now: this one is asked for without company.
        if slots.len() < MAX_NAMES {
            slots.insert(name.to_owned(), Arc::clone(&slot));
        }
        slot
    }
}

fn is_needed(slot: &Slot) -> bool {
    let Ok(answer) = slot.try_lock() else {
        return true;
    };
    let is_fresh = |answer: &Answer| answer.at.elapsed() < answer.age;
    Arc::strong_count(slot) > 1 || answer.as_ref().is_some_and(is_fresh)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn old_names_make_room() {
        let kept = Kept::default();
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
        assert!(slots.contains_key("host-0"), "it is still good");
    }
}
