//! Structured logs on standard error.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// How a line of the log looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// Text on a terminal, JSON elsewhere.
    #[default]
    Fitting,
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Sets the process's log up. `level` is a filter such as `info` or `info,sqlx=warn`. A second call does nothing:
/// tests start several servers in one process.
pub fn init(level: &str, format: Format) {
    let filter = EnvFilter::try_new(level).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // Who reads the log may be killed; complaining about that on the same broken pipe would be a panic.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    let is_terminal = std::io::stderr().is_terminal();
    let is_text = format == Format::Text || (format == Format::Fitting && is_terminal);
    if is_text {
        let builder = builder.with_ansi(is_terminal);
        builder.with_target(false).try_init().ok();
    } else {
        builder.json().flatten_event(true).try_init().ok();
    }
}
