//! How many preparations one registry can hold up.
//!
//! Anybody can name a registry that accepts connections and never answers. Its preparations wait until their deadlines;
//! without a bound for each registry they would take all slots of this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Preparations per registry: as many as run the installer by default, and as many again that read meanwhile.
const PER_REGISTRY: usize = 4;

/// Preparations under way, by registry host.
#[derive(Debug, Default)]
pub(super) struct Admission(Arc<Mutex<HashMap<String, usize>>>);

/// The right to one preparation; it ends with this.
#[derive(Debug)]
pub(crate) struct Admitted {
    counts: Arc<Mutex<HashMap<String, usize>>>,
    registry: String,
}

impl Admission {
    /// Admits one more preparation of `registry`, unless there are as many as may be.
    pub(super) fn admit(&self, registry: &str) -> Option<Admitted> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(registry.to_owned()).or_default();
        if *count == PER_REGISTRY {
            return None;
        }
        *count += 1;
        Some(Admitted {
            counts: Arc::clone(&self.0),
            registry: registry.to_owned(),
        })
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.registry) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.registry);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_has_its_bound_and_others_theirs() {
        let admission = Admission::default();
        let mut slow: Vec<_> = (0..PER_REGISTRY).map(|_| admission.admit("slow")).collect();
        assert!(slow.iter().all(Option::is_some));
        assert!(admission.admit("slow").is_none());
        assert!(admission.admit("other").is_some());
        slow.pop();
        assert!(admission.admit("slow").is_some());
        slow.clear();
        assert!(admission.0.lock().unwrap().is_empty());
    }
}
