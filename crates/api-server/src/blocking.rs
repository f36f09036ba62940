//! Work that takes longer than other clients' polls should wait.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Units: bytes of JSON above which parsing leaves the runtime: about a millisecond of it.
pub(crate) const LARGE_TEXT: usize = 64 * 1024;

/// Runs `work` here, with the other tasks of this thread moved to another one when it is `long`.
pub(crate) fn unless_short<T>(long: bool, work: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
    match flavor {
        Ok(RuntimeFlavor::MultiThread) if long => tokio::task::block_in_place(work),
        _ => work(),
    }
}
