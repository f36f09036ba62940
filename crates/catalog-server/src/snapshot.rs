//! The catalog that is served at this moment.

use std::sync::Arc;

use catalog::cache::CatalogCache;
use tokio::sync::watch;

/// What requests are answered from. Another catalog can take its place at any time: replies that have begun end with
/// the one that they began with.
#[derive(Debug, Clone)]
pub struct ServedCatalog {
    current: Arc<watch::Sender<Option<Arc<CatalogCache>>>>,
}

impl ServedCatalog {
    /// A place without a catalog yet.
    pub fn new() -> Self {
        Self {
            current: Arc::new(watch::Sender::new(None)),
        }
    }

    /// The catalog; none before the first is there.
    pub fn current(&self) -> Option<Arc<CatalogCache>> {
        self.current.borrow().clone()
    }

    /// Serves `cache` from now on.
    pub fn replace(&self, cache: Arc<CatalogCache>) {
        self.current.send_replace(Some(cache));
    }

    /// Tells whenever another catalog has taken the place.
    pub fn changes(&self) -> watch::Receiver<Option<Arc<CatalogCache>>> {
        self.current.subscribe()
    }
}

impl Default for ServedCatalog {
    fn default() -> Self {
        Self::new()
    }
}
