//! Programs out of images run confined: the content of an image is not trusted.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use sandbox::{ConfinementReport, Launcher, ProgramOutcome, SandboxLimits, SandboxSpec};
use tokio::process::Command;
use tokio::time::Instant;

use super::context::Failure;
use super::installer::{KEPT_LINES, tail};
use super::launch::Launch;

/// For the guard of a program to kill it.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// How programs out of images are confined.
#[derive(Debug, Clone)]
pub struct Confinement {
    /// Starts them.
    pub launcher: Launcher,
    /// `INSTALLER_MEMORY_LIMIT`, `INSTALLER_PROCESS_LIMIT`, `INSTALLER_DISK_LIMIT`, `INSTALLER_TIME_LIMIT`.
    pub limits: SandboxLimits,
    /// `INSTALLER_SANDBOX`: whether a program is refused where this machine lacks a mechanism.
    pub strict: bool,
}

/// A program to run.
pub(super) struct Program<'a> {
    /// What is executed, and all of its arguments.
    pub(super) command: (PathBuf, Vec<String>),
    /// Where the program and its libraries are.
    pub(super) launch: &'a Launch,
    /// Its environment.
    pub(super) environment: Vec<(String, String)>,
    /// Where it works.
    pub(super) work: &'a Path,
    /// Where its temporary files go.
    pub(super) scratch: &'a Path,
}

/// What a program said, and how it ended.
#[derive(Debug)]
pub(super) struct Run {
    /// The last lines of its standard output.
    pub(super) stdout: Vec<String>,
    /// The last lines of its standard error.
    pub(super) stderr: Vec<String>,
    /// How it ended.
    pub(super) outcome: ProgramOutcome,
}

impl Confinement {
    /// Which mechanisms this machine has, tried out in `folder`.
    ///
    /// Errors: the program cannot be started, or the folder cannot be written.
    pub async fn probe(&self, folder: PathBuf) -> Result<ConfinementReport, Failure> {
        let launcher = self.launcher.clone();
        super::blocking(move || {
            launcher
                .probe(&folder)
                .map_err(|error| Failure::new(format!("the sandbox cannot be tried out: {error}")))
        })
        .await
    }

    /// Runs a program until it ends, and keeps `lines` of its standard output; nothing when `deadline` came first.
    ///
    /// Errors: it cannot be started.
    pub(super) async fn run(
        &self,
        program: Program<'_>,
        lines: usize,
        deadline: Option<Instant>,
    ) -> io::Result<Option<Run>> {
        let (command, control) = self.launcher.command(&self.spec(program))?;
        let mut command = Command::from(command);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        // It holds the guard's side of the lifeline.
        drop(command);
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let run = async {
            let said = tokio::join!(tail(stdout, lines), tail(stderr, KEPT_LINES));
            child.wait().await.map(|_| said)
        };
        let run = Box::pin(run);
        let ended = match deadline {
            Some(deadline) => tokio::time::timeout_at(deadline, run).await.ok(),
            None => Some(run.await),
        };
        let Some(said) = ended else {
            // Its guard kills it and what it has started; only then may its folder be removed.
            drop(control);
            let _ = tokio::time::timeout(KILL_TIMEOUT, child.wait()).await;
            return Ok(None);
        };
        let (stdout, stderr) = said?;
        Ok(Some(Run {
            stdout,
            stderr,
            outcome: control.ended().outcome,
        }))
    }

    fn spec(&self, program: Program<'_>) -> SandboxSpec {
        let (path, arguments) = program.command;
        SandboxSpec {
            program: Some(path),
            arguments,
            environment: program.environment,
            work: program.work.to_owned(),
            scratch: program.scratch.to_owned(),
            readable: vec![program.launch.folder()],
            limits: self.limits,
            strict: self.strict,
        }
    }
}
