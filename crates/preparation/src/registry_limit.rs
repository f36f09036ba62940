//! Concurrency limit of preparations per registry.
//!
//! A cluster may name a registry that accepts connections and never responds. Its preparations wait for their timeouts;
//! without a limit per registry they would exhaust the process's preparation slots.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Preparations per registry: twice the default number of concurrent installers, so that as many read meanwhile.
const PER_REGISTRY: usize = 4;

/// Running preparations, by registry host.
#[derive(Debug, Default)]
pub(crate) struct RegistryLimit(Arc<Mutex<HashMap<String, usize>>>);

/// Permit of one preparation; released on drop.
#[derive(Debug)]
pub struct PreparationPermit {
    counts: Arc<Mutex<HashMap<String, usize>>>,
    registry: String,
}

impl RegistryLimit {
    /// A permit for `registry`; none at the limit.
    pub(crate) fn try_acquire(&self, registry: &str) -> Option<PreparationPermit> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(registry.to_owned()).or_default();
        if *count == PER_REGISTRY {
            return None;
        }
        *count += 1;
        Some(PreparationPermit {
            counts: Arc::clone(&self.0),
            registry: registry.to_owned(),
        })
    }
}

impl Drop for PreparationPermit {
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
    fn permits_are_limited_per_registry() {
        let limit = RegistryLimit::default();
        let mut slow: Vec<_> = (0..PER_REGISTRY)
            .map(|_| limit.try_acquire("slow"))
            .collect();
        assert!(slow.iter().all(Option::is_some));
        assert!(limit.try_acquire("slow").is_none());
        assert!(limit.try_acquire("other").is_some());
        slow.pop();
        assert!(limit.try_acquire("slow").is_some());
        slow.clear();
        assert!(limit.0.lock().unwrap().is_empty());
    }
}
