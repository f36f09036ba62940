//! Fault campaign: one run per fault, compared with a run without faults.

use std::fmt;
use std::io;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;

use crate::shim::{Fault, Shim, counts, failed, unsynced};

/// Environment variable with the folder of a driver.
pub const FOLDER: &str = "FAULTS_FOLDER";
/// ENOSPC and EIO. Source: Linux, errno.h.
const ERRORS: [i32; 2] = [28, 5];
/// Concurrent drivers per processor.
const WORKERS: usize = 4;
/// Lines of a failed driver's output to show.
const LINES: usize = 12;

/// Fault campaign of a store.
///
/// The driver is a test of the calling binary that uses the store in the folder of [`FOLDER`] and recovers from any
/// fault within its process. It may end by `abort`, like a crash.
#[derive(Debug)]
pub struct Campaign<S> {
    /// Name of the driver test.
    pub driver: &'static str,
    /// Text of the recovered folder's content, which must be the same after each run.
    pub state: S,
    /// Number of evenly spread faults per kind of call and error; none for all.
    pub sample: Option<usize>,
    /// Whether the driver ends by `abort`.
    pub ends_by_abort: bool,
}

/// Failures of a campaign.
pub struct Findings(String);

// Printed by `unwrap` in tests, with its line breaks.
impl fmt::Debug for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<io::Error> for Findings {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

struct DriverRun {
    dir: TempDir,
    log: String,
    output: String,
    is_success: bool,
}

impl<S: Fn(&Path) -> String + Sync> Campaign<S> {
    /// Runs the campaign and returns the number of injected faults.
    ///
    /// Errors: the driver cannot be run; the list of faults after which the store differed.
    pub fn run(&self) -> Result<usize, Findings> {
        let shim = Shim::build()?;
        let baseline = self.drive(&shim, None)?;
        if !baseline.is_success {
            return Err(Findings(format!("without faults: {}", baseline.output)));
        }
        let expected = (self.state)(&folder(&baseline.dir));
        let faults = self.faults(&baseline.log);
        let (next, hits) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let wrong = Mutex::new(Vec::new());
        let work = || {
            while let Some(fault) = faults.get(next.fetch_add(1, Ordering::Relaxed)) {
                let finding = match self.drive(&shim, Some(fault)) {
                    Ok(run) => {
                        hits.fetch_add(usize::from(failed(&run.log).is_some()), Ordering::Relaxed);
                        self.judge(&run, &expected)
                    }
                    Err(error) => Some(error.to_string()),
                };
                if let Some(finding) = finding {
                    let mut wrong = wrong.lock().unwrap_or_else(PoisonError::into_inner);
                    wrong.push(format!("{fault}: {finding}"));
                }
            }
        };
        // Drivers mostly wait for the disk and their own retries.
        let workers = WORKERS * std::thread::available_parallelism().map_or(2, usize::from);
        std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
        let wrong = wrong.into_inner().unwrap_or_else(PoisonError::into_inner);
        if wrong.is_empty() {
            return Ok(hits.into_inner());
        }
        let (count, all) = (wrong.len(), faults.len());
        let list = wrong.join("\n");
        Err(Findings(format!("{count} of {all} faults:\n{list}")))
    }

    /// Folders of a run without faults that are not durable: their parent was not synced after their creation.
    ///
    /// Errors: the driver cannot be run, or fails.
    pub fn unsynced_folders(&self) -> Result<Vec<PathBuf>, Findings> {
        let run = self.drive(&Shim::build()?, None)?;
        if !run.is_success {
            return Err(Findings(run.output));
        }
        let root = folder(&run.dir);
        let unsynced = unsynced(&run.log).into_iter();
        let unsynced = unsynced.map(|it| it.strip_prefix(&root).map(Path::to_owned).unwrap_or(it));
        Ok(unsynced.collect())
    }

    fn faults(&self, log: &str) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (call, count) in counts(log) {
            for errno in ERRORS {
                let step = self
                    .sample
                    .map_or(1, |sample| count.div_ceil(sample).max(1));
                // The second error of a sample hits calls between those of the first.
                let first = if errno == ERRORS[0] { 1 } else { 1 + step / 2 };
                faults.extend((first..=count).step_by(step).map(|nth| Fault {
                    call: call.clone(),
                    errno,
                    nth,
                }));
            }
        }
        faults
    }

    fn drive(&self, shim: &Shim, fault: Option<&Fault>) -> io::Result<DriverRun> {
        // In memory if possible, to avoid waiting for a disk.
        let dir = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new())?;
        let (folder, log) = (folder(&dir), dir.path().join("log"));
        std::fs::create_dir(&folder)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--exact", self.driver, "--nocapture", "--include-ignored"]);
        // Without a backtrace the last lines contain the reason.
        command.env("RUST_BACKTRACE", "0");
        // A driver that aborts leaves its temporary files.
        let temporary = dir.path().join("tmp");
        std::fs::create_dir(&temporary)?;
        command.env("TMPDIR", &temporary);
        shim.load(&mut command, &folder, &log, fault);
        let output = command.output()?;
        let text =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        let text = text.join("\n");
        let lines: Vec<_> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(LINES)..].join("\n    ");
        let is_success = if self.ends_by_abort {
            // SIGABRT. Source: Linux, signal.h.
            std::os::unix::process::ExitStatusExt::signal(&output.status) == Some(6)
                && text.contains(DONE)
        } else {
            output.status.success()
        };
        Ok(DriverRun {
            log: std::fs::read_to_string(&log).unwrap_or_default(),
            dir,
            output: format!("{}: {last}", output.status),
            is_success,
        })
    }

    /// Difference of a run from `expected`.
    fn judge(&self, run: &DriverRun, expected: &str) -> Option<String> {
        let call = failed(&run.log).unwrap_or("no call");
        if !run.is_success {
            return Some(format!(
                "{call}: the driver did not recover: {}",
                run.output
            ));
        }
        // An unreadable folder is a finding, and must not end the campaign.
        let state = AssertUnwindSafe(|| (self.state)(&folder(&run.dir)));
        let Ok(found) = std::panic::catch_unwind(state) else {
            return Some(format!("{call}: the folder cannot be read"));
        };
        (found != expected).then(|| {
            format!(
                "{call}: found\n{found}\n  instead of\n{expected}\n  after {}",
                run.output
            )
        })
    }
}

/// Line that a driver prints before it ends by `abort`.
pub const DONE: &str = "driver: done";

fn folder(dir: &TempDir) -> PathBuf {
    dir.path().join("data")
}
