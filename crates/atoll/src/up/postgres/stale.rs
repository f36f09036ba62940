//! A postmaster that a killed `atoll up` left behind.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use service::Error;

/// A fast shutdown writes a checkpoint; on slow disks that takes a while.
const FAST_TIMEOUT: Duration = Duration::from_mins(1);
/// An immediate shutdown only ends processes.
const IMMEDIATE_TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(50);

/// Ends the postmaster that runs on `data`, if there is one; whether there was.
///
/// Errors: it does not end.
pub(crate) fn end(data: &Path) -> Result<bool, Error> {
    let Some(pid) = postmaster(data) else {
        return Ok(false);
    };
    for (signal, timeout) in [
        (Signal::INT, FAST_TIMEOUT),
        (Signal::QUIT, IMMEDIATE_TIMEOUT),
    ] {
        if kill_process(pid, signal).is_err() || wait_gone(data, timeout) {
            return Ok(true);
        }
    }
    Err(Error::new(
        "ending the database of an earlier run",
        format!("process {} does not end: kill it", pid.as_raw_nonzero()),
    ))
}

fn wait_gone(data: &Path, timeout: Duration) -> bool {
    let deadline = Instant::now() + timeout;
    while postmaster(data).is_some() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(POLL);
    }
    true
}

/// The process named in `postmaster.pid`, if it lives and works in `data`: numbers are used again.
fn postmaster(data: &Path) -> Option<Pid> {
    let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let number: i32 = text.lines().next()?.trim().parse().ok()?;
    let works_in = fs::read_link(format!("/proc/{number}/cwd")).ok()?;
    let data = fs::canonicalize(data).ok()?;
    (works_in == data).then(|| Pid::from_raw(number))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_another_process_has_now_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("postmaster.pid");
        assert!(!end(dir.path()).unwrap());
        fs::write(&file, format!("{}\n", std::process::id())).unwrap();
        assert!(!end(dir.path()).unwrap());
        fs::write(&file, "nonsense").unwrap();
        assert!(!end(dir.path()).unwrap());
    }
}
