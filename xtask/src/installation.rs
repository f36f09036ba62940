//! An `atoll up` that runs during a task.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

/// First start on a slow disk: initdb, migrations.
const START_TIMEOUT: Duration = Duration::from_mins(5);
const POLL: Duration = Duration::from_millis(50);

/// The content of `atoll.json`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct InstallationState {
    /// URL of the API.
    pub(crate) api_url: String,
    /// Processes by name.
    pub(crate) pids: std::collections::BTreeMap<String, u32>,
}

/// A running `atoll up`; killed on drop, and when this process ends for any reason.
#[derive(Debug)]
pub(crate) struct Installation {
    child: Child,
    data: PathBuf,
}

impl Installation {
    /// Starts it with the programs in `programs` and waits until everything is ready.
    pub(crate) fn start(
        programs: &Path,
        data: &Path,
        ports_from: Option<u16>,
        env_file: Option<&Path>,
    ) -> Result<Self> {
        let mut command = Command::new(programs.join("atoll"));
        command.args(["up", "--supervised", "--data"]).arg(data);
        if let Some(port) = ports_from {
            command.args(["--ports-from", &port.to_string()]);
        }
        if let Some(path) = env_file {
            command.arg("--env-file").arg(path);
        }
        let state = data.join("atoll.json");
        std::fs::remove_file(&state).ok();
        let child = command
            .stdin(Stdio::piped())
            .spawn()
            .context("starting atoll up")?;
        let mut installation = Self {
            child,
            data: data.to_owned(),
        };
        let deadline = Instant::now() + START_TIMEOUT;
        while !state.exists() {
            if let Some(status) = installation.child.try_wait()? {
                bail!("atoll up ended before it was ready ({status})");
            }
            if Instant::now() >= deadline {
                bail!("atoll up was not ready after {} s", START_TIMEOUT.as_secs());
            }
            std::thread::sleep(POLL);
        }
        Ok(installation)
    }

    /// The file with the addresses of all services.
    pub(crate) fn state_file(&self) -> PathBuf {
        self.data.join("atoll.json")
    }

    /// Its current content.
    pub(crate) fn state(&self) -> Result<InstallationState> {
        let text = std::fs::read(self.state_file()).context("reading atoll.json")?;
        serde_json::from_slice(&text).context("reading atoll.json")
    }

    /// Shuts it down gracefully.
    pub(crate) fn stop(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let status = self.child.wait().context("waiting for atoll up")?;
        if !status.success() {
            bail!("atoll up: {status}");
        }
        Ok(())
    }
}

impl Drop for Installation {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().ok();
    }
}
