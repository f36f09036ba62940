//! kube-apiserver and its etcd, without controllers and nodes: objects are admitted, validated and stored.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};
use testkit::certificates::Authority;

use crate::{ApiResponse, client, free_ports, until};

/// Folder with the programs `etcd` and `kube-apiserver`.
const VARIABLE: &str = "KUBERNETES_PROGRAMS";
const START_LIMIT: Duration = Duration::from_mins(3);
const TOKEN: &str = "token-of-a-test";
/// Token of the node `master-1`.
pub const NODE_TOKEN: &str = "token-of-a-node";
/// Token of the node `control-2`.
pub const CONTROL_NODE_TOKEN: &str = "token-of-a-control-node";
/// Token of the account with which machines ask to be nodes.
pub const BOOTSTRAPPER_TOKEN: &str = "token-of-the-bootstrapper";
/// Token of the account of `deploy/host-controller.yaml`.
pub const HOST_CONTROLLER_TOKEN: &str = "token-of-the-host-controller";

/// A running kube-apiserver. Killed on drop, with its etcd; both end with the test program.
#[derive(Debug)]
pub struct KubeApiServer {
    http: reqwest::Client,
    origin: String,
    /// Client URL of its etcd, which takes the certificate of the server.
    pub etcd_url: String,
    etcd: KilledChild,
    server: KilledChild,
}

/// Killed on drop.
#[derive(Debug)]
struct KilledChild(Child);

impl KubeApiServer {
    /// The folder of its programs; `None`, and a skipped test, where they are not built.
    pub fn programs() -> Option<PathBuf> {
        let programs = std::env::var_os(VARIABLE).map(PathBuf::from);
        if programs.is_none() {
            testkit::skipped("KUBERNETES_PROGRAMS names no folder with kube-apiserver");
        }
        programs
    }

    /// Starts both on free ports, with their files in `folder`.
    ///
    /// Errors: one does not become ready, with its log.
    pub async fn start(programs: &Path, folder: &Path) -> Result<Self> {
        let first = free_ports(3)?;
        let authority = Authority::new("Authority of a test")?;
        let (certificate, key) = authority.sign(&["localhost", "127.0.0.1"])?;
        for (name, text) in [
            ("authority.pem", &authority.certificate),
            ("certificate.pem", &certificate),
            ("key.pem", &key),
            ("tokens.csv", &tokens()),
        ] {
            let path = folder.join(name);
            fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        }
        let mut running = Self {
            http: client(Some(&folder.join("authority.pem")))?,
            etcd_url: format!("https://127.0.0.1:{first}"),
            origin: format!("https://localhost:{}", first + 2),
            etcd: KilledChild(Self::etcd(programs, folder, first)?),
            server: KilledChild(Self::server(programs, folder, first, first + 2)?),
        };
        running.is_ready(folder).await?;
        Ok(running)
    }

    fn etcd(programs: &Path, folder: &Path, port: u16) -> Result<Child> {
        let (clients, peers) = (
            format!("https://127.0.0.1:{port}"),
            format!("http://127.0.0.1:{}", port + 1),
        );
        let mut command = supervised(&programs.join("etcd"));
        command
            .arg("--data-dir")
            .arg(folder.join("etcd"))
            .args(["--listen-client-urls", &clients])
            .args(["--advertise-client-urls", &clients])
            .args(["--listen-peer-urls", &peers])
            .args(["--initial-advertise-peer-urls", &peers])
            .args(["--initial-cluster", &format!("default={peers}")])
            .arg("--unsafe-no-fsync")
            .arg("--client-cert-auth");
        for (flag, file) in [
            ("--cert-file", "certificate.pem"),
            ("--key-file", "key.pem"),
            ("--trusted-ca-file", "authority.pem"),
        ] {
            command.arg(flag).arg(folder.join(file));
        }
        logged(&mut command, &folder.join("etcd.log"))
    }

    fn server(programs: &Path, folder: &Path, etcd: u16, port: u16) -> Result<Child> {
        let mut command = supervised(&programs.join("kube-apiserver"));
        command
            .arg(format!("--etcd-servers=https://127.0.0.1:{etcd}"))
            .arg(format!("--secure-port={port}"))
            .args(["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1"])
            .arg("--endpoint-reconciler-type=none")
            .arg("--service-cluster-ip-range=10.0.0.0/24")
            .arg("--authorization-mode=RBAC")
            // No controller makes the accounts that it looks for.
            .arg("--disable-admission-plugins=ServiceAccount")
            .arg("--service-account-issuer=https://kubernetes.default.svc");
        for (flag, file) in [
            ("--cert-dir", "."),
            ("--etcd-cafile", "authority.pem"),
            ("--etcd-certfile", "certificate.pem"),
            ("--etcd-keyfile", "key.pem"),
            ("--tls-cert-file", "certificate.pem"),
            ("--tls-private-key-file", "key.pem"),
            ("--token-auth-file", "tokens.csv"),
            // Of the public key.
            ("--service-account-key-file", "certificate.pem"),
            ("--service-account-signing-key-file", "key.pem"),
        ] {
            command.arg(flag).arg(folder.join(file));
        }
        logged(&mut command, &folder.join("kube-apiserver.log"))
    }

    async fn is_ready(&mut self, folder: &Path) -> Result<()> {
        let url = format!("{}/readyz", self.origin);
        until("kube-apiserver is ready", START_LIMIT, async || {
            for (child, name) in [
                (&mut self.etcd, "etcd"),
                (&mut self.server, "kube-apiserver"),
            ] {
                if let Some(status) = child.0.try_wait()? {
                    let log = fs::read_to_string(folder.join(format!("{name}.log")))?;
                    bail!("{name} ended ({status}): {log}");
                }
            }
            let answer = self.http.get(&url).bearer_auth(TOKEN).send().await;
            Ok(answer.ok().filter(|it| it.status().is_success()).map(drop))
        })
        .await
    }

    /// Writes a kubeconfig of its administrator.
    ///
    /// Errors: the file cannot be written.
    pub fn kubeconfig(&self, folder: &Path) -> Result<PathBuf> {
        self.kubeconfig_as(TOKEN, folder, "kubeconfig")
    }

    /// Writes a kubeconfig of the holder of a token.
    ///
    /// Errors: the file cannot be written.
    pub fn kubeconfig_as(&self, token: &str, folder: &Path, name: &str) -> Result<PathBuf> {
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{ "name": "test", "cluster": {
                "server": self.origin,
                "certificate-authority": folder.join("authority.pem"),
            } }],
            "users": [{ "name": "test", "user": { "token": token } }],
            "contexts": [{ "name": "test", "context": { "cluster": "test", "user": "test" } }],
        });
        let path = folder.join(name);
        fs::write(&path, kubeconfig.to_string())
            .with_context(|| format!("writing {}", path.display()))?;
        Ok(path)
    }

    /// Path of the resources of a kind in a namespace, as the server lists them.
    ///
    /// Errors: the server knows no such kind.
    pub async fn resources(&self, object: &Value, namespace: &str) -> Result<String> {
        let text = |name: &str| {
            let value = object[name].as_str();
            value.with_context(|| format!("an object without {name}"))
        };
        let (version, kind) = (text("apiVersion")?, text("kind")?);
        let group = if version.contains('/') {
            format!("/apis/{version}")
        } else {
            format!("/api/{version}")
        };
        let listed = self.ask(Method::GET, &group, None).await?.json()?;
        let resources = listed["resources"].as_array();
        let found = resources.into_iter().flatten().find(|resource| {
            let name = resource["name"].as_str().unwrap_or_default();
            resource["kind"] == kind && !name.contains('/')
        });
        let found = found.with_context(|| format!("the server has no {kind} of {version}"))?;
        let name = found["name"].as_str().unwrap_or_default();
        Ok(if found["namespaced"] == true {
            format!("{group}/namespaces/{namespace}/{name}")
        } else {
            format!("{group}/{name}")
        })
    }

    /// Sends a request of the administrator; any status is a response.
    ///
    /// Errors: no response.
    pub async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<ApiResponse> {
        self.ask_as(TOKEN, method, path, body).await
    }

    /// Sends a request of the holder of a token.
    ///
    /// Errors: no response.
    pub async fn ask_as(
        &self,
        token: &str,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<ApiResponse> {
        let url = format!("{}{path}", self.origin);
        let mut request = self.http.request(method.clone(), &url).bearer_auth(token);
        if let Some(body) = body {
            let kind = match method {
                // Server-side apply.
                Method::PATCH => "application/apply-patch+yaml",
                _ => "application/json",
            };
            request = request.header(CONTENT_TYPE, kind).body(body.to_string());
        }
        let response = request.send().await.with_context(|| url.clone())?;
        Ok(ApiResponse {
            status: response.status(),
            headers: response.headers().clone(),
            body: response.bytes().await.with_context(|| url)?.to_vec(),
        })
    }
}

/// Accounts by their tokens, as kube-apiserver reads them.
fn tokens() -> String {
    let bootstrapper = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper";
    let host_controller = "system:serviceaccount:kube-system:atoll-host-controller";
    let service_accounts = "system:serviceaccounts";
    let accounts = [
        (TOKEN, "test", "system:masters"),
        (NODE_TOKEN, "system:node:master-1", "system:nodes"),
        (CONTROL_NODE_TOKEN, "system:node:control-2", "system:nodes"),
        (BOOTSTRAPPER_TOKEN, bootstrapper, service_accounts),
        (HOST_CONTROLLER_TOKEN, host_controller, service_accounts),
    ];
    let lines = accounts
        .iter()
        .enumerate()
        .map(|(id, (token, user, group))| format!("{token},{user},{id},\"{group}\"\n"));
    lines.collect()
}

/// The program, which ends with the test program.
fn supervised(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "KILL", "--"])
        .arg(program)
        .stdin(Stdio::null());
    command
}

fn logged(command: &mut Command, log: &Path) -> Result<Child> {
    let log = File::create(log).with_context(|| format!("creating {}", log.display()))?;
    command
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .context("running setpriv, which is of util-linux")
}

impl Drop for KilledChild {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
