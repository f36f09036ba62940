//! Specification, limits and exit of a confined program.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::mechanisms::ConfinementReport;

/// A program and the resources it can access. Paths are absolute.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SandboxSpec {
    /// The program; none only probes the mechanisms.
    pub program: Option<PathBuf>,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its complete environment.
    pub environment: Vec<(String, String)>,
    /// Working folder, readable and writable; its content is kept.
    pub work: PathBuf,
    /// Empty folder for temporary files, readable and writable; not kept.
    pub scratch: PathBuf,
    /// Readable and executable files and folders.
    pub readable: Vec<PathBuf>,
    /// Resource limits.
    pub limits: SandboxLimits,
    /// Refuse to run if a mechanism is missing.
    pub strict: bool,
}

/// Resource limits of a program and its descendants together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxLimits {
    /// Memory. Units: bytes.
    pub memory_bytes: u64,
    /// Processes and threads.
    pub processes: u32,
    /// Files in the working and the temporary folder. Units: bytes.
    pub disk_bytes: u64,
    /// Wall-clock time.
    pub time: Duration,
}

/// Exit of a program, with its confinement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramExit {
    /// Outcome of the program.
    pub outcome: ProgramOutcome,
    /// Active and missing mechanisms.
    pub report: ConfinementReport,
}

impl ProgramExit {
    /// The exit of a program that could not be started.
    pub(crate) fn not_started(error: &std::io::Error) -> Self {
        Self {
            outcome: ProgramOutcome::NotStarted(error.to_string()),
            report: ConfinementReport::default(),
        }
    }
}

/// Outcome of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProgramOutcome {
    /// Exited with this code.
    Exited(i32),
    /// Killed by this signal.
    Signalled(i32),
    /// Killed because it exceeded this limit.
    Exceeded(String),
    /// Not started, with the reason.
    NotStarted(String),
}

impl std::fmt::Display for ProgramOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit status: {code}"),
            Self::Signalled(signal) => write!(f, "signal: {signal}"),
            Self::Exceeded(limit) => write!(f, "killed: limit exceeded: {limit}"),
            Self::NotStarted(why) => write!(f, "not started: {why}"),
        }
    }
}
