//! Concurrency primitives: a mutex for each key, single-flight calls, batched queries, a bounded cache, and files that are
//! reloaded when they change.
//!
//! The one invariant: memory does not grow with the number of keys that were ever used.

mod batch_loader;
mod bounded_cache;
mod keyed_mutex;
mod single_flight;
mod watched_file;

pub use batch_loader::BatchLoader;
pub use bounded_cache::{BoundedCache, WithSize};
pub use keyed_mutex::KeyedMutex;
pub use single_flight::SingleFlight;
pub use watched_file::{BoxError, WatchedFile};
