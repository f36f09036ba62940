//! An API server as a process of its own, which can be killed.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use testkit::ports::free_port;
use testkit::postgres::TestDatabase;

/// The process; it is killed when this value is dropped.
pub(crate) struct Process {
    child: Child,
    pub(crate) url: String,
}

impl Process {
    /// Starts a server with that database and folder, and more settings as environment variables.
    pub(crate) fn start(
        database: &TestDatabase,
        work_dir: &Path,
        settings: &[(&str, &str)],
    ) -> Self {
        let port = free_port().unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_api-server"))
            .env("API_LISTEN_ADDRESS", "127.0.0.1")
            .env("API_LISTEN_PORT", port.to_string())
            .env("DB_HOST", &database.host)
            .env("DB_PORT", database.port.to_string())
            .env("DB_USER", &database.user)
            .env("DB_PASS", &database.password)
            .env("DB_NAME", &database.name)
            .env("WORK_DIR", work_dir)
            .env("DUMMY_IGNITION", "true")
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            child,
            url: format!("http://127.0.0.1:{port}"),
        }
    }

    /// Its resident memory. Units: KiB.
    pub(crate) fn memory_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.unwrap().split_whitespace().next().unwrap();
        number.parse().unwrap()
    }

    /// Kills it at once (SIGKILL).
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
