//! compose.yaml by the program that people run it with.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use system_tests::pod::Engine;
use system_tests::process::program;
use system_tests::{Scratch, free_ports, until};

use crate::{Trials, say};

/// Names podman-compose; `cargo xtask test --full` sets it.
const PROGRAM: &str = "PODMAN_COMPOSE";
/// Containers start, the database is made, names become known.
const READY_LIMIT: Duration = Duration::from_mins(3);
/// Services that can have replicas, and the variables that say how many.
const SCALED: [(&str, &str); 3] = [
    ("api-server", "API_SERVER_REPLICAS"),
    ("image-service", "IMAGE_SERVICE_REPLICAS"),
    ("webui", "WEBUI_REPLICAS"),
];
/// What is published, in the order of the ports of a test.
const PUBLISHED: [&str; 6] = [
    "PUBLISH_API",
    "PUBLISH_IMAGES",
    "PUBLISH_WEBUI",
    "PUBLISH_WEBUI_STATIC",
    "PUBLISH_REGISTRY",
    "PUBLISH_DB",
];

pub(crate) fn add(trials: &mut Trials) {
    trials.add_long("podman_compose::scales_and_keeps_data", scales_and_keeps);
}

async fn scales_and_keeps(_engine: Engine) -> Result<()> {
    let project = Project::new()?;
    let began = Instant::now();
    project.up()?;
    project.is_ready().await?;
    say(&format!(
        "podman-compose up, cold: ready after {:.1} s",
        began.elapsed().as_secs_f64()
    ));
    project.sql("create table kept as select 7 as number")?;
    for count in ["3", "1"] {
        project.set(SCALED.map(|(_, variable)| (variable, count.to_owned())))?;
        project.up()?;
        project.is_ready().await?;
        for (service, _) in SCALED {
            let running = project.running(service)?;
            ensure!(running == count, "{running} of {service}, not {count}");
        }
    }
    project.compose(&["down"])?;
    project.up()?;
    project.is_ready().await?;
    let kept = project.sql("select number from kept")?;
    ensure!(kept.trim() == "7", "{kept:?}");
    Ok(())
}

/// A project of podman-compose; it goes with this value.
struct Project {
    program: PathBuf,
    name: String,
    scratch: Scratch,
    first_port: u16,
}

impl Project {
    fn new() -> Result<Self> {
        let program_of_people = std::env::var_os(PROGRAM);
        let project = Self {
            program: program_of_people
                .map(PathBuf::from)
                .with_context(|| format!("{PROGRAM} names no program"))?,
            name: format!("atoll-test-{}", std::process::id()),
            scratch: Scratch::new()?,
            first_port: free_ports(6)?,
        };
        let init = Command::new(program("atoll")?)
            .args(["pod", "init", "--host", "127.0.0.1", "--dir"])
            .arg(project.scratch.path())
            .output()?;
        ensure!(init.status.success(), "atoll pod init: {init:?}");
        // One of 250 networks that nobody else is likely to have.
        let third = std::process::id() % 250;
        let ports = (project.first_port..).zip(PUBLISHED);
        project.set(ports.map(|(port, name)| (name, port.to_string())))?;
        project.set([
            ("SUBNET", format!("10.124.{third}.0/24")),
            ("GATEWAY", format!("10.124.{third}.1")),
        ])?;
        Ok(project)
    }

    /// Writes lines below the others: the last one of a name counts.
    fn set<'a>(&self, changes: impl IntoIterator<Item = (&'a str, String)>) -> Result<()> {
        let path = self.scratch.path().join(".env");
        let mut text = fs::read_to_string(&path)?;
        for (name, value) in changes {
            text.extend([name, "=", &value, "\n"]);
        }
        Ok(fs::write(&path, text)?)
    }

    fn up(&self) -> Result<()> {
        self.compose(&["up", "-d", "--remove-orphans"])
    }

    fn compose(&self, arguments: &[&str]) -> Result<()> {
        let output = Command::new(&self.program)
            .current_dir(self.scratch.path())
            .args(["-p", &self.name])
            .args(arguments)
            .output()
            .context("running podman-compose")?;
        ensure!(
            output.status.success(),
            "podman-compose {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }

    /// Through the published ports; the registry, whose certificate is nobody's, asks itself.
    async fn is_ready(&self) -> Result<()> {
        for port in self.first_port..self.first_port + 3 {
            let url = format!("http://127.0.0.1:{port}/ready");
            until(&url, READY_LIMIT, async || {
                let answer = reqwest::get(&url).await;
                Ok(answer
                    .is_ok_and(|answer| answer.status().is_success())
                    .then_some(()))
            })
            .await?;
        }
        until("the registry is ready", READY_LIMIT, async || {
            Ok(self
                .exec("registry", &["/registry", "health", "--ready"])
                .ok())
        })
        .await
        .map(drop)
    }

    fn sql(&self, statement: &str) -> Result<String> {
        self.exec("db", &["psql", "-qtAc", statement, "installer"])
    }

    /// Runs a command in the first container of a service.
    fn exec(&self, service: &str, command: &[&str]) -> Result<String> {
        let container = format!("{}_{service}_1", self.name);
        podman(&[&["exec", &container], command].concat())
    }

    fn running(&self, service: &str) -> Result<String> {
        let filter = format!("name=^{}_{service}_[0-9]+$", self.name);
        let names = podman(&["ps", "--filter", &filter, "--format", "{{.Names}}"])?;
        Ok(names.lines().count().to_string())
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        if let Err(error) = self.compose(&["down", "-v", "--remove-orphans"]) {
            say(&format!("{} stays: {error:#}", self.name));
        }
    }
}

fn podman(arguments: &[&str]) -> Result<String> {
    let output = Command::new("podman").args(arguments).output()?;
    ensure!(
        output.status.success(),
        "podman {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
