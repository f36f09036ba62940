//! The pod file of the specification: one pod, a ConfigMap, folders of root on the host. Only names and ports are ours.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use reqwest::Method;
use serde_json::json;
use system_tests::pod::Engine;
use system_tests::{ApiClient, ApiSnapshot, Scratch, free_ports, until};

use crate::podman_compose::succeed;
use crate::{Trials, say};

/// The places where common images of PostgreSQL keep their data.
const DATABASE_MOUNTS: [&str; 3] = [
    "/var/lib/pgsql",
    "/var/lib/pgsql/data",
    "/var/lib/postgresql/data",
];
/// User of the database's container, and of the other ones.
const DATABASE_USER: u32 = 999;
const USER: u32 = 10001;
const LIMIT: Duration = Duration::from_mins(2);

pub(crate) fn add(trials: &mut Trials) {
    trials.add(
        "documented_pod::keeps_its_data_in_folders_of_root",
        keeps_data,
    );
    trials.add(
        "documented_pod::without_a_mount_the_database_does_not_start",
        refuses_without_mount,
    );
}

async fn keeps_data(_engine: Engine) -> Result<()> {
    for mount in DATABASE_MOUNTS {
        let pod = DocumentedPod::new(Some(mount))?;
        pod.play()?;
        let api = ApiClient::new(&format!("http://127.0.0.1:{}", pod.port))?;
        pod.is_ready().await?;
        let secret = json!({ "auths": { "quay.io": { "auth": "YTpi" } } }).to_string();
        let infra_env =
            json!({ "name": "kept", "pull_secret": secret, "cpu_architecture": "x86_64" });
        api.succeed(Method::POST, "/v2/infra-envs", &infra_env)
            .await?;
        let before = ApiSnapshot::take(&api).await?;
        pod.stop()?;
        pod.play()?;
        pod.is_ready().await?;
        before.holds(&api).await.context(mount)?;
        for (folder, user) in [("db", DATABASE_USER), ("api", USER), ("image", USER)] {
            let owner = fs::metadata(pod.folder(folder))?.uid();
            ensure!(owner == user, "{mount}: {folder} belongs to {owner}");
        }
    }
    Ok(())
}

async fn refuses_without_mount(_engine: Engine) -> Result<()> {
    let pod = DocumentedPod::new(None)?;
    pod.play()?;
    let log = until("the database exits", LIMIT, async || {
        let log = pod.log("db")?;
        Ok(log.contains("POSTGRESQL_EPHEMERAL").then_some(log))
    })
    .await?;
    ensure!(log.contains("no volume is mounted"), "{log}");
    say(log.trim());
    Ok(())
}

/// A pod of `podman play kube`, removed on drop.
struct DocumentedPod {
    name: String,
    scratch: Scratch,
    port: u16,
}

impl DocumentedPod {
    fn new(database_mount: Option<&str>) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let pod = Self {
            name: format!("atoll-test-documented-{}-{number}", std::process::id()),
            scratch: Scratch::new()?,
            port: free_ports(1)?,
        };
        for name in ["db", "api", "image"] {
            let folder = pod.folder(name);
            fs::create_dir(&folder)?;
            chown(&folder, Some(0), Some(0))?;
        }
        fs::write(pod.folder("pod.yml"), pod.file(database_mount))?;
        fs::write(pod.folder("config.yml"), CONFIG_MAP)?;
        Ok(pod)
    }

    fn file(&self, database_mount: Option<&str>) -> String {
        let container = |name: &str, image: &str, more: &str| {
            format!(
                "  - name: {name}\n    image: localhost/atoll/{image}:{}\n    imagePullPolicy: Never\n    \
                 envFrom: [{{ configMapRef: {{ name: config }} }}]\n{more}",
                env!("CARGO_PKG_VERSION"),
            )
        };
        let mount = |volume: &str, path: &str| {
            format!("    volumeMounts: [{{ name: {volume}, mountPath: {path} }}]\n")
        };
        let database = database_mount.map(|path| mount("db", path));
        let containers = [
            container(
                "db",
                "db",
                &format!(
                    "    args: [run-postgresql]\n{}",
                    database.unwrap_or_default()
                ),
            ),
            container("ui", "webui", ""),
            container("image-service", "image-service", &mount("image", "/data")),
            container(
                "service",
                "api-server",
                &format!(
                    "    ports: [{{ containerPort: 8090, hostPort: {} }}]\n{}",
                    self.port,
                    mount("api", "/data")
                ),
            ),
        ];
        let volumes = ["db", "image", "api"].map(|name| {
            let path = self.folder(name);
            format!(
                "  - {{ name: {name}, hostPath: {{ path: {}, type: Directory }} }}\n",
                path.display()
            )
        });
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{ name: {}, labels: {{ app: installer }} }}\nspec:\n  \
             restartPolicy: Never\n  containers:\n{}  volumes:\n{}",
            self.name,
            containers.concat(),
            volumes.concat()
        )
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn command(&self) -> Command {
        let mut command = Command::new("podman");
        command.current_dir(self.scratch.path());
        command.args(["play", "kube"]);
        command
    }

    fn play(&self) -> Result<()> {
        succeed(
            self.command()
                .args(["--configmap", "config.yml", "pod.yml"]),
        )
        .map(drop)
    }

    fn stop(&self) -> Result<()> {
        succeed(self.command().args(["--down", "pod.yml"])).map(drop)
    }

    /// Both streams of a container's log.
    fn log(&self, name: &str) -> Result<String> {
        let container = format!("{}-{name}", self.name);
        let output = Command::new("podman").args(["logs", &container]).output()?;
        Ok(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    }

    async fn is_ready(&self) -> Result<()> {
        let client = system_tests::client(None)?;
        let url = format!("http://127.0.0.1:{}/ready", self.port);
        until(&url, LIMIT, async || {
            let answer = client.get(&url).send().await;
            Ok(answer
                .is_ok_and(|answer| answer.status().is_success())
                .then_some(()))
        })
        .await
        .with_context(|| self.log("db").unwrap_or_default())
    }
}

impl Drop for DocumentedPod {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            say(&format!("{} stays: {error:#}", self.name));
        }
    }
}

/// All variables of the specification, and the images of hosts, whose release is out of reach.
const CONFIG_MAP: &str = r#"apiVersion: v1
kind: ConfigMap
metadata: { name: config }
data:
  SERVICE_FQDN: installer.example.org
  SERVICE_BASE_URL: http://127.0.0.1:8090
  ASSISTED_SERVICE_SCHEME: http
  ASSISTED_SERVICE_HOST: 127.0.0.1:8090
  IMAGE_SERVICE_BASE_URL: http://127.0.0.1:8888
  LISTEN_PORT: "8888"
  SKIP_CERT_VERIFICATION: "true"
  DEPLOY_TARGET: onprem
  DUMMY_IGNITION: "false"
  STORAGE: filesystem
  DISK_ENCRYPTION_SUPPORT: "true"
  NTP_DEFAULT_SERVER: ""
  IPV6_SUPPORT: "false"
  AUTH_TYPE: none
  POSTGRESQL_DATABASE: installer
  POSTGRESQL_USER: admin
  POSTGRESQL_PASSWORD: admin
  DB_HOST: 127.0.0.1
  DB_PORT: "5432"
  DB_USER: admin
  DB_PASS: admin
  DB_NAME: installer
  PUBLIC_CONTAINER_REGISTRIES: quay.io,registry.example.org:5000
  PLATFORM_VERSIONS: '{"4.18":{"cpu_architectures":["x86_64"],"display_name":"4.18.30","support_level":"production","default":true}}'
  OS_IMAGES: '[{"openshift_version":"4.18","cpu_architecture":"x86_64","url":"http://127.0.0.1:9/live.iso","version":"418.94"}]'
  AGENT_DOCKER_IMAGE: quay.io/lab/agent:1
  INSTALLER_IMAGE: quay.io/lab/installer:1
  CONTROLLER_IMAGE: quay.io/lab/controller:1
  RELEASE_IMAGES: '[{"openshift_version":"4.18","cpu_architecture":"x86_64","cpu_architectures":["x86_64"],"url":"quay.io/release/release:4.18.30-x86_64","version":"4.18.30","default":true}]'
  HW_VALIDATOR_REQUIREMENTS: '[{"version":"default","master":{"cpu_cores":4,"ram_mib":16384,"disk_size_gb":120,"installation_disk_speed_threshold_ms":10,"network_latency_threshold_ms":100,"packet_loss_percentage":0},"worker":{"cpu_cores":2,"ram_mib":8192,"disk_size_gb":120,"installation_disk_speed_threshold_ms":10,"network_latency_threshold_ms":1000,"packet_loss_percentage":10},"sno":{"cpu_cores":8,"ram_mib":32768,"disk_size_gb":120,"installation_disk_speed_threshold_ms":10}}]'
  ENABLE_SINGLE_NODE_DNSMASQ: "true"
"#;
