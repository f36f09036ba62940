//! An `atoll up` installation for one test.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testkit::ports::free_ports;

/// Deadline of conditions, long enough for a busy machine.
const DEADLINE: Duration = Duration::from_mins(2);
/// Units: ports. Ports of `up`.
const PORTS: u16 = 7;

/// A data directory with its ports.
pub(crate) struct Place {
    folder: tempfile::TempDir,
    ports_from: u16,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Postgres runs as another user when the tests run as root.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Self {
            folder,
            ports_from: free_ports(PORTS).unwrap(),
        }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The command, before it is started.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
        command
            .args(["up", "--supervised", "--data"])
            .arg(self.data());
        command.args(["--ports-from", &self.ports_from.to_string()]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Starts it and waits until everything is ready.
    pub(crate) fn up(&self) -> Up {
        self.up_with(&mut self.command())
    }

    pub(crate) fn up_with(&self, command: &mut Command) -> Up {
        // Output would fill an unread pipe.
        let child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut up = Up {
            child,
            state: self.data().join("atoll.json"),
        };
        until("everything is ready", || {
            assert_eq!(up.child.try_wait().unwrap(), None, "atoll up ended");
            up.state.exists() && up.pid("webui").is_some()
        });
        up
    }
}

/// A running `atoll up`; stopped when this is dropped.
pub(crate) struct Up {
    child: Child,
    state: PathBuf,
}

impl Up {
    pub(crate) fn state(&self) -> Value {
        fs::read(&self.state)
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default()
    }

    pub(crate) fn pid(&self, name: &str) -> Option<i32> {
        self.state()["pids"][name].as_i64()?.try_into().ok()
    }

    pub(crate) fn kill(&self, name: &str) {
        let pid = Pid::from_raw(self.pid(name).unwrap()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
    }

    /// Waits until `name` runs as another process than `old`.
    pub(crate) fn wait_new(&self, name: &str, old: Option<i32>) {
        until(&format!("{name} is restarted"), || {
            self.pid(name).is_some_and(|pid| Some(pid) != old)
        });
    }

    /// Kills the supervisor without a shutdown.
    pub(crate) fn kill_supervisor(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Shuts down gracefully.
    pub(crate) fn stop(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
        assert!(!self.state.exists());
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().ok();
    }
}

/// Waits for a condition.
pub(crate) fn until(condition: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < deadline, "timeout: {condition}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether a process runs.
pub(crate) fn lives(pid: i32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}
