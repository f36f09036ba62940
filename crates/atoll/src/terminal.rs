//! Output to the terminal. A closed terminal does not stop a running service.

use std::io::{IsTerminal as _, Write as _};
use std::sync::LazyLock;

use indicatif::{ProgressBar, ProgressStyle};

/// The progress line of standard error, cut to the width of the terminal; hidden without one.
static PROGRESS: LazyLock<ProgressBar> = LazyLock::new(|| {
    let line = ProgressBar::no_length();
    if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
        line.set_style(style);
    }
    line.finish_and_clear();
    line
});

/// Prints a line on standard output.
pub(crate) fn print(text: &str) {
    replace_progress(|| {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{text}").and_then(|()| out.flush()).ok();
    });
}

/// Whether standard error is a terminal.
pub(crate) fn is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Whether [`progress`] is visible.
pub(crate) fn shows_progress() -> bool {
    !PROGRESS.is_hidden()
}

/// Overwrites the progress line of a terminal; prints nothing without one.
pub(crate) fn progress(text: &str) {
    PROGRESS.set_message(text.to_owned());
    if PROGRESS.is_finished() {
        PROGRESS.reset();
    }
}

/// Removes the progress line until its next text.
pub(crate) fn clear_progress() {
    if !PROGRESS.is_finished() {
        PROGRESS.finish_and_clear();
    }
}

/// Prints a warning, error or notice on standard error.
pub(crate) fn notice(text: &str) {
    line(&format!("atoll: {}", text.trim_end()));
}

/// Prints an error on standard error as oc-mirror does.
pub(crate) fn error(text: &str) {
    line(&format!("error: {}", text.trim_end()));
}

/// Prints a line on standard error.
pub(crate) fn line(text: &str) {
    replace_progress(|| {
        writeln!(std::io::stderr().lock(), "{text}").ok();
    });
}

/// Prints with the progress line removed.
fn replace_progress(print: impl FnOnce()) {
    clear_progress();
    PROGRESS.suspend(print);
}
