//! Graceful shutdown: its signals.

use std::io::Read;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::error::ResultExt as _;

/// A token that is cancelled by SIGTERM or SIGINT.
///
/// Errors: when the signal handlers cannot be installed.
pub fn on_signals() -> Result<CancellationToken, Error> {
    let token = CancellationToken::new();
    let doing = "installing signal handlers";
    let mut terminate = signal(SignalKind::terminate()).doing(doing)?;
    let mut interrupt = signal(SignalKind::interrupt()).doing(doing)?;
    let cancelled = token.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => tracing::info!("SIGTERM: draining in-flight requests"),
            _ = interrupt.recv() => tracing::info!("SIGINT: draining in-flight requests"),
        }
        cancelled.cancel();
    });
    Ok(token)
}

/// Cancels `token` when standard input ends.
///
/// A supervisor holds the other end of that pipe: when it dies, however it dies, its children end too.
pub fn on_stdin_end(token: CancellationToken) {
    std::thread::spawn(move || {
        let mut sink = [0_u8; 64];
        let mut stdin = std::io::stdin().lock();
        while matches!(stdin.read(&mut sink), Ok(n) if n > 0) {}
        // Before the log line: the supervisor read the log, so that writing may fail.
        token.cancel();
        tracing::info!("supervisor ended: draining in-flight requests");
    });
}
