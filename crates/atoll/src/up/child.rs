//! One child process, kept running: started again when it dies, ended in order when it is not wanted.

use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use service::{CancellationToken, Error};
use tokio::process::{Child, ChildStdin};
use tokio::sync::watch;

use super::child_output::OutputSink;
use super::state_file::StateFile;
use crate::terminal;

/// The wait before the first new start.
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// The longest wait: a broken service must not keep the machine busy, a mended one must not be waited for.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// A child that ran for so long was healthy: its next death is a new story.
const HEALTHY_AFTER: Duration = Duration::from_secs(20);

/// What is wanted of a child. Any change of `generation` starts it anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DesiredState {
    /// Whether it runs.
    pub(crate) run: bool,
    /// Counts the changes of its settings.
    pub(crate) generation: u64,
}

/// How a child is started and ended.
pub(crate) struct ChildProgram {
    /// Its name.
    pub(crate) name: &'static str,
    /// Makes the command of each start.
    pub(crate) command: Box<dyn Fn() -> Result<Command, Error> + Send + Sync>,
    /// What asks it to end.
    pub(crate) end: Signal,
    /// What ends it when that did not help.
    pub(crate) end_now: Signal,
    /// How long it may take to end: a little more than it gives open requests.
    pub(crate) grace: Duration,
    /// Where its lines go.
    pub(crate) sink: OutputSink,
}

/// When children have to end.
#[derive(Debug, Clone)]
pub(crate) struct StopTokens {
    /// In order.
    pub(crate) asked: CancellationToken,
    /// At once.
    pub(crate) at_once: CancellationToken,
}

/// Keeps `program` as `wanted` until `ending`.
pub(crate) async fn keep(
    program: ChildProgram,
    mut wanted: watch::Receiver<DesiredState>,
    ending: StopTokens,
    state_file: StateFile,
) {
    let mut backoff = FIRST_WAIT;
    loop {
        let Some(Ok(current)) = ending
            .asked
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
                let is_over = watch_over(&program, child, &mut wanted, current, &ending).await;
                state_file.ended(program.name);
                if is_over {
                    continue;
                }
            }
            Err(error) => terminal::notice(&format!("{}: {error}", program.name)),
        }
        if started.elapsed() >= HEALTHY_AFTER {
            backoff = FIRST_WAIT;
        }
        let changed = wanted.wait_for(|wanted| *wanted != current);
        tokio::select! {
            () = ending.asked.cancelled() => return,
            // New settings may be what it needs.
            _ = changed => backoff = FIRST_WAIT,
            () = tokio::time::sleep(backoff) => backoff = (backoff * 2).min(LONGEST_WAIT),
        }
    }
}

/// Until the child has ended; whether that was wanted.
async fn watch_over(
    program: &ChildProgram,
    (mut child, held): (Child, Option<ChildStdin>),
    wanted: &mut watch::Receiver<DesiredState>,
    current: DesiredState,
    ending: &StopTokens,
) -> bool {
    tokio::select! {
        status = child.wait() => {
            let how = status.map_or_else(|error| error.to_string(), describe);
            terminal::notice(&format!(
                "{} ended ({how}) and is started again; see {}",
                program.name,
                program.sink.path()
            ));
            return false;
        }
        () = ending.asked.cancelled() => {}
        _ = wanted.wait_for(|wanted| *wanted != current) => {}
    }
    stop(program, child, held, ending).await;
    true
}

/// The pipe is held apart: waiting for a child closes what it still has of it, and it would end.
fn start(program: &ChildProgram) -> Result<(Child, Option<ChildStdin>), Error> {
    let mut command = (program.command)()?;
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = tokio::process::Command::from(command)
        .spawn()
        .map_err(|e| Error::new(format!("starting {}", program.name), e))?;
    if let Some(stdout) = child.stdout.take() {
        tokio::spawn(program.sink.clone().drain(stdout));
    }
    if let Some(stderr) = child.stderr.take() {
        tokio::spawn(program.sink.clone().drain(stderr));
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
            terminal::notice(&format!("{} does not end and is killed", program.name));
        }
        () = ending.at_once.cancelled() => {}
    }
    signal(&child, program.end_now);
    child.wait().await.ok();
}

fn signal(child: &Child, signal: Signal) {
    let pid = child
        .id()
        .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    if let Some(pid) = pid {
        // It may have ended by itself just now.
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
