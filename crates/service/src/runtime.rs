//! The runtime of commands that talk to servers.

use crate::{Error, ResultExt as _};

/// Runs a future to its end, on this thread.
///
/// Errors: the system refuses the resources of a runtime.
pub fn block_on<T>(future: impl Future<Output = T>) -> Result<T, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .doing("starting the runtime")?;
    Ok(runtime.block_on(future))
}
