//! The README's commands, with the programs that users run.

use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use system_tests::pod::{Engine, Folder, PORTS};
use system_tests::{free_ports, until};

use crate::name_server::{NameServer, PrintedResponse};
use crate::{Trials, say};

/// Path of podman-compose; `cargo xtask test --full` sets it.
const PROGRAM: &str = "PODMAN_COMPOSE";
/// Containers start, the database is made, names become known.
const READY_LIMIT: Duration = Duration::from_mins(3);
/// Services with replicas, and the variables of their numbers.
const SCALED: [(&str, &str); 3] = [
    ("api-server", "API_SERVER_REPLICAS"),
    ("image-service", "IMAGE_SERVICE_REPLICAS"),
    ("webui", "WEBUI_REPLICAS"),
];
/// Published ports: the variable, and the port of a Kubernetes file; those that answer `/ready` without TLS
/// first.
const PUBLISHED: [(&str, u16); 9] = [
    ("PUBLISH_API", 8090),
    ("PUBLISH_IMAGES", 8888),
    ("PUBLISH_WEBUI", 8080),
    ("PUBLISH_WEBUI_STATIC", 8989),
    ("PUBLISH_REGISTRY", 5000),
    ("PUBLISH_DB", 5432),
    ("PUBLISH_CATALOG", 50051),
    ("PUBLISH_HTTP", 80),
    ("PUBLISH_HTTPS", 443),
];
const ASKED: u16 = 3;
/// Network domain of a pod whose host is an address.
const DOMAIN: &str = "atoll.internal";
/// Network of `podman play kube`.
const KUBE_NETWORK: &str = "podman-default-kube-network";
/// The files of `podman play kube`.
const KUBE_FILES: [&str; 2] = ["pod.yml", "catalog.yml"];

pub(crate) fn add(trials: &mut Trials) {
    trials.add_long(
        "podman_compose::applies_changes_and_keeps_data",
        applies_changes,
    );
    trials.add_long("podman_compose::names_are_those_of_dns", names_are_of_dns);
    trials.add_long("podman_compose::saves_and_restores", saves_and_restores);
    trials.add_long("podman_compose::play_kube_runs_the_same", plays_kube);
}

async fn applies_changes(_engine: Engine) -> Result<()> {
    let project = Project::new()?;
    let began = Instant::now();
    project.compose(&["up", "-d"])?;
    project.place.is_ready().await?;
    say(&format!(
        "podman-compose up, cold: ready after {:.1} s",
        began.elapsed().as_secs_f64()
    ));
    project.sql("create table kept as select 7 as number")?;
    for (count, time_source) in [("3", "192.0.2.7"), ("1", "192.0.2.8")] {
        let folder = &project.place.folder;
        folder.set(SCALED.map(|(_, variable)| (variable, count.to_owned())))?;
        folder.set([("NTP_DEFAULT_SERVER", time_source.to_owned())])?;
        project.apply()?;
        project.place.is_ready().await?;
        for (service, _) in SCALED {
            let running = project.running(service)?;
            ensure!(running == count, "{running} of {service}, not {count}");
        }
        // compose.yaml does not name this one: it is set in the env file alone.
        let own = podman(&[
            "inspect",
            "-f",
            "{{.Config.Env}}",
            &project.container("api-server"),
        ])?;
        ensure!(
            own.contains(&format!("NTP_DEFAULT_SERVER={time_source}")),
            "{own}"
        );
    }
    project.compose(&["down"])?;
    project.compose(&["up", "-d"])?;
    project.place.is_ready().await?;
    project.still_has_it()
}

/// As at a site: clients and services ask one name server, which knows the names of the network domain.
async fn names_are_of_dns(_engine: Engine) -> Result<()> {
    let project = Project::new()?;
    let (server, gateway) = (project.address(53), project.address(1));
    let folder = &project.place.folder;
    let compose = folder.path().join("compose.yaml");
    let text = fs::read_to_string(&compose)?;
    let own = r#"dns: ["${GATEWAY:-10.123.7.1}"]"#;
    ensure!(text.contains(own), "compose.yaml has no {own}");
    fs::write(&compose, text.replace(own, &format!("dns: [{server}]")))?;
    // Plain: the authority of these tests is trusted by no service.
    let [api, images] = ["PUBLISH_API", "PUBLISH_IMAGES"].map(|port| project.place.port(port));
    folder.set([
        (
            "SERVICE_BASE_URL",
            format!("http://service.{DOMAIN}:{}", api?),
        ),
        (
            "IMAGE_SERVICE_BASE_URL",
            format!("http://images.{DOMAIN}:{}", images?),
        ),
    ])?;
    project.compose(&["up", "-d"])?;
    let network = format!("{}_default", project.place.name);
    let names = NameServer::start(&network, Some(server), DOMAIN).await?;
    project.place.is_ready().await?;
    project.place.serves_its_names(&names).await?;
    let proxy = project.container("proxy");
    project.place.takes_over_settings(&names, &proxy).await?;
    for cluster in ["api.one", "console-openshift-console.apps.one"] {
        let found = names.resolves(&format!("{cluster}.{DOMAIN}"))?;
        ensure!(found == gateway.to_string(), "{cluster}: {found}");
    }
    // The API server asks both URLs, by name, from within its container.
    let url = format!(
        "http://127.0.0.1:{}/api/assisted-install/v2/doctor",
        project.place.port("PUBLISH_API")?
    );
    until("base URLs answer by name", READY_LIMIT, async || {
        let report = system_tests::client(None)?.get(&url).send().await?;
        let report: Value = report.json().await?;
        let checks = report["checks"].as_array();
        let mut findings = checks
            .into_iter()
            .flatten()
            .map(|check| check["finding"].as_str().unwrap_or_default());
        let answers = ["service", "images"].iter().all(|label| {
            let start = format!("http://{label}.{DOMAIN}:");
            findings.any(|text| text.starts_with(&start) && text.ends_with(" answers"))
        });
        Ok(answers.then_some(()))
    })
    .await
}

async fn saves_and_restores(_engine: Engine) -> Result<()> {
    let project = Project::new()?;
    project.compose(&["up", "-d"])?;
    project.place.is_ready().await?;
    project.sql("create table kept as select 7 as number")?;
    let dump = project
        .place
        .folder
        .beside("backup")?
        .join("installer.dump");
    let db = project.container("db");
    let mut save = Command::new("podman");
    save.args(["exec", &db, "pg_dump", "-Fc", "installer"]);
    succeed(save.stdout(File::create(&dump)?))?;
    project.sql("delete from kept; insert into kept values (8)")?;
    project.compose(&["stop", "api-server"])?;
    let mut restore = Command::new("podman");
    restore.args(["exec", "-i", &db, "pg_restore", "--clean", "--if-exists"]);
    restore.args(["--single-transaction", "-d", "installer"]);
    succeed(restore.stdin(File::open(&dump)?))?;
    project.compose(&["start", "api-server"])?;
    project.place.is_ready().await?;
    project.still_has_it()
}

async fn plays_kube(_engine: Engine) -> Result<()> {
    let pod = Kube::new()?;
    pod.play()?;
    pod.place.is_ready().await?;
    let names = NameServer::start(KUBE_NETWORK, None, DOMAIN).await?;
    pod.place.serves_its_names(&names).await?;
    let proxy = format!("{}-proxy", pod.place.name);
    pod.place.takes_over_settings(&names, &proxy).await?;
    let sql = |statement: &str| pod.exec("db", &["psql", "-qtAc", statement, "installer"]);
    sql("create table kept as select 7 as number")?;
    pod.stop()?;
    pod.play()?;
    pod.place.is_ready().await?;
    let kept = sql("select number from kept")?;
    ensure!(kept.trim() == "7", "{kept:?}");
    pod.exec("registry", &["/registry", "health", "--ready"])?;
    until("catalogs are served", READY_LIMIT, async || {
        let health = pod.exec("catalog-catalog", &["/catalog-server", "health", "--ready"]);
        Ok(health.ok())
    })
    .await?;
    Ok(())
}

/// A folder of a pod with its ports, and a unique name.
pub(crate) struct ComposeFolder {
    pub(crate) name: String,
    /// Unique in this process.
    number: u32,
    pub(crate) folder: Folder,
    first_port: u16,
    /// Working directory of commands: the folder, or the restored backup of it.
    current: PathBuf,
}

impl ComposeFolder {
    fn new(kind: &str) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = Folder::new("127.0.0.1")?;
        let place = Self {
            name: format!("atoll-test-{kind}-{}-{number}", std::process::id()),
            number,
            current: folder.path(),
            folder,
            first_port: free_ports(PORTS)?,
        };
        let ports = place
            .ports()
            .map(|((name, _), port)| (name, port.to_string()));
        place.folder.set(ports)?;
        Ok(place)
    }

    fn ports(&self) -> impl Iterator<Item = ((&'static str, u16), u16)> {
        PUBLISHED.into_iter().zip(self.first_port..)
    }

    /// The port that a variable publishes.
    pub(crate) fn port(&self, variable: &str) -> Result<u16> {
        let found = self.ports().find(|((name, _), _)| *name == variable);
        found
            .map(|(_, port)| port)
            .with_context(|| format!("{variable} publishes nothing"))
    }

    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.current_dir(&self.current).stdin(Stdio::null());
        command
    }

    async fn is_ready(&self) -> Result<()> {
        for port in self.first_port..self.first_port + ASKED {
            port_is_ready(port).await?;
        }
        Ok(())
    }

    /// Asks the names of the network domain, as clients that trust its authority.
    async fn serves_its_names(&self, names: &NameServer) -> Result<()> {
        let downloads = self.folder.path().join("downloads/pub/downloads");
        fs::write(downloads.join("tool.tar"), "content")?;
        let (http, https) = (self.port("PUBLISH_HTTP")?, self.port("PUBLISH_HTTPS")?);
        let authority = self.folder.path().join("secrets/proxy/ca.crt");
        for (label, path, status, text) in [
            ("api", "/api/assisted-install/v2/clusters", 200, "[]"),
            ("web", "/", 200, "<html"),
            ("service", "/api/assisted-install/v2/clusters", 200, "[]"),
            ("registry", "/v2/", 401, "UNAUTHORIZED"),
            ("mirror", "/pub/downloads/tool.tar", 200, "content"),
            ("mirror", "/pub/downloads/", 200, "tool.tar"),
        ] {
            let url = format!("https://{label}.{DOMAIN}:{https}{path}");
            until(&url, READY_LIMIT, async || {
                let answer = names.get(&url, &authority)?;
                let PrintedResponse {
                    status: found,
                    headers,
                    body,
                } = answer;
                if found == 503 {
                    return Ok(None);
                }
                let is_secured = headers.contains("\nstrict-transport-security:");
                ensure!(is_secured == (label != "registry"), "{url}: {headers}");
                ensure!(
                    found == status && body.contains(text),
                    "{url}: {found} {body}"
                );
                Ok(Some(()))
            })
            .await?;
        }
        let plain = format!("http://web.{DOMAIN}:{http}/x?y");
        let answer = names.get(&plain, &authority)?;
        let target = format!("\nlocation: https://web.{DOMAIN}");
        ensure!(
            answer.status == 301 && answer.headers.contains(&target),
            "{plain}: {} {}",
            answer.status,
            answer.headers
        );
        Ok(())
    }

    /// Edits the settings of the proxy: it takes them over, and its container is not restarted.
    async fn takes_over_settings(&self, names: &NameServer, container: &str) -> Result<()> {
        let started = || podman(&["inspect", "-f", "{{.State.StartedAt}}", container]);
        let (before, https) = (started()?, self.port("PUBLISH_HTTPS")?);
        self.folder.set_proxy([
            ("API_HOST", "moved".to_owned()),
            ("WEB_URL", "http://api-server:8090".to_owned()),
            ("HSTS", "max-age=7".to_owned()),
            ("ACCESS_LOG", "true".to_owned()),
        ])?;
        let authority = self.folder.path().join("secrets/proxy/ca.crt");
        let is_answered = async |label: &str, path: &str, expected: (u16, &str)| {
            let url = format!("https://{label}.{DOMAIN}:{https}{path}");
            until(&url, READY_LIMIT, async || {
                let answer = names.get(&url, &authority)?;
                let is_new = answer
                    .headers
                    .contains("\nstrict-transport-security: max-age=7");
                let is_answered = answer.status == expected.0 && is_new;
                Ok((is_answered && answer.body.contains(expected.1)).then_some(()))
            })
            .await
        };
        is_answered("moved", "/api/assisted-install/v2/clusters", (200, "[]")).await?;
        // The page has none of these.
        is_answered("web", "/api/assisted-install/v2/none", (404, "code")).await?;
        let log = podman(&["logs", container])?;
        ensure!(log.contains(&format!("moved.{DOMAIN}")), "{log}");
        // One that cannot be used leaves all in force.
        self.folder.set_proxy([
            ("API_HOST", "a b".to_owned()),
            ("WEB_URL", "http://none:1".to_owned()),
        ])?;
        until("the log names the setting", READY_LIMIT, async || {
            // The second stream of the container is that of podman.
            let script = format!("podman logs {container} 2>&1");
            let log = succeed(Command::new("sh").args(["-c", &script]))?;
            let is_named = log
                .lines()
                .any(|line| line.contains("not reloaded") && line.contains("API_HOST"));
            Ok(is_named.then_some(()))
        })
        .await?;
        is_answered("moved", "/api/assisted-install/v2/clusters", (200, "[]")).await?;
        self.folder.set_proxy([("API_HOST", "moved".to_owned())])?;
        is_answered("web", "/", (503, "")).await?;
        ensure!(started()? == before, "{container} was restarted");
        Ok(())
    }

    /// Waits for the API alone: without boot images, the image service is never ready.
    pub(crate) async fn api_is_ready(&self) -> Result<()> {
        port_is_ready(self.port("PUBLISH_API")?).await
    }
}

async fn port_is_ready(port: u16) -> Result<()> {
    let client = system_tests::client(None)?;
    let url = format!("http://127.0.0.1:{port}/ready");
    until(&url, READY_LIMIT, async || {
        let answer = client.get(&url).send().await;
        Ok(answer
            .is_ok_and(|answer| answer.status().is_success())
            .then_some(()))
    })
    .await
}

/// A project of podman-compose, removed on drop.
pub(crate) struct Project {
    program: PathBuf,
    pub(crate) place: ComposeFolder,
}

impl Project {
    pub(crate) fn new() -> Result<Self> {
        let program = std::env::var_os(PROGRAM);
        let project = Self {
            program: program
                .map(PathBuf::from)
                .with_context(|| format!("{PROGRAM} names no program"))?,
            place: ComposeFolder::new("compose")?,
        };
        project.place.folder.set([
            ("SUBNET", format!("{}/24", project.address(0))),
            ("GATEWAY", project.address(1).to_string()),
        ])?;
        Ok(project)
    }

    /// An address of its network.
    fn address(&self, host: u8) -> Ipv4Addr {
        // One of 250 networks, probably unused; projects of concurrent tests have different ones.
        let third = std::process::id().wrapping_add(self.place.number) % 250;
        let [third, ..] = third.to_le_bytes();
        Ipv4Addr::new(10, 124, third, host)
    }

    /// Applies changes as the README documents.
    fn apply(&self) -> Result<()> {
        self.compose(&["up", "-d", "--force-recreate", "--remove-orphans"])
    }

    /// Changes the working directory to the folder of a restored backup.
    pub(crate) fn moved_to(&mut self, folder: &Path) {
        folder.clone_into(&mut self.place.current);
    }

    pub(crate) fn compose(&self, arguments: &[&str]) -> Result<()> {
        let mut command = self.place.command(&self.program);
        command.args(["-p", &self.place.name]).args(arguments);
        succeed(&mut command).map(drop)
    }

    fn container(&self, service: &str) -> String {
        format!("{}_{service}_1", self.place.name)
    }

    fn sql(&self, statement: &str) -> Result<String> {
        let db = self.container("db");
        podman(&["exec", &db, "psql", "-qtAc", statement, "installer"])
    }

    fn still_has_it(&self) -> Result<()> {
        let kept = self.sql("select number from kept")?;
        ensure!(kept.trim() == "7", "{kept:?}");
        Ok(())
    }

    fn running(&self, service: &str) -> Result<String> {
        let filter = format!("name=^{}_{service}_[0-9]+$", self.place.name);
        let names = podman(&["ps", "--filter", &filter, "--format", "{{.Names}}"])?;
        Ok(names.lines().count().to_string())
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        if let Err(error) = self.compose(&["down", "-v", "--remove-orphans"]) {
            say(&format!("{} stays: {error:#}", self.place.name));
        }
    }
}

/// The pods of `podman play kube`, removed on drop.
struct Kube {
    place: ComposeFolder,
}

impl Kube {
    fn new() -> Result<Self> {
        let place = ComposeFolder::new("kube")?;
        for file in KUBE_FILES {
            let path = place.folder.path().join(file);
            let mut text = fs::read_to_string(&path)?
                .replace("\n  name: atoll", &format!("\n  name: {}", place.name))
                .replace("claimName: atoll_", &format!("claimName: {}_", place.name));
            for ((_, usual), port) in place.ports() {
                for end in [" }", ","] {
                    let usual = format!("hostPort: {usual}{end}");
                    text = text.replace(&usual, &format!("hostPort: {port}{end}"));
                }
            }
            fs::write(&path, text)?;
        }
        Ok(Self { place })
    }

    fn play(&self) -> Result<()> {
        let mut configmap = self.place.command(system_tests::process::program("atoll")?);
        let config = succeed(configmap.args(["pod", "configmap"]))?;
        fs::write(self.place.folder.path().join("config.yml"), config)?;
        KUBE_FILES.iter().try_for_each(|file| {
            let mut play = self.place.command("podman");
            succeed(play.args(["play", "kube", "--configmap", "config.yml", file])).map(drop)
        })
    }

    fn stop(&self) -> Result<()> {
        KUBE_FILES.iter().try_for_each(|file| {
            let mut stop = self.place.command("podman");
            succeed(stop.args(["play", "kube", "--down", file])).map(drop)
        })
    }

    fn exec(&self, service: &str, command: &[&str]) -> Result<String> {
        let container = format!("{}-{service}", self.place.name);
        podman(&[&["exec", &container], command].concat())
    }
}

impl Drop for Kube {
    fn drop(&mut self) {
        self.stop().ok();
        for volume in ["db", "registry", "api", "image", "catalog"] {
            let name = format!("{}_{volume}", self.place.name);
            if let Err(error) = podman(&["volume", "rm", &name]) {
                say(&format!("{name} stays: {error:#}"));
            }
        }
    }
}

pub(crate) fn podman(arguments: &[&str]) -> Result<String> {
    succeed(Command::new("podman").args(arguments).stdin(Stdio::null()))
}

/// Standard output of a command. Errors: it fails.
pub(crate) fn succeed(command: &mut Command) -> Result<String> {
    let output = command.output()?;
    ensure!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
