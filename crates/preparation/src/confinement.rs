//! Confined runs of programs out of images, whose content is not trusted.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use sandbox::{ConfinementReport, Launcher, ProgramOutcome, SandboxLimits, SandboxSpec};
use tokio::process::Command;
use tokio::time::Instant;

use crate::failure::{PreparationFailure, blocking};
use crate::launch::Launch;
use crate::output_tail::{TAIL_LINES, tail};

/// Time for the guard to kill a program.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// Confinement of programs out of images.
#[derive(Debug, Clone)]
pub struct Confinement {
    /// Launcher of the sandbox.
    pub launcher: Launcher,
    /// `INSTALLER_MEMORY_LIMIT`, `INSTALLER_PROCESS_LIMIT`, `INSTALLER_DISK_LIMIT`, `INSTALLER_TIME_LIMIT`.
    pub limits: SandboxLimits,
    /// `INSTALLER_SANDBOX`: refuse programs if this machine lacks a mechanism.
    pub strict: bool,
}

/// A program to run.
pub(crate) struct ConfinedProgram<'a> {
    /// Executable, and all arguments.
    pub(crate) command: (PathBuf, Vec<String>),
    /// The program and its libraries.
    pub(crate) launch: &'a Launch,
    /// Environment variables.
    pub(crate) environment: Vec<(String, String)>,
    /// Working folder.
    pub(crate) work: &'a Path,
    /// Folder of temporary files.
    pub(crate) scratch: &'a Path,
}

/// Output and exit of a program.
#[derive(Debug)]
pub(crate) struct ProgramRun {
    /// Last lines of its standard output.
    pub(crate) stdout: Vec<String>,
    /// Last lines of its standard error.
    pub(crate) stderr: Vec<String>,
    /// Exit status, or the limit it exceeded.
    pub(crate) outcome: ProgramOutcome,
}

impl Confinement {
    /// Probes the mechanisms of this machine, in `folder`.
    ///
    /// Errors: the program cannot be started, or the folder cannot be written.
    pub async fn probe(&self, folder: PathBuf) -> Result<ConfinementReport, PreparationFailure> {
        let launcher = self.launcher.clone();
        blocking(move || {
            launcher.probe(&folder).map_err(|error| {
                PreparationFailure::new(format!("the sandbox cannot be probed: {error}"))
            })
        })
        .await
    }

    /// Runs a program, and keeps the last `lines` of its standard output; none after `deadline`.
    ///
    /// Errors: it cannot be started.
    pub(crate) async fn run(
        &self,
        program: ConfinedProgram<'_>,
        lines: usize,
        deadline: Option<Instant>,
    ) -> io::Result<Option<ProgramRun>> {
        let (command, control) = self.launcher.command(&self.spec(program))?;
        let mut command = Command::from(command);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        // The command holds the guard's end of the lifeline.
        drop(command);
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let run = async {
            let output = tokio::join!(tail(stdout, lines), tail(stderr, TAIL_LINES));
            child.wait().await.map(|_| output)
        };
        let run = Box::pin(run);
        let finished = match deadline {
            Some(deadline) => tokio::time::timeout_at(deadline, run).await.ok(),
            None => Some(run.await),
        };
        let Some(output) = finished else {
            // The guard kills the program and its children; its folder may be removed only afterwards.
            drop(control);
            let _ = tokio::time::timeout(KILL_TIMEOUT, child.wait()).await;
            return Ok(None);
        };
        let (stdout, stderr) = output?;
        Ok(Some(ProgramRun {
            stdout,
            stderr,
            outcome: control.ended().outcome,
        }))
    }

    fn spec(&self, program: ConfinedProgram<'_>) -> SandboxSpec {
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
