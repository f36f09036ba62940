//! What is run, within which bounds, and what came of it.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::mechanisms::Report;

/// A program and all that it may see. Paths are absolute.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SandboxSpec {
    /// The program; without one, the mechanisms are only tried out.
    pub program: Option<PathBuf>,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// All of its environment.
    pub environment: Vec<(String, String)>,
    /// Its working folder: read and written, and what it holds in the end is kept.
    pub work: PathBuf,
    /// An empty folder for temporary files: read and written, and not kept.
    pub scratch: PathBuf,
    /// Folders and files that it may read and execute.
    pub readable: Vec<PathBuf>,
    /// What it may use.
    pub limits: SandboxLimits,
    /// Refuse to run it where a mechanism is missing.
    pub strict: bool,
}

/// What a program and its descendants may use together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxLimits {
    /// Memory. Units: bytes.
    pub memory_bytes: u64,
    /// Processes and threads.
    pub processes: u32,
    /// Files in the working and the temporary folder. Units: bytes.
    pub disk_bytes: u64,
    /// From start to end.
    pub time: Duration,
}

/// The end of a program, with what confined it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramExit {
    /// How it ended.
    pub outcome: ProgramOutcome,
    /// What confined it.
    pub report: ConfinementReport,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProgramOutcome {
    /// By itself, with this exit code.
    Exited(i32),
    /// By a signal of this number.
    Signalled(i32),
    /// It was killed: it used more than a bound, which is named.
    Exceeded(String),
    /// It never ran, and why.
    NotStarted(String),
}

impl std::fmt::Display for ProgramOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit status: {code}"),
            Self::Signalled(signal) => write!(f, "signal: {signal}"),
            Self::Exceeded(bound) => write!(f, "killed, because it used more than {bound}"),
            Self::NotStarted(why) => write!(f, "not started: {why}"),
        }
    }
}
