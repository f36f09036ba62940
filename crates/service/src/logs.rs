//! Structured logs on standard error.

use std::io::IsTerminal;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

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
    let info = Targets::new().with_default(LevelFilter::INFO);
    let filter = level.parse().unwrap_or(info);
    let lines = tracing_subscriber::fmt::layer()
        // The reader of the log may be killed; an error message on the same broken pipe would panic.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    let is_terminal = std::io::stderr().is_terminal();
    let is_text = format == LogFormat::Text || (format == LogFormat::Auto && is_terminal);
    let lines = if is_text {
        lines.with_target(false).boxed()
    } else {
        lines.json().flatten_event(true).boxed()
    };
    let log = tracing_subscriber::registry().with(lines).with(filter);
    log.try_init().ok();
}
