//! Output to the terminal. A closed terminal does not stop a running service.

use std::io::{IsTerminal as _, Write as _};

/// Prints a line on standard output.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).ok();
}

/// Whether standard error is a terminal, which shows [`progress`].
pub(crate) fn is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Overwrites the progress line of a terminal; prints nothing without one.
pub(crate) fn progress(text: &str) {
    let mut out = std::io::stderr().lock();
    if out.is_terminal() {
        write!(out, "\r{text}\x1b[K")
            .and_then(|()| out.flush())
            .ok();
    }
}

/// Prints a warning, error or notice on standard error.
pub(crate) fn notice(text: &str) {
    writeln!(std::io::stderr().lock(), "atoll: {}", text.trim_end()).ok();
}

/// Prints an error on standard error as oc-mirror does.
pub(crate) fn error(text: &str) {
    writeln!(std::io::stderr().lock(), "error: {}", text.trim_end()).ok();
}

/// Prints a machine-readable line on standard error.
pub(crate) fn line(text: &str) {
    writeln!(std::io::stderr().lock(), "{text}").ok();
}

/// Formats bytes as MiB.
pub(crate) fn mib(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
    let mib = bytes as f64 / 1_048_576.0;
    format!("{mib:.1} MiB")
}
