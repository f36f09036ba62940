//! Stale postmaster of a killed `atoll up`.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use service::Error;

/// Timeout of a fast shutdown, which writes a checkpoint.
const FAST_TIMEOUT: Duration = Duration::from_mins(1);
/// Timeout of an immediate shutdown, which only ends processes.
const IMMEDIATE_TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(50);

/// Stops the postmaster that runs on `data`; true if there was one.
///
/// Errors: it does not stop.
pub(crate) fn stop(data: &Path) -> Result<bool, Error> {
    let Some(pid) = postmaster(data) else {
        return Ok(false);
    };
    for (signal, timeout) in [
        (Signal::INT, FAST_TIMEOUT),
        (Signal::QUIT, IMMEDIATE_TIMEOUT),
    ] {
        if kill_process(pid, signal).is_err() || wait_stopped(data, timeout) {
            return Ok(true);
        }
    }
    Err(Error::new(
        "stopping the database of a killed run",
        format!("process {} does not stop: kill it", pid.as_raw_nonzero()),
    ))
}

fn wait_stopped(data: &Path, timeout: Duration) -> bool {
    let deadline = Instant::now() + timeout;
    while postmaster(data).is_some() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(POLL);
    }
    true
}

/// The process of `postmaster.pid`, if it runs in `data`: pids are reused.
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
    fn a_reused_pid_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("postmaster.pid");
        assert!(!stop(dir.path()).unwrap());
        fs::write(&file, format!("{}\n", std::process::id())).unwrap();
        assert!(!stop(dir.path()).unwrap());
        fs::write(&file, "nonsense").unwrap();
        assert!(!stop(dir.path()).unwrap());
    }
}
