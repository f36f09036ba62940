//! Work that would delay other requests of the runtime: by the processor, or by files.

use model::Error;
use tokio::runtime::{Handle, RuntimeFlavor};

/// Size of JSON above which parsing leaves the runtime, at one or two milliseconds. Units: bytes. The usual reports of
/// hosts are shorter: a thread beside the runtime's costs more time than parsing them, and keeps its memory.
pub(crate) const LARGE_TEXT: usize = 256 << 10;

/// Runs `work` on this thread; if it is `long`, the thread's other tasks move to another one (`block_in_place`).
pub(crate) fn unless_short<T>(long: bool, work: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
    match flavor {
        Ok(RuntimeFlavor::MultiThread) if long => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// Runs `work` on the blocking pool.
///
/// Errors: those of `work`; Internal – it broke off.
pub(crate) async fn run<T: Send + 'static>(
    doing: &'static str,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(Error::internal(doing, error)))
}
