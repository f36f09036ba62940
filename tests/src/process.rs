//! Programs of this build, and processes by their ids.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, kill_process};

pub use rustix::process::Signal;

/// Path of a program in the build folder of this test program.
///
/// Errors: it does not exist, with the command that builds it.
pub fn program(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe().context("this test program's path is unknown")?;
    // target/debug/deps/it-….
    let folder = own
        .parent()
        .and_then(Path::parent)
        .context("this test program lies in no target folder")?;
    let path = folder.join(name);
    ensure!(
        path.is_file(),
        "{} is missing: run `cargo build -p atoll -p host-sim -p testkit` first, as `cargo xtask test` does",
        path.display()
    );
    Ok(path)
}

/// Sends a signal.
///
/// Errors: no such process, or no permission.
pub fn signal(pid: u32, signal: Signal) -> Result<()> {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let number = number.with_context(|| format!("{pid} is not a process id"))?;
    kill_process(number, signal).with_context(|| format!("signalling process {pid}"))
}

/// Whether a process exists and is not a zombie.
pub fn lives(pid: u32) -> bool {
    let Ok(text) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    // The state follows the name, which is in parentheses and may hold anything.
    text.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// The children of a process.
pub fn children(pid: u32) -> Vec<u32> {
    numbers()
        .filter(|child| parent(*child) == Some(pid))
        .collect()
}

/// A process that runs the program called `name` with an argument that contains `argument`.
pub fn find(name: &str, argument: &str) -> Option<u32> {
    find_all(name, argument).next()
}

/// All such processes.
pub fn find_all(name: &str, argument: &str) -> impl Iterator<Item = u32> {
    numbers().filter(move |pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        let mut parts = line.split('\0');
        parts.next().is_some_and(|program| program.ends_with(name))
            && parts.any(|part| part.contains(argument))
    })
}

/// Kills the database of an `atoll up` data directory whose supervisor was killed.
pub fn end_postgres_of(data: &Path) {
    let folder = data.join("postgres/data");
    let pid = fs::read_to_string(folder.join("postmaster.pid"))
        .ok()
        .and_then(|text| text.lines().next()?.trim().parse().ok());
    // Process ids are reused: only the process that works in that folder is killed.
    let works_there = |pid: u32| {
        let there = fs::canonicalize(&folder).ok();
        there.is_some() && fs::read_link(format!("/proc/{pid}/cwd")).ok() == there
    };
    if let Some(pid) = pid.filter(|pid| works_there(*pid)) {
        for child in children(pid) {
            signal(child, Signal::CONT).ok();
        }
        signal(pid, Signal::CONT).ok();
        signal(pid, Signal::QUIT).ok();
    }
}

fn numbers() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn parent(pid: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_has_a_parent() {
        let own = std::process::id();
        assert!(lives(own));
        assert!(children(parent(own).unwrap()).contains(&own));
        assert!(signal(0, Signal::TERM).is_err());
    }

    #[test]
    fn a_missing_program_is_reported_with_its_remedy() {
        let text = program("no-such-program").unwrap_err().to_string();
        assert!(text.contains("cargo build -p atoll"), "{text}");
    }
}
