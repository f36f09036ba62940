//! The library that makes calls fail.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

const SOURCE: &str = include_str!("shim.c");

/// One call that fails once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Of which kind: write, fsync, syncfs, rename, link, mkdir, unlink, ftruncate, fallocate or create.
    pub call: String,
    /// The error that it ends in.
    pub errno: i32,
    /// Which of the calls of this kind, counted from one.
    pub nth: usize,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = io::Error::from_raw_os_error(self.errno);
        write!(f, "{} {} ends in {error}", self.call, self.nth)
    }
}

/// The compiled shim.
#[derive(Debug)]
pub struct Shim {
    _dir: TempDir,
    library: PathBuf,
}

impl Shim {
    /// Compiles it with the compiler that links Rust's programs, too.
    ///
    /// Errors: there is no `cc`, or it fails.
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

    /// Lets `command` run with the shim: calls below `folder` are logged, and one of them fails.
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

/// How many calls of each kind a log has.
pub(crate) fn counts(log: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in log.lines() {
        if let Some((call, _)) = line.split_once(' ') {
            *counts.entry(call.to_owned()).or_default() += 1;
        }
    }
    counts
}

/// Folders that a power failure can take with all that is in them: they are there, and their parent was not synced since it
/// has them.
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
