//! Structured logs on standard error.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Sets the process's log up. `level` is a filter such as `info` or `info,sqlx=warn`; text on a terminal, one
/// JSON object a line elsewhere. A second call does nothing: tests start several servers in one process.
pub fn init(level: &str) {
    let filter = EnvFilter::try_new(level).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // Who reads the log may be killed; complaining about that on the same broken pipe would be a panic.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() {
        builder.with_target(false).try_init().ok();
    } else {
        builder.json().flatten_event(true).try_init().ok();
    }
}
