//! Snapshot of the served catalog, swapped atomically by reloads.

use std::sync::Arc;

use catalog::cache::CatalogCache;
use tokio::sync::watch;

/// Handle to the current cache. A reload replaces it at any time; a reply in progress keeps the cache that it started
/// with.
#[derive(Debug, Clone)]
pub struct ServedCatalog {
    current: Arc<watch::Sender<Option<Arc<CatalogCache>>>>,
}

impl ServedCatalog {
    /// A handle without a cache.
    pub fn new() -> Self {
        Self {
            current: Arc::new(watch::Sender::new(None)),
        }
    }

    /// The current cache; `None` before the first load.
    pub fn current(&self) -> Option<Arc<CatalogCache>> {
        self.current.borrow().clone()
    }

    /// Swaps in `cache`.
    pub fn replace(&self, cache: Arc<CatalogCache>) {
        self.current.send_replace(Some(cache));
    }

    /// Watches for reloads.
    pub fn changes(&self) -> watch::Receiver<Option<Arc<CatalogCache>>> {
        self.current.subscribe()
    }
}

impl Default for ServedCatalog {
    fn default() -> Self {
        Self::new()
    }
}
