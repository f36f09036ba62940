//! Lines for the person at the terminal. A closed terminal is no reason to stop a running service.

use std::io::Write as _;

/// A line on standard output.
pub(crate) fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).ok();
}

/// A line on standard error.
pub(crate) fn problem(text: &str) {
    writeln!(std::io::stderr().lock(), "atoll: {}", text.trim_end()).ok();
}
