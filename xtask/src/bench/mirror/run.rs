//! A command, and its cost.

use std::fmt;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::bench::process::{TICKS_PER_SECOND, children_ticks, peak_kib};

/// Interval of the memory samples.
const POLL: Duration = Duration::from_millis(10);
/// Units: lines. Printed log of a failed command.
const LOG_TAIL: usize = 10;

/// Cost of a command.
#[derive(Debug)]
pub(super) struct CommandCost {
    seconds: f64,
    cpu_seconds: f64,
    peak_mib: f64,
}

impl CommandCost {
    /// Runs a command until it exits; its output goes to the file `log`.
    pub(super) fn of(mut command: Command, log: &Path) -> Result<Self> {
        let file = File::create(log)?;
        let (ticks, began) = (children_ticks()?, Instant::now());
        let mut child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()?;
        let mut peak = 0;
        let status = loop {
            peak = peak.max(peak_kib(child.id()).unwrap_or(0));
            if let Some(status) = child.try_wait()? {
                break status;
            }
            std::thread::sleep(POLL);
        };
        let seconds = began.elapsed().as_secs_f64();
        let ticks = u32::try_from(children_ticks()? - ticks)?;
        if !status.success() {
            let printed = fs::read(log)?;
            let printed = String::from_utf8_lossy(&printed);
            let lines: Vec<_> = printed.lines().collect();
            let last = lines[lines.len().saturating_sub(LOG_TAIL)..].join("\n");
            ensure!(status.success(), "{status}: {last}");
        }
        Ok(Self {
            seconds,
            cpu_seconds: f64::from(ticks) / TICKS_PER_SECOND,
            peak_mib: f64::from(peak) / 1024.0,
        })
    }
}

impl fmt::Display for CommandCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seconds,
            cpu_seconds,
            peak_mib,
        } = self;
        write!(f, "{seconds:.2} / {cpu_seconds:.2} / {peak_mib:.0}")
    }
}
