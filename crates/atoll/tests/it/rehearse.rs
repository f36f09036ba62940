//! `atoll rehearse`: installations of profiles and of a site file, and the mistakes that they name.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use api_server::Settings;
use api_server::settings::{BaseUrl, OsImages, ReleaseImages};
use serde_json::{Value, json};
use service::CancellationToken;
use service::server::Running;
use service::settings::{CommaList, Setting as _};
use tempfile::TempDir;
use testkit::ports::free_port;
use testkit::postgres::TestDatabase;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const SITE: &str = include_str!("../../../../docs/examples/site.yaml");
const VERSION: &str = "4.20.4";
/// Rehearsals that run at the same time.
const AT_ONCE: usize = 3;

fn atoll(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
    command.arg("rehearse").args(arguments).output().unwrap()
}

/// Exit code and report.
fn report(arguments: &[&str]) -> (Option<i32>, Value) {
    let output = atoll(arguments);
    let text = String::from_utf8_lossy(&output.stdout);
    let report = serde_json::from_str(&text).unwrap_or_else(|_| {
        panic!(
            "{arguments:?}: {text}\n{}",
            String::from_utf8_lossy(&output.stderr)
        )
    });
    (output.status.code(), report)
}

/// Id and host of each finding.
fn names(report: &Value) -> Vec<(&str, &str)> {
    let findings = report["findings"].as_array().unwrap();
    findings
        .iter()
        .map(|one| (one["id"].as_str().unwrap(), one["host"].as_str().unwrap()))
        .collect()
}

/// A server whose installations need no release image.
struct Server {
    url: String,
    shutdown: CancellationToken,
    running: Running,
    _database: TestDatabase,
    _work: TempDir,
}

impl Server {
    async fn start() -> Self {
        let database = testkit::postgres::database().await.unwrap();
        let work = tempfile::tempdir().unwrap();
        let port = free_port().unwrap();
        let url = format!("http://127.0.0.1:{port}");
        let release = json!([{ "openshift_version": "4.20", "version": VERSION, "cpu_architecture": "x86_64", "default": true,
            "url": "registry.example.com:5000/openshift/release:4.20.4" }]);
        let os = json!([{ "openshift_version": "4.20", "version": "420.1", "cpu_architecture": "x86_64",
            "url": "http://images/4.20.iso" }]);
        let settings = Settings {
            api_listen_address: Ipv4Addr::LOCALHOST.into(),
            api_listen_port: port,
            service_base_url: Some(BaseUrl(url.clone())),
            db_host: database.host.clone(),
            db_port: database.port,
            db_user: database.user.clone(),
            db_pass: database.password.clone().into(),
            db_name: database.name.clone(),
            work_dir: work.path().to_owned(),
            dummy_ignition: true,
            release_images: ReleaseImages::parse(&release.to_string()).unwrap(),
            os_images: OsImages::parse(&os.to_string()).unwrap(),
            agent_docker_image: "registry.example.com:5000/edge/agent:v1".to_owned(),
            installer_image: "registry.example.com:5000/edge/installer:v1".to_owned(),
            controller_image: "registry.example.com:5000/edge/controller:v1".to_owned(),
            public_container_registries: CommaList::parse("registry.example.com:5000").unwrap(),
            registries_conf_path: "/nowhere/registries.conf".into(),
            mirror_ca_path: "/nowhere/ca.pem".into(),
            cluster_monitor_interval: Duration::from_millis(300),
            ..Settings::default()
        };
        let shutdown = CancellationToken::new();
        let running = api_server::start(settings, shutdown.clone()).await.unwrap();
        let client = service::http_client(None, true).unwrap();
        let ready = format!("{url}/ready");
        while !client
            .get(&ready)
            .send()
            .await
            .is_ok_and(|response| response.status().is_success())
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Self {
            url,
            shutdown,
            running,
            _database: database,
            _work: work,
        }
    }

    async fn stop(self) {
        self.shutdown.cancel();
        self.running.wait().await.unwrap();
    }

    /// Reports of rehearsals on this server, in the order of their arguments.
    async fn reports(&self, runs: Vec<Vec<String>>) -> Vec<(Option<i32>, Value)> {
        let permits = Arc::new(Semaphore::new(AT_ONCE));
        let mut running = JoinSet::new();
        for (at, run) in runs.into_iter().enumerate() {
            let (url, permits) = (self.url.clone(), Arc::clone(&permits));
            running.spawn(async move {
                let _permit = permits.acquire_owned().await.unwrap();
                let report = tokio::task::spawn_blocking(move || {
                    let mut arguments = vec!["--json", "--server", &url, "--speedup", "300"];
                    arguments.extend(["--dummy-ignition", "--quiet", "20"]);
                    arguments.extend(run.iter().map(String::as_str));
                    report(&arguments)
                });
                (at, report.await.unwrap())
            });
        }
        let mut reports = running.join_all().await;
        reports.sort_by_key(|(at, _)| *at);
        reports.into_iter().map(|(_, report)| report).collect()
    }
}

#[test]
fn a_site_is_installed_by_a_server_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("site.yaml");
    fs::write(&file, SITE).unwrap();
    let output = atoll(&[file.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    assert!(text.contains("Verdict: installed, no mistakes."), "{text}");
    assert!(
        text.contains("control-2") && text.contains("Rebooting"),
        "{text}"
    );
}

/// Waits until a condition holds.
fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !holds() {
        assert!(Instant::now() < deadline, "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Process of the database in the temporary folder of a rehearsal below `folder`.
fn database_in(folder: &Path) -> Option<u32> {
    let rehearsals = fs::read_dir(folder).unwrap().flatten();
    let mut files = rehearsals.map(|one| one.path().join("data/postgres/data/postmaster.pid"));
    let text = files.find_map(|file| fs::read_to_string(file).ok())?;
    text.lines().next()?.parse().ok()
}

#[test]
fn a_killed_rehearsal_leaves_neither_database_nor_folder() {
    let folder = tempfile::tempdir().unwrap();
    // Postgres runs as another user under root and has to enter its folder.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut rehearsal = Command::new(env!("CARGO_BIN_EXE_atoll"))
        .args(["rehearse", "--profile", "3+0"])
        .env("TMPDIR", folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until("the database runs", || database_in(folder.path()).is_some());
    let database = database_in(folder.path()).unwrap();
    rehearsal.kill().unwrap();
    rehearsal.wait().unwrap();
    until("the folder is gone", || {
        fs::read_dir(folder.path()).unwrap().next().is_none()
    });
    let command = fs::read_to_string(format!("/proc/{database}/cmdline")).unwrap_or_default();
    assert!(!command.contains("postgres"), "{command}");
}

/// Changes of the good site: the id of the mistake, its host, and text with its replacement at the first place.
type Seeded = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

/// Mistakes that the server names; those that the data prove have their tests beside the table in `rules`.
static SEEDED: &[Seeded] = &[
    (
        "refused",
        "",
        &[("apiVIPs: [192.0.2.5]", "apiVIPs: [198.51.100.5]")],
    ),
    (
        "refused",
        "",
        &[("apiVIPs: [192.0.2.5]", "apiVIPs: [192.0.2.6]")],
    ),
    (
        "refused",
        "",
        &[("cidr: 10.128.0.0/14", "cidr: 192.0.0.0/14")],
    ),
    ("refused", "", &[("- 172.30.0.0/16", "- 10.130.0.0/16")]),
    (
        "refused",
        "",
        &[("pullSecret: '{\"auths\"", "pullSecret: '{\"auth\"")],
    ),
    (
        "refused",
        "",
        &[("  name: site-1\nbase", "  name: Site_1\nbase")],
    ),
    (
        "refused",
        "",
        &[("baseDomain: example.com", "baseDomain: example..com")],
    ),
    (
        "refused",
        "",
        &[("NTPSources: [192.0.2.2]", "NTPSources: ['ntp 1']")],
    ),
    (
        "refused",
        "",
        &[(
            "kind: AgentConfig",
            "kind: AgentConfig\nrendezvousIP: 192.0.2.256",
        )],
    ),
    (
        "refused",
        "",
        &[("architecture: amd64", "architecture: riscv64")],
    ),
    (
        "hostname-unique",
        "control-0",
        &[("hostname: control-1", "hostname: control-0")],
    ),
    (
        "has-memory-for-role",
        "control-0",
        &[("ramMebibytes: 65536", "ramMebibytes: 8192")],
    ),
    (
        "has-cpu-cores-for-role",
        "control-0",
        &[("count: 16", "count: 2")],
    ),
    (
        "has-min-valid-disks",
        "control-0",
        &[("sizeBytes: 480000000000", "sizeBytes: 64000000000")],
    ),
    (
        "sufficient-masters-count",
        "",
        &[(
            "hostname: control-1\n  role: master",
            "hostname: control-1\n  role: worker",
        )],
    ),
    (
        "belongs-to-machine-cidr",
        "control-1",
        &[("ip: 192.0.2.11", "ip: 198.51.100.11")],
    ),
    (
        "has-default-route",
        "control-0",
        &[("destination: 0.0.0.0/0", "destination: 10.8.0.0/16")],
    ),
    (
        "ntp-synced",
        "control-0",
        &[
            ("NTPSources: [192.0.2.2]", "NTPSources: [10.9.9.9]"),
            ("destination: 0.0.0.0/0", "destination: 10.8.0.0/16"),
        ],
    ),
    (
        "ingress-vips-valid",
        "",
        &[("ingressVIPs: [192.0.2.6]", "ingressVIPs: [192.0.2.12]")],
    ),
    (
        "api-vips-valid",
        "",
        &[("apiVIPs: [192.0.2.5]", "apiVIPs: [192.0.2.11]")],
    ),
];

fn changed(folder: &Path, at: usize, changes: &[(&str, &str)]) -> String {
    let text = changes.iter().fold(SITE.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    });
    let file = folder.join(format!("{at}.yaml"));
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_of_twenty_mistakes_are_named_by_the_installation() {
    let server = Server::start().await;
    let folder = tempfile::tempdir().unwrap();
    let files = SEEDED.iter().enumerate();
    let files = files.map(|(at, (_, _, changes))| vec![changed(folder.path(), at, changes)]);
    let reports = server.reports(files.collect()).await;
    let mut missed = Vec::new();
    for ((id, host, changes), (code, report)) in SEEDED.iter().zip(&reports) {
        if *code != Some(1) || !names(report).contains(&(*id, *host)) {
            missed.push(format!("{id} {host} {changes:?}: {code:?} {report}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    assert_eq!(SEEDED.len(), 20);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn profiles_are_installed_or_their_fault_is_named() {
    let expected: &[(&[&str], &str)] = &[
        (&["--profile", "3+0"], ""),
        (&["--profile", "3+2"], ""),
        (&["--profile", "5+0"], ""),
        (&["--profile", "sno"], ""),
        (&["--profile", "tna"], ""),
        (&["--profile", "gpu"], ""),
        (&["--profile", "day2"], ""),
        (
            &["--profile", "slow-disk"],
            "disk_speed_slower_than_supported",
        ),
        (&["--profile", "bad-ntp"], "ntp-synced"),
        (&["--profile", "duplicate-identity"], "host-id-unique"),
        (
            &["--profile", "boot-order"],
            "installing-pending-user-action",
        ),
        (&["--profile", "lost-medium"], "media-connected"),
        (
            &["--profile", "3+2", "--fault", "ram@worker-1"],
            "has-min-memory",
        ),
        (
            &["--profile", "3+0", "--fault", "images@master-0"],
            "preparation-failed",
        ),
        (
            &["--profile", "3+2", "--fault", "network@worker-0"],
            "belongs-to-majority-group",
        ),
        (
            &["--profile", "3+0", "--fault", "clock"],
            "time-synced-between-host-and-service",
        ),
        (&["--profile", "3+0", "--fault", "write@master-1"], "error"),
        (&["--profile", "3+0", "--fault", "power@master-1"], "error"),
        (
            &["--profile", "3+0", "--fault", "late", "--fault", "replies"],
            "",
        ),
    ];
    let server = Server::start().await;
    let owned = |run: &&[&str]| run.iter().map(|text| (*text).to_owned()).collect();
    let runs = expected.iter().map(|(run, _)| owned(run)).collect();
    let mut missed = Vec::new();
    for ((run, id), (code, report)) in expected.iter().zip(server.reports(runs).await) {
        let names = names(&report);
        let is_right = match *id {
            "" => code == Some(0),
            id => code == Some(1) && names.iter().any(|(name, _)| *name == id),
        };
        if !is_right {
            missed.push(format!("{run:?} {id}: {code:?} {report}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seed_chooses_the_host_of_a_fault() {
    let server = Server::start().await;
    let run = |seed: &str| {
        let run = ["--profile", "5+0", "--fault", "ram", "--seed", seed];
        run.map(str::to_owned).to_vec()
    };
    let reports = server.reports(vec![run("1"), run("1"), run("3")]).await;
    let hosts: Vec<_> = reports
        .iter()
        .map(|(_, report)| {
            let names = names(report);
            let found = names.iter().find(|(id, _)| *id == "has-min-memory");
            found.map(|(_, host)| (*host).to_owned())
        })
        .collect();
    assert!(hosts[0].is_some(), "{reports:?}");
    assert_eq!(hosts[0], hosts[1]);
    // The records are removed at the end.
    let client = service::http_client(None, true).unwrap();
    let list = format!("{}/api/assisted-install/v2/clusters", server.url);
    let left = client.get(list).send().await.unwrap().text().await.unwrap();
    assert_eq!(left.trim(), "[]");
    server.stop().await;
}

#[test]
fn wrong_usage_has_a_code_of_its_own() {
    let output = atoll(&["/nonexistent/site.yaml"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("/nonexistent/site.yaml"), "{text}");
    let output = atoll(&["--profile", "3+0", "--check", "--fault", "fan"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("boot-order"));
    let output = atoll(&["--list"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("lost-medium") && text.contains("boot-order"),
        "{text}"
    );
}
