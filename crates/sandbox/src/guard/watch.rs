//! Limits without a single kernel mechanism: memory and processes of all descendants, disk, time, liveness of the
//! service.

use std::os::unix::net::UnixStream;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::root::Root;
use super::{folder, processes};
use crate::channel::receive;
use crate::mechanisms::ConfinementReport;
use crate::spec::{ProgramExit, ProgramOutcome, SandboxSpec};

/// Sampling interval. A program may exceed a limit by its usage within one interval.
const TICK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};
/// Timeout for the last message of an exited init.
const MESSAGE_TIMEOUT: Duration = Duration::from_millis(100);

pub(super) struct Watch<'a> {
    spec: &'a SandboxSpec,
    /// Hangs up when the service dies or drops its [`Control`](crate::Control).
    control: &'a UnixStream,
    /// Channel to init.
    channel: &'a UnixStream,
    has_root: bool,
    deadline: Instant,
}

impl<'a> Watch<'a> {
    pub(super) fn new(
        spec: &'a SandboxSpec,
        control: &'a UnixStream,
        channel: &'a UnixStream,
        root: Option<&Root>,
    ) -> Self {
        Self {
            spec,
            control,
            channel,
            has_root: root.is_some(),
            deadline: Instant::now() + spec.limits.time,
        }
    }

    /// Waits for the end of the program; its descendants have to be killed afterwards.
    pub(super) fn until_end(&self, mut init: Child) -> ProgramExit {
        let report = self.first();
        let ended = |outcome, report| ProgramExit { outcome, report };
        let report = match report {
            Ok(report) => report,
            Err(ended) => return ended,
        };
        loop {
            if let Some(bound) = self.exceeded() {
                return ended(ProgramOutcome::Exceeded(bound), report);
            }
            match self.wait() {
                WatchEvent::Tick => {}
                WatchEvent::Gone => {
                    return ended(ProgramOutcome::NotStarted("stopped".to_owned()), report);
                }
                WatchEvent::Message => {
                    let outcome = receive(self.channel);
                    // The program has exited in every case: init is not needed any more.
                    let _ = init.kill();
                    let lost = |_| ProgramOutcome::NotStarted("init was killed".to_owned());
                    return ended(outcome.unwrap_or_else(lost), report);
                }
            }
        }
    }

    /// Report of init before it starts the program.
    fn first(&self) -> Result<ConfinementReport, ProgramExit> {
        loop {
            match self.wait() {
                WatchEvent::Tick if Instant::now() < self.deadline => {}
                WatchEvent::Message => {
                    return receive(self.channel).map_err(|error| ProgramExit::not_started(&error));
                }
                WatchEvent::Tick | WatchEvent::Gone => {
                    return Err(ProgramExit::not_started(
                        &std::io::ErrorKind::TimedOut.into(),
                    ));
                }
            }
        }
    }

    fn wait(&self) -> WatchEvent {
        let mut fds = [
            PollFd::new(self.control, PollFlags::empty()),
            PollFd::new(self.channel, PollFlags::IN),
        ];
        if poll(&mut fds, Some(&TICK)).is_err() {
            return WatchEvent::Tick;
        }
        if !fds[0].revents().is_empty() {
            return WatchEvent::Gone;
        }
        if fds[1].revents().is_empty() {
            return WatchEvent::Tick;
        }
        // Bounded: an init that died without a message would block the sampling of limits.
        let _ = self.channel.set_read_timeout(Some(MESSAGE_TIMEOUT));
        WatchEvent::Message
    }

    fn exceeded(&self) -> Option<String> {
        let limits = &self.spec.limits;
        if Instant::now() >= self.deadline {
            return Some(format!("{} s", limits.time.as_secs_f32()));
        }
        let usage = processes::usage();
        // One more for init.
        if usage.tasks > u64::from(limits.processes) + 1 {
            return Some(format!("{} processes", limits.processes));
        }
        if usage.memory_bytes > limits.memory_bytes {
            return Some(format!("{} bytes of memory", limits.memory_bytes));
        }
        if self.has_root {
            // The tmpfs has this size.
            return None;
        }
        let used = folder::size(&self.spec.work) + folder::size(&self.spec.scratch);
        (used > limits.disk_bytes).then(|| format!("{} bytes of disk", limits.disk_bytes))
    }
}

enum WatchEvent {
    Tick,
    Gone,
    Message,
}
