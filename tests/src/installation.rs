//! A private `atoll up` of one test.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use testkit::demo::{Console, ContentOffer, DemoContent};

use crate::process::{self, Signal, program};
use crate::{ApiClient, Scratch, free_ports, until};

/// Ports of an installation.
const PORTS: u16 = 7;
/// First start on a busy machine: initdb, migrations.
const START_LIMIT: Duration = Duration::from_mins(3);
/// Restart of a killed service: a backoff, a start, for the database a recovery as well.
const RESTART_LIMIT: Duration = Duration::from_mins(2);
/// Services finish their requests, the database writes a checkpoint.
const STOP_LIMIT: Duration = Duration::from_mins(2);
/// Lines of each log that a failure prints.
const LOG_TAIL: usize = 40;

/// The content of `atoll.json`.
#[derive(Debug, Clone, Deserialize)]
pub struct InstallationState {
    /// Addresses of the services.
    #[serde(flatten)]
    pub services: testkit::demo::AtollState,
    /// Processes by name.
    pub pids: BTreeMap<String, u32>,
    /// Port of the database.
    pub postgres_port: u16,
}

/// A running `atoll up` on a data directory of its own. Both are removed on drop, and the processes also when the
/// test program is killed.
#[derive(Debug)]
pub struct Installation {
    scratch: Scratch,
    first_port: u16,
    arguments: Vec<String>,
    child: Option<Child>,
}

impl Installation {
    /// Starts one and waits until everything is ready.
    ///
    /// Errors: a program is missing, or it does not become ready.
    pub async fn start() -> Result<Self> {
        Self::start_with(&[]).await
    }

    /// [`Installation::start`] with more arguments of `atoll up`.
    ///
    /// Errors: as [`Installation::start`].
    pub async fn start_with(arguments: &[&str]) -> Result<Self> {
        let mut installation = Self {
            scratch: Scratch::new()?,
            first_port: free_ports(PORTS)?,
            arguments: arguments.iter().map(|it| (*it).to_owned()).collect(),
            child: None,
        };
        // The services start before there is content, and watch this file.
        let settings = installation.settings();
        fs::create_dir_all(settings.with_file_name(""))?;
        fs::write(&settings, "")?;
        installation.up().await?;
        Ok(installation)
    }

    /// Starts one and gives it a live image and a release.
    ///
    /// Errors: as [`Installation::start`], and those of making the content.
    pub async fn with_content() -> Result<Self> {
        let installation = Self::start().await?;
        let registry = installation.state()?.services.registry();
        let installer = program("openshift-baremetal-install")?;
        let console = Console::new(true);
        installation
            .restarts_with(async || {
                let (data, offer) = (installation.data(), ContentOffer::Settings);
                DemoContent::make(&data, &registry, &installer, offer, &console)
                    .await
                    .map(drop)
            })
            .await?;
        Ok(installation)
    }

    /// Appends lines to the file with the variables and waits until the services run with them.
    ///
    /// Errors: the file cannot be written; not in time.
    pub async fn change_settings(&self, lines: &str) -> Result<()> {
        self.restarts_with(async || {
            let mut file = File::options().append(true).open(self.settings())?;
            file.write_all(lines.as_bytes())
                .context("writing the settings")
        })
        .await
    }

    /// Waits until the services that watch the file with the variables run with its `change`.
    async fn restarts_with(&self, change: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
        let names = ["api-server", "image-service", "webui"];
        let old: Vec<u32> = names
            .iter()
            .map(|name| self.pid(name))
            .collect::<Result<_>>()?;
        change().await?;
        for (name, old) in names.iter().zip(old) {
            self.is_back(name, old).await?;
        }
        Ok(())
    }

    /// Starts `atoll up` (again) on the same data and waits until everything is ready.
    ///
    /// Errors: it ends, or is not ready in time.
    pub async fn up(&mut self) -> Result<()> {
        ensure!(self.child.is_none(), "it runs already");
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.supervisor_log())?;
        let child = self
            .command()?
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("starting atoll up")?;
        let pid = child.id();
        self.child = Some(child);
        until("atoll up is ready", START_LIMIT, async || {
            if let Some(status) = self
                .child
                .as_mut()
                .map(Child::try_wait)
                .transpose()?
                .flatten()
            {
                bail!("atoll up ended before it was ready ({status})");
            }
            // The file of a killed run exists until the new one removes it.
            Ok(self
                .state()
                .ok()
                .filter(|state| state.pids.get("atoll") == Some(&pid)))
        })
        .await
        .map(drop)
    }

    /// The command that runs on this data.
    ///
    /// Errors: the program is missing.
    pub fn command(&self) -> Result<Command> {
        let mut command = Command::new(program("atoll")?);
        command
            .args(["up", "--supervised", "--data"])
            .arg(self.data());
        command.args(["--ports-from", &self.first_port.to_string()]);
        command.arg("--env-file").arg(self.settings());
        command.args(&self.arguments);
        Ok(command)
    }

    /// Its data directory.
    pub fn data(&self) -> PathBuf {
        self.scratch.path().join("data")
    }

    /// A folder beside the data, removed with it.
    ///
    /// Errors: it cannot be made.
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        let path = self.scratch.path().join(name);
        fs::create_dir_all(&path).with_context(|| format!("making {}", path.display()))?;
        Ok(path)
    }

    /// The file with the addresses of all services.
    pub fn state_file(&self) -> PathBuf {
        self.data().join("atoll.json")
    }

    /// Its current content.
    ///
    /// Errors: it does not exist, as while nothing runs.
    pub fn state(&self) -> Result<InstallationState> {
        let path = self.state_file();
        let text = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("reading {}", path.display()))
    }

    /// A client of its API.
    ///
    /// Errors: as [`Installation::state`].
    pub fn api(&self) -> Result<ApiClient> {
        ApiClient::new(&self.state()?.services.api_url)
    }

    /// Process of a service, of `postgres`, or of the supervisor, `atoll`.
    ///
    /// Errors: it does not run now.
    pub fn pid(&self, name: &str) -> Result<u32> {
        let pids = self.state()?.pids;
        let pid = pids.get(name).copied();
        pid.with_context(|| format!("{name} does not run: {pids:?}"))
    }

    /// Kills a service or the database with SIGKILL.
    ///
    /// Errors: it does not run now.
    pub fn kill(&self, name: &str) -> Result<u32> {
        let pid = self.pid(name)?;
        process::signal(pid, Signal::KILL)?;
        Ok(pid)
    }

    /// Waits until `name` runs as another process than `old`, and everything is ready.
    ///
    /// Errors: not in time.
    pub async fn is_back(&self, name: &str, old: u32) -> Result<()> {
        let condition = format!("{name} is restarted");
        until(&condition, RESTART_LIMIT, async || {
            Ok(self.pid(name).ok().filter(|pid| *pid != old))
        })
        .await?;
        self.is_ready().await
    }

    /// Waits until every service reports ready.
    ///
    /// Errors: not in time.
    pub async fn is_ready(&self) -> Result<()> {
        let services = self.state()?.services;
        let plain = crate::api::client(None)?;
        let trusting = crate::api::client(Some(&services.registry_ca))?;
        let page = services.ui_url.clone().context("there is no page")?;
        for (client, url) in [
            (&plain, services.api_url.clone()),
            (&plain, services.image_service_url.clone()),
            (&plain, page),
            (&trusting, format!("https://{}", services.registry)),
        ] {
            let url = format!("{url}/ready");
            until(&format!("{url} is ready"), RESTART_LIMIT, async || {
                let answer = client
                    .get(&url)
                    .timeout(Duration::from_secs(5))
                    .send()
                    .await;
                Ok(answer
                    .is_ok_and(|answer| answer.status().is_success())
                    .then_some(()))
            })
            .await?;
        }
        Ok(())
    }

    /// Kills the supervisor with SIGKILL. Its children exit by themselves; the database stays.
    ///
    /// Errors: it does not run.
    pub async fn kill_supervisor(&mut self) -> Result<()> {
        let mut child = self.child.take().context("nothing runs")?;
        child.kill().context("killing the supervisor")?;
        // Reaped before its pipe is closed: a closed pipe would shut it down.
        ended(&mut child, STOP_LIMIT).await
    }

    /// Shuts it down gracefully; the data stays for [`Installation::up`].
    ///
    /// Errors: it ends late, or with a failure.
    pub async fn down(&mut self) -> Result<()> {
        let mut child = self.child.take().context("nothing runs")?;
        drop(child.stdin.take());
        let result = ended(&mut child, STOP_LIMIT).await;
        let status = child.try_wait()?;
        self.child = Some(child);
        result?;
        self.child = None;
        ensure!(
            status.is_some_and(|status| status.success()),
            "atoll up ended with {status:?}"
        );
        Ok(())
    }

    /// Shuts it down gracefully, at the end of a successful test.
    ///
    /// Errors: as [`Installation::down`].
    pub async fn stop(mut self) -> Result<()> {
        self.down().await
    }

    /// Log of the supervisor.
    pub fn supervisor_log(&self) -> PathBuf {
        self.scratch.path().join("atoll-up.log")
    }

    /// The file with the variables that its services watch.
    pub fn settings(&self) -> PathBuf {
        self.data().join("demo/settings.env")
    }

    #[expect(clippy::print_stderr, reason = "shown with the failure of a test")]
    fn show_logs(&self) {
        let mut logs = vec![self.supervisor_log(), self.data().join("demo/host-sim.log")];
        logs.extend(
            [
                "postgres",
                "registry",
                "api-server",
                "image-service",
                "webui",
            ]
            .map(|name| self.data().join(format!("logs/{name}.log"))),
        );
        for path in logs {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let tail = &lines[lines.len().saturating_sub(LOG_TAIL)..];
            eprintln!("--- the end of {}:\n{}", path.display(), tail.join("\n"));
        }
    }
}

impl Drop for Installation {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Still running: the test has failed.
            self.show_logs();
            drop(child.stdin.take());
            // A test may have stopped it with SIGSTOP.
            process::signal(child.id(), Signal::CONT).ok();
            let deadline = Instant::now() + STOP_LIMIT;
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(50));
            }
            child.kill().ok();
            child.wait().ok();
        }
        process::end_postgres_of(&self.data());
        // Services whose supervisor was killed by a test, should they not exit by themselves.
        let data = self.data().display().to_string();
        for pid in process::find_all("atoll", &data) {
            process::signal(pid, Signal::KILL).ok();
        }
    }
}

async fn ended(child: &mut Child, limit: Duration) -> Result<()> {
    until("atoll up ends", limit, async || {
        Ok(child.try_wait()?.map(drop))
    })
    .await
}
