//! Lines for the person at the terminal. A closed terminal is no reason to stop a running service.

use std::io::{IsTerminal as _, Write as _};

/// A line on standard output.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).ok();
}

/// Whether somebody sees [`progress`].
pub(crate) fn is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// How far it is, in the same line of a terminal; nothing when nobody looks.
pub(crate) fn progress(text: &str) {
    let mut out = std::io::stderr().lock();
    if out.is_terminal() {
        write!(out, "\r{text}\x1b[K")
            .and_then(|()| out.flush())
            .ok();
    }
}

/// A line on standard error.
pub(crate) fn notice(text: &str) {
    writeln!(std::io::stderr().lock(), "atoll: {}", text.trim_end()).ok();
}

/// Why the program ends, on standard error, where it is called by the name of another one.
pub(crate) fn error(text: &str) {
    writeln!(std::io::stderr().lock(), "error: {}", text.trim_end()).ok();
}

/// A line on standard error, for programs.
pub(crate) fn line(text: &str) {
    writeln!(std::io::stderr().lock(), "{text}").ok();
}

/// An amount of bytes, for the eye.
pub(crate) fn mib(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "for the eye")]
    let mib = bytes as f64 / 1_048_576.0;
    format!("{mib:.1} MiB")
}
