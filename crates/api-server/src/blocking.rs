//! CPU-bound work that would delay other requests of the runtime.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Size of JSON above which parsing leaves the runtime, at about a millisecond. Units: bytes.
pub(crate) const LARGE_TEXT: usize = 64 * 1024;

/// Runs `work` on this thread; if it is `long`, the thread's other tasks move to another one (`block_in_place`).
pub(crate) fn unless_short<T>(long: bool, work: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
    match flavor {
        Ok(RuntimeFlavor::MultiThread) if long => tokio::task::block_in_place(work),
        _ => work(),
    }
}
