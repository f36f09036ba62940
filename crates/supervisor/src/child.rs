//! Supervision of one child process: restart with backoff, graceful shutdown.

use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use service::{CancellationToken, Error, ResultExt as _};
use tokio::process::{Child, ChildStdin};
use tokio::sync::watch;

use crate::child_output::OutputSink;
use crate::event::{SupervisorEvent, SupervisorObserver};
use crate::state_file::StateFile;

/// Initial backoff.
const MIN_BACKOFF: Duration = Duration::from_millis(200);
/// Maximum backoff: a broken service must not keep the machine busy, a repaired one has to start soon.
const MAX_BACKOFF: Duration = Duration::from_secs(10);
/// Uptime after which the backoff is reset.
const HEALTHY_AFTER: Duration = Duration::from_secs(20);

/// Desired state of a child. A change of `generation` restarts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DesiredState {
    /// Whether it has to run.
    pub(crate) run: bool,
    /// Counts the changes of its settings.
    pub(crate) generation: u64,
}

/// Command, signals and log of a child.
pub(crate) struct ChildProgram {
    /// Name.
    pub(crate) name: &'static str,
    /// Creates the command of each start.
    pub(crate) command: Box<dyn Fn() -> Result<Command, Error> + Send + Sync>,
    /// Signal for a graceful shutdown.
    pub(crate) end: Signal,
    /// Signal after the grace period.
    pub(crate) end_now: Signal,
    /// Grace period: slightly longer than its own for in-flight requests.
    pub(crate) grace: Duration,
    /// Sink of its output.
    pub(crate) sink: OutputSink,
    /// Receives its failures.
    pub(crate) observer: SupervisorObserver,
}

impl ChildProgram {
    fn report(&self, event: SupervisorEvent<'_>) {
        (self.observer)(event);
    }
}

/// Cancellation tokens of a shutdown.
#[derive(Debug, Clone)]
pub(crate) struct StopTokens {
    /// Graceful shutdown.
    pub(crate) graceful: CancellationToken,
    /// Immediate shutdown.
    pub(crate) immediate: CancellationToken,
}

/// Keeps `program` in its desired state until `ending`.
pub(crate) async fn supervise(
    program: ChildProgram,
    mut wanted: watch::Receiver<DesiredState>,
    ending: StopTokens,
    state_file: StateFile,
) {
    let mut backoff = MIN_BACKOFF;
    loop {
        let Some(Ok(current)) = ending
            .graceful
            .run_until_cancelled(wanted.wait_for(|wanted| wanted.run))
            .await
            .map(|wanted| wanted.map(|wanted| *wanted))
        else {
            return;
        };
        let started = Instant::now();
        match start(&program) {
            Ok(child) => {
                state_file.started(program.name, child.0.id());
                let is_stopped = watch_child(&program, child, &mut wanted, current, &ending).await;
                state_file.ended(program.name);
                if is_stopped {
                    continue;
                }
            }
            Err(error) => program.report(SupervisorEvent::NotStarted {
                name: program.name,
                error: &error,
            }),
        }
        if started.elapsed() >= HEALTHY_AFTER {
            backoff = MIN_BACKOFF;
        }
        let changed = wanted.wait_for(|wanted| *wanted != current);
        tokio::select! {
            () = ending.graceful.cancelled() => return,
            // New settings may repair it.
            _ = changed => backoff = MIN_BACKOFF,
            () = tokio::time::sleep(backoff) => backoff = (backoff * 2).min(MAX_BACKOFF),
        }
    }
}

/// Waits until the child exits or has to stop; true if it was stopped on purpose.
async fn watch_child(
    program: &ChildProgram,
    (mut child, held): (Child, Option<ChildStdin>),
    wanted: &mut watch::Receiver<DesiredState>,
    current: DesiredState,
    ending: &StopTokens,
) -> bool {
    tokio::select! {
        status = child.wait() => {
            let how = status.map_or_else(|error| error.to_string(), describe);
            program.report(SupervisorEvent::Exited {
                name: program.name,
                how: &how,
                log: &program.sink.path(),
            });
            return false;
        }
        () = ending.graceful.cancelled() => {}
        _ = wanted.wait_for(|wanted| *wanted != current) => {}
    }
    stop(program, child, held, ending).await;
    true
}

/// Starts the child. Its stdin is kept apart: `Child::wait` would close it, and a supervised service would exit.
fn start(program: &ChildProgram) -> Result<(Child, Option<ChildStdin>), Error> {
    let mut command = (program.command)()?;
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = tokio::process::Command::from(command)
        .spawn()
        .doing(|| format!("starting {}", program.name))?;
    if let Some(stdout) = child.stdout.take() {
        tokio::spawn(program.sink.clone().record(stdout));
    }
    if let Some(stderr) = child.stderr.take() {
        tokio::spawn(program.sink.clone().show(stderr));
    }
    let held = child.stdin.take();
    Ok((child, held))
}

async fn stop(
    program: &ChildProgram,
    mut child: Child,
    held: Option<ChildStdin>,
    ending: &StopTokens,
) {
    signal(&child, program.end);
    drop(held);
    tokio::select! {
        _ = child.wait() => return,
        () = tokio::time::sleep(program.grace) => {
            program.report(SupervisorEvent::Killed { name: program.name });
        }
        () = ending.immediate.cancelled() => {}
    }
    signal(&child, program.end_now);
    child.wait().await.ok();
}

fn signal(child: &Child, signal: Signal) {
    let pid = child
        .id()
        .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    if let Some(pid) = pid {
        // It may have exited already.
        kill_process(pid, signal).ok();
    }
}

fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "reason unknown".to_owned(),
    }
}
