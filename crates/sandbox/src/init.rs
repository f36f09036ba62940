//! Init: confines itself, starts the program, and reaps children until it exits.

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
use crate::init_request::InitRequest;
use crate::mechanisms::ConfinementReport;
use crate::spec::{ProgramOutcome, SandboxSpec};

/// Attempts to start a program that is still open for writing (ETXTBSY).
const BUSY_TRIES: u32 = 100;
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// Runs init; the outcome of the program is sent through the socket.
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
        Err(error) => (order.report, Some(format!("confinement failed: {error}"))),
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

/// Reason to refuse the program: the spec is strict and a mechanism is missing.
fn refusal(report: &ConfinementReport, is_strict: bool) -> Option<String> {
    let is_refused = is_strict && !report.missing.is_empty();
    is_refused.then(|| {
        let reasons: Vec<String> = report
            .missing
            .iter()
            .map(|missing| format!("{} ({})", missing.mechanism.name(), missing.reason))
            .collect();
        format!("missing sandbox mechanisms: {}", reasons.join(", "))
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
    // A fork in another thread of the service holds the write handle of the new program until its exec; until then the
    // kernel returns ETXTBSY.
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

/// Reaps orphans until the program itself exits; the guard kills its descendants.
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
                return ProgramOutcome::NotStarted(format!("wait failed: {error}"));
            }
        }
    }
}
