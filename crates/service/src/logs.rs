//! Structured logs on standard error, and the access log on standard output. No line has a secret of a URL.

mod masked;
mod queue;

use std::io::IsTerminal;

use masked::Masked;
use queue::LineQueue;
pub(crate) use queue::finish;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::access_log;

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
    let filter: Targets = level.parse().unwrap_or(info);
    let filter = filter.with_target(access_log::TARGET, LevelFilter::OFF);
    let lines = tracing_subscriber::fmt::layer()
        // The reader of the log may be killed; an error message on the same broken pipe would panic.
        .log_internal_errors(false)
        .with_writer(Masked(std::io::stderr));
    let is_text =
        |is_terminal| format == LogFormat::Text || (format == LogFormat::Auto && is_terminal);
    let lines = if is_text(std::io::stderr().is_terminal()) {
        lines.with_target(false).boxed()
    } else {
        lines.json().flatten_event(true).boxed()
    };
    let accesses = tracing_subscriber::fmt::layer()
        .log_internal_errors(false)
        .with_writer(Masked(LineQueue));
    let accesses = if is_text(std::io::stdout().is_terminal()) {
        accesses.with_target(false).boxed()
    } else {
        accesses.json().flatten_event(true).boxed()
    };
    // Independent of the level of the log.
    let of_accesses = Targets::new().with_target(access_log::TARGET, LevelFilter::INFO);
    let log = tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .with(accesses.with_filter(of_accesses));
    log.try_init().ok();
}
