//! Init: confines itself, starts the program, and reaps until it ends.

mod confine;
mod files;
mod limits;
mod syscalls;

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::process::{WaitOptions, wait};

use crate::channel::{receive, send};
use crate::guard::Order;
use crate::mechanisms::Report;
use crate::spec::{ProgramOutcome, SandboxSpec};

/// How often a program that is still open for writing somewhere is tried again.
const BUSY_TRIES: u32 = 100;
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// Init's exit code; what came of the program goes through the socket.
pub(crate) fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve() -> io::Result<()> {
    let channel = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let order: InitRequest = receive(&channel)?;
    let confined = confine::confine(&order);
    let (report, refused) = match confined {
        Ok(report) => {
            let refused = refusal(&report, order.spec.strict);
            (report, refused)
        }
        Err(error) => (
            order.report,
            Some(format!("it cannot be confined: {error}")),
        ),
    };
    send(&channel, &report)?;
    let outcome = match (refused, &order.spec.program) {
        (Some(why), _) => ProgramOutcome::NotStarted(why),
        (None, None) => ProgramOutcome::Exited(0),
        (None, Some(program)) => match spawn(&order.spec, program) {
            Ok(child) => until_end(&child),
            Err(error) => ProgramOutcome::NotStarted(error.to_string()),
        },
    };
    send(&channel, &outcome)
}

/// Why the program must not run: the spec is strict, and a mechanism is missing.
fn refusal(report: &ConfinementReport, is_strict: bool) -> Option<String> {
    let is_refused = is_strict && !report.missing.is_empty();
    is_refused.then(|| {
        let reasons: Vec<String> = report
            .missing
            .iter()
            .map(|missing| format!("{} ({})", missing.mechanism.name(), missing.reason))
            .collect();
        format!(
            "this machine lacks what confines it: {}",
            reasons.join(", ")
        )
    })
}

fn spawn(spec: &SandboxSpec, program: &std::path::Path) -> io::Result<Child> {
    let mut command = Command::new(program);
    command
        .args(&spec.arguments)
        .env_clear()
        .envs(spec.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(&spec.work)
        .stdin(Stdio::null());
    // A fork elsewhere in the service may hold the handle that the program was just written through until it calls
    // exec; the kernel then says that the file is busy.
    for _ in 0..BUSY_TRIES {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(BUSY_PAUSE);
            }
            outcome => return outcome,
        }
    }
    command.spawn()
}

/// Reaps orphans until the program itself has ended; then its descendants are the guard's to kill.
fn until_end(program: &Child) -> ProgramOutcome {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status)))
                if pid.as_raw_nonzero().get().cast_unsigned() == program.id() =>
            {
                return match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => ProgramOutcome::Exited(code),
                    (None, signal) => ProgramOutcome::Signalled(signal.unwrap_or_default()),
                };
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                return ProgramOutcome::NotStarted(format!("waiting for it failed: {error}"));
            }
        }
    }
}
