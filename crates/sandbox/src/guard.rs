//! The guard: creates namespaces and root folder, starts init in them, and waits until all descendants have exited.

mod folder;
mod processes;
mod root;
mod watch;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitCode, Stdio};

use rustix::process::{getuid, set_child_subreaper};

use crate::channel::{receive, send};
use crate::init_request::{INIT, InitRequest};
use crate::mechanisms::{ConfinementReport, Mechanism};
use crate::namespaces::Namespaces;
use crate::spec::{ProgramExit, ProgramOutcome, SandboxSpec};
use root::Root;
use watch::Watch;

/// Runs the guard; the outcome of the program is sent through the socket.
pub(crate) fn main() -> ExitCode {
    let control = io::stdin();
    let Ok(control) = control.as_fd().try_clone_to_owned() else {
        return ExitCode::FAILURE;
    };
    let control = UnixStream::from(control);
    let ended = match receive::<SandboxSpec>(&control) {
        Ok(spec) => run(&spec, &control),
        Err(error) => ProgramExit::not_started(&error),
    };
    // Fails if the service has died.
    match send(&control, &ended) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn run(spec: &SandboxSpec, control: &UnixStream) -> ProgramExit {
    let mut ended = match start(spec) {
        Ok((init, channel, root)) => {
            let ended = Watch::new(spec, control, &channel, root.as_ref()).until_end(init);
            // Before the folder is copied: no process may be left that changes it.
            processes::kill_all();
            keep(spec, root, ended)
        }
        Err(error) => ProgramExit::not_started(&error),
    };
    processes::kill_all();
    ended.report.active.sort_unstable();
    ended
}

/// Keeps the plain files and folders that the program left in its working folder.
fn keep(spec: &SandboxSpec, root: Option<Root>, mut ended: ProgramExit) -> ProgramExit {
    let kept = match root {
        Some(root) => root.keep(spec),
        None => folder::clean(&spec.work, spec.limits.disk_bytes),
    };
    if let Err(error) = kept
        && matches!(ended.outcome, ProgramOutcome::Exited(_))
    {
        ended.outcome = ProgramOutcome::Exceeded(format!("working folder: {error}"));
    }
    ended
}

fn start(spec: &SandboxSpec) -> io::Result<(Child, UnixStream, Option<Root>)> {
    // Without a PID namespace, orphans of the program are reparented to the guard.
    set_child_subreaper(rustix::process::Pid::from_raw(1))?;
    // The OOM killer takes the program before the service. Failure is ignored.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    let mut report = ConfinementReport::default();
    // Before the user namespace, in which every process is root.
    let is_root = getuid().is_root();
    let namespaces = Namespaces::enter(&mut report);
    let root = if namespaces.mounts {
        report.note(Mechanism::OwnRoot, Root::build(spec))
    } else {
        None
    };
    let order = InitRequest {
        spec: spec.clone(),
        root: root.as_ref().map(|root| root.path().to_owned()),
        own_processes: namespaces.processes,
        is_root,
        user: root.as_ref().and_then(Root::user),
        report,
    };
    let (channel, inner) = UnixStream::pair()?;
    send(&channel, &order)?;
    let init = Command::new("/proc/self/exe")
        .arg(INIT)
        .env_clear()
        .stdin(Stdio::from(OwnedFd::from(inner)))
        .spawn()?;
    Ok((init, channel, root))
}
