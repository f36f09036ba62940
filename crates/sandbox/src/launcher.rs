//! The service's side.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::channel::{receive, send};
use crate::entry::GUARD;
use crate::mechanisms::Report;
use crate::spec::{ProgramExit, ProgramOutcome, SandboxLimits, SandboxSpec};

/// For a guard that has ended, and so has said what it has to say.
const REPORT_TIMEOUT: Duration = Duration::from_secs(1);

/// Starts confined programs.
#[derive(Debug, Clone)]
pub struct Launcher(PathBuf);

impl Launcher {
    /// By this very program, which has to call [`entry`](crate::entry()).
    pub fn own() -> Self {
        Self::at(Path::new("/proc/self/exe"))
    }

    /// By the program at `path`, which has to call [`entry`](crate::entry()).
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// The command that runs `spec` when it is spawned, and what controls it then.
    ///
    /// The command must not be killed: its guard kills what it has started once [`Control`] is dropped, and ends.
    /// Errors: InvalidInput – the spec is too long; no socket can be made.
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

    /// Tries out which mechanisms this machine has.
    ///
    /// Errors: those of [`Launcher::command`], of starting it, and of making a temporary folder in `folder`.
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
            // One that could not be made is not there.
            let _ = std::fs::remove_dir(folder);
        }
        Ok(ended?.report)
    }

    /// Runs `spec` to its end, without its output.
    fn run(&self, spec: &SandboxSpec) -> io::Result<ProgramExit> {
        let (mut command, control) = self.command(spec)?;
        command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        Ok(control.ended())
    }
}

/// Enough for a program that does nothing.
const PROBE_LIMITS: SandboxLimits = SandboxLimits {
    memory_bytes: 64 << 20,
    processes: 16,
    disk_bytes: 1 << 20,
    time: Duration::from_secs(10),
};

/// A confined program's lifeline: when this is dropped, or the service dies, the program and its descendants die.
#[derive(Debug)]
pub struct Control(UnixStream);

impl Control {
    /// How the program ended, once the command has.
    pub fn ended(self) -> ProgramExit {
        let received = self
            .0
            .set_read_timeout(Some(REPORT_TIMEOUT))
            .and_then(|()| receive(&self.0));
        received.unwrap_or_else(|error| ProgramExit {
            outcome: ProgramOutcome::NotStarted(format!(
                "the sandbox's guard ended early: {error}"
            )),
            report: ConfinementReport::default(),
        })
    }
}
