//! Launcher: the service's side of the sandbox.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::channel::{receive, send};
use crate::entry::GUARD;
use crate::mechanisms::ConfinementReport;
use crate::spec::{ProgramExit, ProgramOutcome, SandboxLimits, SandboxSpec};

/// Timeout for the report of an exited guard, which has sent it before.
const REPORT_TIMEOUT: Duration = Duration::from_secs(1);

/// Starts confined programs.
#[derive(Debug, Clone)]
pub struct Launcher(PathBuf);

impl Launcher {
    /// Launcher that uses this program, which has to call [`entry`](crate::entry()).
    pub fn own() -> Self {
        Self::at(Path::new("/proc/self/exe"))
    }

    /// Launcher that uses the program at `path`, which has to call [`entry`](crate::entry()).
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Command that runs `spec` when it is spawned, and its [`Control`].
    ///
    /// The command must not be killed: when [`Control`] is dropped, its guard kills all descendants and exits.
    /// Errors: InvalidInput – spec too long; no socket.
    pub fn command(&self, spec: &SandboxSpec) -> io::Result<(Command, Control)> {
        let (control, guard) = UnixStream::pair()?;
        send(&control, spec)?;
        let mut command = Command::new(&self.0);
        command
            .arg(GUARD)
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(guard)));
        Ok((command, Control(control)))
    }

    /// Probes the mechanisms of this machine.
    ///
    /// Errors: those of [`Launcher::command`], of starting it, and of creating a temporary folder in `folder`.
    pub fn probe(&self, folder: &Path) -> io::Result<ConfinementReport> {
        let name = |part: &str| folder.join(format!(".sandbox-{}-{part}", std::process::id()));
        let (work, scratch) = (name("work"), name("scratch"));
        let made = [&work, &scratch].map(std::fs::create_dir);
        let spec = SandboxSpec {
            program: None,
            arguments: Vec::new(),
            environment: Vec::new(),
            work: work.clone(),
            scratch: scratch.clone(),
            readable: Vec::new(),
            limits: PROBE_LIMITS,
            strict: false,
        };
        let ended = made
            .into_iter()
            .collect::<io::Result<()>>()
            .and_then(|()| self.run(&spec));
        for folder in [work, scratch] {
            // Fails for a folder that was not created.
            let _ = std::fs::remove_dir(folder);
        }
        Ok(ended?.report)
    }

    /// Runs `spec` to its end and discards its output.
    fn run(&self, spec: &SandboxSpec) -> io::Result<ProgramExit> {
        let (mut command, control) = self.command(spec)?;
        command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        Ok(control.ended())
    }
}

/// Limits of the probe, which runs no program.
const PROBE_LIMITS: SandboxLimits = SandboxLimits {
    memory_bytes: 64 << 20,
    processes: 16,
    disk_bytes: 1 << 20,
    time: Duration::from_secs(10),
};

/// Control of a confined program: when this is dropped, or the service dies, the guard kills the program and its
/// descendants.
#[derive(Debug)]
pub struct Control(UnixStream);

impl Control {
    /// Exit of the program; call it after the command has exited.
    pub fn ended(self) -> ProgramExit {
        let received = self
            .0
            .set_read_timeout(Some(REPORT_TIMEOUT))
            .and_then(|()| receive(&self.0));
        received.unwrap_or_else(|error| ProgramExit {
            outcome: ProgramOutcome::NotStarted(format!("the sandbox guard exited early: {error}")),
            report: ConfinementReport::default(),
        })
    }
}
