//! An unavailable database: agents get a retriable status, and none that makes them give up.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use reqwest::{Method, StatusCode, header};
use serde_json::{Value, json};
use system_tests::process::{self, Signal, program};
use system_tests::{ApiClient, Installation, free_ports, until};

/// Deadline of events that need no action.
const LIMIT: Duration = Duration::from_mins(2);
/// Id of an arbitrary machine.
const HOST: &str = "5b9f1f4e-2f0e-4c3e-9a57-6a6f8d1c0b11";
/// Statuses after which agents stop retrying.
const FINAL: [StatusCode; 4] = [
    StatusCode::UNAUTHORIZED,
    StatusCode::FORBIDDEN,
    StatusCode::NOT_FOUND,
    StatusCode::CONFLICT,
];

#[tokio::test]
async fn agents_get_retry_after_while_the_database_is_unavailable() -> Result<()> {
    let installation = Installation::with_content().await?;
    let api = installation.api()?;
    let agent = Agent::register(&installation).await?;
    let halted = StoppedProcess::new(installation.pid("atoll")?)?;
    let postmaster = installation.kill("postgres")?;
    until("the database is gone", LIMIT, async || {
        Ok((!process::lives(postmaster)).then_some(()))
    })
    .await?;
    agent.gets_retry_after(&api).await?;
    is_alive_and_not_ready(&api).await?;
    let late = SecondApiServer::start(&installation)?;
    late.listens().await?;
    agent.gets_retry_after(&late.api).await?;
    is_alive_and_not_ready(&late.api).await?;
    drop(halted);
    let (running, starting) = tokio::try_join!(
        ready_after_database(&installation, &api),
        ready_after_database(&installation, &late.api),
    )?;
    report(&format!(
        "ready after the database was: {:.3} s when it was away, {:.3} s at the first start",
        running.as_secs_f64(),
        starting.as_secs_f64()
    ));
    for api in [&api, &late.api] {
        agent.is_answered(api).await?;
    }
    drop(late);
    installation.stop().await
}

#[tokio::test]
async fn agents_wait_for_a_database_that_does_not_answer() -> Result<()> {
    let installation = Installation::with_content().await?;
    let api = installation.api()?;
    let agent = Agent::register(&installation).await?;
    let mut halted = Vec::new();
    let postmaster = installation.pid("postgres")?;
    // The postmaster first, so that it starts no more children.
    halted.push(StoppedProcess::new(postmaster)?);
    for child in process::children(postmaster) {
        halted.push(StoppedProcess::new(child)?);
    }
    is_alive_and_not_ready(&api).await?;
    agent.gets_retry_after(&api).await?;
    drop(halted);
    until("the API is ready", LIMIT, async || {
        Ok(api.probe("/ready").await?.status.is_success().then_some(()))
    })
    .await?;
    agent.is_answered(&api).await?;
    installation.stop().await
}

/// An agent's requests.
struct Agent {
    infra_env: String,
    step_id: String,
}

impl Agent {
    async fn register(installation: &Installation) -> Result<Self> {
        let api = installation.api()?;
        let secret = installation.state()?.services.registry().pull_secret()?;
        let body = json!({ "name": "early", "pull_secret": secret, "cpu_architecture": "x86_64" });
        let infra_env = api.succeed(Method::POST, "/v2/infra-envs", &body).await?;
        let infra_env = infra_env["id"].as_str().context("no id")?.to_owned();
        let agent = Self {
            infra_env,
            step_id: "inventory-00000000".to_owned(),
        };
        agent.is_answered(&api).await?;
        Ok(agent)
    }

    fn calls(&self) -> [(Method, String, Option<Value>); 4] {
        let hosts = format!("/v2/infra-envs/{}/hosts", self.infra_env);
        let host = format!("{hosts}/{HOST}");
        let registration = json!({ "host_id": HOST, "discovery_agent_version": "any" });
        let reply = json!({
            "step_id": self.step_id, "step_type": "ntp-synchronizer", "exit_code": 0, "error": "",
            "output": json!({ "ntp_sources": [] }).to_string(),
        });
        let progress = json!({ "current_stage": "Installing" });
        [
            (Method::POST, hosts, Some(registration)),
            (Method::GET, format!("{host}/instructions"), None),
            (Method::POST, format!("{host}/instructions"), Some(reply)),
            (Method::PUT, format!("{host}/progress"), Some(progress)),
        ]
    }

    /// Every request gets the one status after which agents retry.
    async fn gets_retry_after(&self, api: &ApiClient) -> Result<()> {
        for (method, path, body) in self.calls() {
            let began = Instant::now();
            let answer = api.ask(method.clone(), &path, body.as_ref()).await?;
            let after = answer.headers.get(header::RETRY_AFTER);
            let seconds = after.and_then(|value| value.to_str().ok()?.parse::<u32>().ok());
            ensure!(
                answer.status == StatusCode::SERVICE_UNAVAILABLE && seconds.is_some(),
                "{method} {path}: {} after {:?}, Retry-After {after:?}: {}",
                answer.status,
                began.elapsed(),
                answer.text()
            );
        }
        Ok(())
    }

    /// Registration, instructions and replies work; a stage is rejected, because this host installs nothing.
    async fn is_answered(&self, api: &ApiClient) -> Result<()> {
        let [register, instructions, reply, _] = self.calls();
        for (method, path, body) in [register, instructions, reply] {
            let answer = api.ask(method.clone(), &path, body.as_ref()).await?;
            let status = answer.status;
            ensure!(
                !FINAL.contains(&status),
                "{method} {path} freezes the agent: {status}"
            );
            ensure!(
                status.is_success(),
                "{method} {path}: {status} {}",
                answer.text()
            );
        }
        Ok(())
    }
}

async fn is_alive_and_not_ready(api: &ApiClient) -> Result<()> {
    until(
        "/ready reports the unavailable database",
        LIMIT,
        async || {
            let ready = api.probe("/ready").await?;
            let is_away = ready.status == StatusCode::SERVICE_UNAVAILABLE;
            Ok((is_away && ready.text().contains("database")).then_some(()))
        },
    )
    .await?;
    let health = api.probe("/health").await?;
    ensure!(
        health.status == StatusCode::OK,
        "/health: {}",
        health.status
    );
    Ok(())
}

/// Delay of the API's readiness after the database's.
async fn ready_after_database(installation: &Installation, api: &ApiClient) -> Result<Duration> {
    let log = installation.data().join("logs/postgres.log");
    let starts = || -> Result<usize> {
        let text = fs::read_to_string(&log)?;
        Ok(text.matches("ready to accept connections").count())
    };
    // The first start's line was logged before the installation was ready.
    until("the database is back", LIMIT, async || {
        Ok((starts()? > 1).then_some(()))
    })
    .await?;
    let since = Instant::now();
    until("the API is ready", LIMIT, async || {
        Ok(api.probe("/ready").await?.status.is_success().then_some(()))
    })
    .await?;
    Ok(since.elapsed())
}

/// A process stopped with SIGSTOP until drop.
struct StoppedProcess(u32);

impl StoppedProcess {
    fn new(pid: u32) -> Result<Self> {
        process::signal(pid, Signal::STOP)?;
        Ok(Self(pid))
    }
}

impl Drop for StoppedProcess {
    fn drop(&mut self) {
        process::signal(self.0, Signal::CONT).ok();
    }
}

/// A second API server on the same database, started while that is unavailable.
struct SecondApiServer {
    child: Child,
    api: ApiClient,
}

impl SecondApiServer {
    fn start(installation: &Installation) -> Result<Self> {
        let port = free_ports(1)?;
        let log = fs::File::create(installation.folder("late")?.join("api-server.log"))?;
        let child = Command::new(program("atoll")?)
            .args(["serve", "api-server", "--supervised", "--config"])
            .arg(installation.data().join("env/api-server.env"))
            .envs([
                ("API_LISTEN_ADDRESS", "127.0.0.1"),
                ("API_LISTEN_PORT", &port.to_string()),
                ("DB_HOST", "127.0.0.1"),
                ("DB_PORT", &installation.state()?.postgres_port.to_string()),
                ("DB_USER", "atoll"),
                ("DB_NAME", "installer"),
                ("DB_PASS", ""),
            ])
            .env(
                "DB_PASS_FILE",
                installation.data().join("secrets/database-password"),
            )
            .env("WORK_DIR", installation.folder("late")?)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("starting a second API server")?;
        let api = ApiClient::new(&format!("http://127.0.0.1:{port}"))?;
        Ok(Self { child, api })
    }

    async fn listens(&self) -> Result<()> {
        until("the second API server listens", LIMIT, async || {
            Ok(self.api.probe("/health").await.ok().map(drop))
        })
        .await
    }
}

impl Drop for SecondApiServer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[expect(clippy::print_stdout, reason = "a measurement, shown with --nocapture")]
fn report(text: &str) {
    println!("{text}");
}
