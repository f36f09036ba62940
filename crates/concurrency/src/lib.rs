//! What tasks share: a mutex for each key, calls that are coalesced, files that are reloaded when they change.
//!
//! Nothing here knows what is locked, called or read. The one invariant: memory does not grow with the number of keys
//! that were ever used.

mod keyed_mutex;
mod single_flight;
mod watched_file;

pub use keyed_mutex::KeyedMutex;
pub use single_flight::SingleFlight;
pub use watched_file::{BoxError, WatchedFile};
