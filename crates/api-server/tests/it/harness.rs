//! An API server on its own port, with its own database, and a client.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::{Duration, Instant};

use api_server::Settings;
use api_server::settings::{BaseUrl, OsImages, ReleaseImages};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use service::CancellationToken;
use service::server::{IpNetworks, Running};
use service::settings::Setting as _;
use tempfile::TempDir;
use testkit::postgres::TestDatabase;

pub(crate) const BASE: &str = "/api/assisted-install";
pub(crate) const PULL_SECRET: &str =
    r#"{"auths":{"registry.example.com:5000":{"auth":"dXNlcjpwYXNzd29yZA=="}}}"#;
/// Timeout of each condition; a test that reaches it has failed.
const TIMEOUT: Duration = Duration::from_mins(2);

/// An API server in this process.
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) database: TestDatabase,
    pub(crate) client: reqwest::Client,
    shutdown: CancellationToken,
    running: Option<Running>,
    work_dir: TempDir,
}

/// A response, with its body parsed if it is JSON.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
    pub(crate) body: Value,
}

impl Answer {
    /// Asserts the status, and returns the body.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        self.body
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}

pub(crate) fn settings(database: &TestDatabase, work_dir: &Path) -> Settings {
    let releases = json!([
        { "openshift_version": "4.18", "version": "4.18.7", "cpu_architecture": "x86_64", "default": true,
          "url": "registry.example.com:5000/openshift/release:4.18.7" },
        { "openshift_version": "4.19", "version": "4.19.0-ec.2", "cpu_architecture": "x86_64",
          "url": "registry.example.com:5000/openshift/release:4.19.0-ec.2" },
    ]);
    let os_images = json!([
        { "openshift_version": "4.18", "cpu_architecture": "x86_64", "url": "http://images/4.18.iso", "version": "418.94" },
        { "openshift_version": "4.19", "cpu_architecture": "x86_64", "url": "http://images/4.19.iso", "version": "419.94" },
    ]);
    Settings {
        api_listen_address: Ipv4Addr::LOCALHOST.into(),
        api_listen_port: 0,
        service_base_url: Some(BaseUrl("http://192.0.2.10:8090".to_owned())),
        service_fqdn: "installer.example.com".to_owned(),
        db_host: database.host.clone(),
        db_port: database.port,
        db_user: database.user.clone(),
        db_pass: database.password.clone().into(),
        db_name: database.name.clone(),
        db_max_open_connections: 8,
        work_dir: work_dir.to_owned(),
        dummy_ignition: true,
        bmc_networks: IpNetworks::parse("127.0.0.0/8").unwrap(),
        release_images: ReleaseImages::parse(&releases.to_string()).unwrap(),
        os_images: OsImages::parse(&os_images.to_string()).unwrap(),
        agent_docker_image: "registry.example.com:5000/edge/agent:v1".to_owned(),
        installer_image: "registry.example.com:5000/edge/installer:v1".to_owned(),
        controller_image: "registry.example.com:5000/edge/controller:v1".to_owned(),
        registries_conf_path: "/nowhere/registries.conf".into(),
        mirror_ca_path: "/nowhere/ca.pem".into(),
        cluster_monitor_interval: Duration::from_millis(200),
        check_in_flush_interval: Duration::from_millis(50),
        ..Settings::default()
    }
}

impl Server {
    /// A server with an empty database, ready.
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// A server with an empty database and changed settings, ready.
    pub(crate) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let database = testkit::postgres::database().await.unwrap();
        let server = Self::on(database, change).await;
        server.wait_ready().await;
        server
    }

    /// A server on that database, listening.
    pub(crate) async fn on(database: TestDatabase, change: impl FnOnce(&mut Settings)) -> Self {
        let work_dir = tempfile::tempdir().unwrap();
        let mut settings = settings(&database, work_dir.path());
        change(&mut settings);
        let shutdown = CancellationToken::new();
        let running = api_server::start(settings, shutdown.clone()).await.unwrap();
        Self {
            url: format!("http://{}", running.address()),
            database,
            client: service::http_client(None, false).unwrap(),
            shutdown,
            running: Some(running),
            work_dir,
        }
    }

    /// Starts the shutdown; the future completes with it.
    pub(crate) fn stop(&mut self) -> impl Future<Output = ()> + use<> {
        self.shutdown.cancel();
        let running = self.running.take();
        async { running.unwrap().wait().await.unwrap() }
    }

    pub(crate) fn work_dir(&self) -> &Path {
        self.work_dir.path()
    }

    /// Stops this server and starts another on its database and files, with default settings.
    pub(crate) async fn restart(self) -> Self {
        self.restart_with(|_| {}).await
    }

    /// Stops this server unless that is done, and starts another on its database and files.
    pub(crate) async fn restart_with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        if self.running.is_some() {
            self.stop().await;
        }
        let mut settings = settings(&self.database, self.work_dir.path());
        change(&mut settings);
        self.shutdown = CancellationToken::new();
        let running = api_server::start(settings, self.shutdown.clone())
            .await
            .unwrap();
        self.url = format!("http://{}", running.address());
        self.running = Some(running);
        self.wait_ready().await;
        self
    }

    pub(crate) async fn wait_ready(&self) {
        self.until("the server is ready", async || {
            let status = self.plain("/ready").await;
            if status == 200 { Ok(()) } else { Err(status) }
        })
        .await;
    }

    /// Polls a condition until it holds; `Err` has the current state, for the failure's message.
    pub(crate) async fn until<T, E: std::fmt::Display>(
        &self,
        what: &str,
        mut poll: impl AsyncFnMut() -> Result<T, E>,
    ) -> T {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            match poll().await {
                Ok(found) => return found,
                Err(found) => assert!(
                    Instant::now() < deadline,
                    "timeout waiting for: {what}: {found}"
                ),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Status of a path outside the API.
    pub(crate) async fn plain(&self, path: &str) -> u16 {
        self.outside(path).await.status.as_u16()
    }

    /// The response to a GET of a path outside the API, without credentials.
    pub(crate) async fn outside(&self, path: &str) -> Answer {
        Self::send(self.client.get(format!("{}{path}", self.url))).await
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client
            .request(method, format!("{}{BASE}{path}", self.url))
    }

    pub(crate) async fn send(request: reqwest::RequestBuilder) -> Answer {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let text = response.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Answer {
            status,
            headers,
            text,
            body,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        Self::send(self.request(Method::GET, path)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        Self::send(self.request(Method::DELETE, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        Self::send(self.request(Method::POST, path).json(body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        Self::send(self.request(Method::PUT, path).json(body)).await
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Answer {
        Self::send(self.request(Method::PATCH, path).json(body)).await
    }

    /// A new cluster's id.
    pub(crate) async fn cluster(&self, more: Value) -> String {
        let answer = self
            .post("/v2/clusters", &merged(cluster_params(), more))
            .await;
        answer.expect(201)["id"].as_str().unwrap().to_owned()
    }

    /// A new infra-env's id, bound to that cluster when one is given.
    pub(crate) async fn infra_env(&self, cluster: Option<&str>) -> String {
        let mut params =
            json!({ "name": "rack-1", "pull_secret": PULL_SECRET, "openshift_version": "4.18" });
        if let Some(cluster) = cluster {
            params["cluster_id"] = json!(cluster);
        }
        let answer = self.post("/v2/infra-envs", &params).await;
        answer.expect(201)["id"].as_str().unwrap().to_owned()
    }

    /// A registered host's path.
    pub(crate) async fn host(&self, infra_env: &str, number: u32) -> String {
        let id = host_id(number);
        let params = json!({ "host_id": id, "discovery_agent_version": AGENT });
        self.post(&format!("/v2/infra-envs/{infra_env}/hosts"), &params)
            .await
            .expect(201);
        format!("/v2/infra-envs/{infra_env}/hosts/{id}")
    }

    /// Replies to a step of a host.
    pub(crate) async fn reply(&self, host: &str, step: &str, output: &Value) -> Answer {
        let reply = json!({
            "step_type": step, "step_id": format!("{step}-00000000"), "exit_code": 0, "output": output.to_string(),
        });
        self.post(&format!("{host}/instructions"), &reply).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

pub(crate) const AGENT: &str = "registry.example.com:5000/edge/agent:v1";

pub(crate) fn host_id(number: u32) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

pub(crate) fn cluster_params() -> Value {
    json!({ "name": "demo", "openshift_version": "4.18", "base_dns_domain": "example.com", "pull_secret": PULL_SECRET })
}

pub(crate) fn merged(mut params: Value, more: Value) -> Value {
    if let (Value::Object(params), Value::Object(more)) = (&mut params, more) {
        params.extend(more);
    }
    params
}

/// Inventory of a machine that fits every role.
pub(crate) fn inventory(number: u32) -> Value {
    let disk = format!("/dev/disk/by-id/wwn-{number}");
    json!({
        "hostname": format!("host-{number}"),
        "bmc_address": "0.0.0.0",
        "boot": { "current_boot_mode": "uefi" },
        "cpu": { "count": 16, "architecture": "x86_64", "model_name": "test", "flags": ["vmx"] },
        "memory": { "physical_bytes": 68_719_476_736_u64, "usable_bytes": 68_719_476_736_u64 },
        "disks": [{
            "id": disk, "by_id": disk, "by_path": "/dev/disk/by-path/1", "name": "sda", "path": "/dev/sda",
            "drive_type": "SSD", "size_bytes": 500_000_000_000_u64, "hctl": "0:0:0:0", "bootable": false,
            "installation_eligibility": { "eligible": true, "not_eligible_reasons": [] },
        }],
        "interfaces": [{
            "name": "eth0", "mac_address": format!("52:54:00:aa:00:{number:02x}"), "has_carrier": true,
            "ipv4_addresses": [format!("192.0.2.{}/24", 20 + number)], "ipv6_addresses": [], "mtu": 1500, "type": "physical",
        }],
        "routes": [{ "destination": "0.0.0.0", "gateway": "192.0.2.1", "interface": "eth0", "family": 2, "metric": 100 }],
        "system_vendor": { "manufacturer": "Test", "product_name": "Board", "serial_number": format!("S{number}") },
        "tpm_version": "none",
        "timestamp": service::clock::now().timestamp(),
    })
}
