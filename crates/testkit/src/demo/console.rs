//! Progress on the terminal: one numbered line for each thing that was done, with the time since the start.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// Progress output.
#[derive(Debug)]
pub struct Console {
    started: Instant,
    number: AtomicU32,
    is_quiet: bool,
}

impl Console {
    /// Starts the clock; a quiet console shows only numbered lines, no details below them.
    pub fn new(is_quiet: bool) -> Self {
        Self {
            started: Instant::now(),
            number: AtomicU32::new(0),
            is_quiet,
        }
    }

    /// A thing that was done.
    pub fn step(&self, text: impl AsRef<str>) {
        let number = self.number.fetch_add(1, Ordering::Relaxed) + 1;
        print(&format!(
            "[{number:>2}] {} {}",
            self.elapsed(),
            text.as_ref()
        ));
    }

    /// More about the last line.
    pub fn detail(&self, text: impl AsRef<str>) {
        if !self.is_quiet {
            for line in text.as_ref().lines() {
                print(&format!("           {line}"));
            }
        }
    }

    /// Something that happened while waiting.
    pub fn event(&self, text: impl AsRef<str>) {
        if !self.is_quiet {
            print(&format!("     {} {}", self.elapsed(), text.as_ref()));
        }
    }

    fn elapsed(&self) -> String {
        let seconds = self.started.elapsed().as_secs();
        format!("{:02}:{:02}", seconds / 60, seconds % 60)
    }
}

#[expect(clippy::print_stdout, reason = "progress is what this program is for")]
fn print(line: &str) {
    println!("{line}");
}
