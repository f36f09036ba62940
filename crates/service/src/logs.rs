//! Structured logs on standard error.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Format of log lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    #[default]
    Auto,
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Initialises the process's log. `level` is a filter such as `info` or `info,sqlx=warn`. Idempotent: tests start
/// several servers in one process.
pub fn init(level: &str, format: LogFormat) {
    let filter = EnvFilter::try_new(level).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // The reader of the log may be killed; an error message on the same broken pipe would panic.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    let is_terminal = std::io::stderr().is_terminal();
    let is_text = format == LogFormat::Text || (format == LogFormat::Auto && is_terminal);
    if is_text {
        let builder = builder.with_ansi(is_terminal);
        builder.with_target(false).try_init().ok();
    } else {
        builder.json().flatten_event(true).try_init().ok();
    }
}
