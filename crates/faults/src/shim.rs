//! The preloaded library that makes calls fail.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

const SOURCE: &str = include_str!("shim.c");

/// A single failing call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Kind: write, fsync, syncfs, rename, link, mkdir, unlink, ftruncate, fallocate or create.
    pub call: String,
    /// Error of the call.
    pub errno: i32,
    /// Number of the call among those of its kind, from one.
    pub nth: usize,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = io::Error::from_raw_os_error(self.errno);
        write!(f, "{} {} fails with {error}", self.call, self.nth)
    }
}

/// The compiled shim.
#[derive(Debug)]
pub struct Shim {
    _dir: TempDir,
    library: PathBuf,
}

impl Shim {
    /// Compiles the shim with `cc`, which also links Rust programs.
    ///
    /// Errors: `cc` is missing or fails.
    pub fn build() -> io::Result<Self> {
        let dir = TempDir::new()?;
        let (source, library) = (dir.path().join("shim.c"), dir.path().join("shim.so"));
        std::fs::write(&source, SOURCE)?;
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-pthread", "-o"])
            .args([&library, &source])
            .arg("-ldl")
            .status()?;
        if !built.success() {
            return Err(io::Error::other(format!("cc: {built}")));
        }
        Ok(Self { _dir: dir, library })
    }

    /// Preloads the shim into `command`: it logs calls below `folder`, and fails one of them.
    pub fn load(&self, command: &mut Command, folder: &Path, log: &Path, fault: Option<&Fault>) {
        command
            .env("LD_PRELOAD", &self.library)
            .env("FAULTS_FOLDER", folder)
            .env("FAULTS_LOG", log);
        if let Some(fault) = fault {
            command
                .env("FAULTS_CALL", &fault.call)
                .env("FAULTS_ERROR", fault.errno.to_string())
                .env("FAULTS_NTH", fault.nth.to_string());
        }
    }
}

/// Number of calls per kind in a log.
pub(crate) fn counts(log: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in log.lines() {
        if let Some((call, _)) = line.split_once(' ') {
            *counts.entry(call.to_owned()).or_default() += 1;
        }
    }
    counts
}

/// Existing folders that are not durable: their parent was not synced after their creation.
pub(crate) fn unsynced(log: &str) -> Vec<PathBuf> {
    let mut unsynced = BTreeSet::new();
    for (call, path) in log.lines().filter_map(|line| line.split_once(' ')) {
        let path = Path::new(path);
        match call {
            "mkdir" | "rename" if path.is_dir() => drop(unsynced.insert(path.to_owned())),
            "fsync" => unsynced.retain(|made: &PathBuf| made.parent() != Some(path)),
            "syncfs" => unsynced.clear(),
            _ => {}
        }
    }
    unsynced.into_iter().collect()
}

/// The call that failed, with its path.
pub(crate) fn failed(log: &str) -> Option<&str> {
    log.lines().find_map(|line| line.strip_prefix("FAIL "))
}
