//! A kube-apiserver that has the kinds of the platform, without its controllers.

use std::path::PathBuf;
use std::process::{Command, Output};

use anyhow::{Context as _, Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};
use system_tests::process::program;
use system_tests::{KubeApiServer, Scratch, until};

/// Kinds of the platform: group, version, kind, plural, whether they are in namespaces.
const KINDS: [(&str, &str, &str, &str, bool); 10] = [
    (
        "metal3.io",
        "v1alpha1",
        "BareMetalHost",
        "baremetalhosts",
        true,
    ),
    (
        "machine.openshift.io",
        "v1beta1",
        "Machine",
        "machines",
        true,
    ),
    ("operator.openshift.io", "v1", "Etcd", "etcds", false),
    (
        "operator.openshift.io",
        "v1",
        "KubeAPIServer",
        "kubeapiservers",
        false,
    ),
    (
        "operator.openshift.io",
        "v1",
        "KubeControllerManager",
        "kubecontrollermanagers",
        false,
    ),
    (
        "operator.openshift.io",
        "v1",
        "KubeScheduler",
        "kubeschedulers",
        false,
    ),
    (
        "machineconfiguration.openshift.io",
        "v1",
        "MachineConfigPool",
        "machineconfigpools",
        false,
    ),
    (
        "config.openshift.io",
        "v1",
        "ClusterVersion",
        "clusterversions",
        false,
    ),
    (
        "config.openshift.io",
        "v1",
        "Infrastructure",
        "infrastructures",
        false,
    ),
    (
        "machineconfiguration.openshift.io",
        "v1",
        "MachineConfig",
        "machineconfigs",
        false,
    ),
];
const LIMIT: std::time::Duration = std::time::Duration::from_mins(1);

/// A cluster, with an administrator's kubeconfig.
pub(super) struct Cluster {
    pub(super) server: KubeApiServer,
    pub(super) kubeconfig: PathBuf,
    pub(super) scratch: Scratch,
}

impl Cluster {
    /// None, and a skipped test, where its programs are not built.
    pub(super) async fn start() -> Result<Option<Self>> {
        let Some(programs) = KubeApiServer::programs() else {
            return Ok(None);
        };
        let scratch = Scratch::new()?;
        let server = KubeApiServer::start(&programs, scratch.path()).await?;
        let kubeconfig = server.kubeconfig(scratch.path())?;
        Ok(Some(Self {
            server,
            kubeconfig,
            scratch,
        }))
    }

    /// Adds the kinds of the platform; their schemas accept everything.
    pub(super) async fn add_platform(&self) -> Result<()> {
        for (group, version, kind, plural, is_namespaced) in KINDS {
            let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
            let definition = json!({
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {
                    "name": format!("{plural}.{group}"),
                    // Groups of Kubernetes' own projects are protected.
                    "annotations": { "api-approved.kubernetes.io": "unapproved, a test" },
                },
                "spec": {
                    "group": group,
                    "scope": if is_namespaced { "Namespaced" } else { "Cluster" },
                    "names": { "kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List") },
                    "versions": [{ "name": version, "served": true, "storage": true, "subresources": { "status": {} }, "schema": { "openAPIV3Schema": schema } }],
                },
            });
            self.create(
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                &definition,
            )
            .await?;
            let served = format!("/apis/{group}/{version}/{plural}");
            until("the kind is served", LIMIT, async || {
                let answer = self.server.ask(Method::GET, &served, None).await?;
                Ok(answer.status.is_success().then_some(()))
            })
            .await?;
        }
        for name in ["openshift-machine-api", "openshift-etcd"] {
            let namespace =
                json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
            self.create("/api/v1/namespaces", &namespace).await?;
        }
        Ok(())
    }

    /// Creates an object, and its status where it has one.
    pub(super) async fn create(&self, path: &str, object: &Value) -> Result<()> {
        let answer = self.server.ask(Method::POST, path, Some(object)).await?;
        ensure!(answer.status == 201, "{path}: {}", answer.text());
        if object["status"].is_null() {
            return Ok(());
        }
        let name = object["metadata"]["name"].as_str().context("no name")?;
        let mut stored = answer.json()?;
        stored["status"] = object["status"].clone();
        let path = format!("{path}/{name}/status");
        let answer = self.server.ask(Method::PUT, &path, Some(&stored)).await?;
        ensure!(answer.status == 200, "{path}: {}", answer.text());
        Ok(())
    }

    /// Lets nodes, and machines that want to be nodes, make requests, as the platform does.
    pub(super) async fn admit_requests(&self) -> Result<()> {
        let subjects = ["system:nodes", "system:serviceaccounts"].map(|group| {
            json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group })
        });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": { "name": "requests-of-nodes" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node-bootstrapper" },
            "subjects": subjects,
        });
        let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
        self.create(path, &binding).await
    }

    /// Runs `atoll` on the cluster.
    pub(super) fn atoll(&self, arguments: &[&str]) -> Result<Output> {
        let mut command = Command::new(program("atoll")?);
        command.args(arguments).arg("--kubeconfig");
        command
            .arg(&self.kubeconfig)
            .output()
            .context("running atoll")
    }
}

/// Options with the way to the etcd of a cluster.
pub(super) fn etcd_options(cluster: &Cluster) -> Vec<String> {
    let file = |name: &str| cluster.scratch.path().join(name).display().to_string();
    [
        ("--etcd-endpoint", cluster.server.etcd_url.clone()),
        ("--etcd-ca", file("authority.pem")),
        ("--etcd-cert", file("certificate.pem")),
        ("--etcd-key", file("key.pem")),
    ]
    .into_iter()
    .flat_map(|(name, value)| [name.to_owned(), value])
    .collect()
}

/// Standard output of a command that succeeded.
pub(super) fn text(output: &Output) -> Result<String> {
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {errors}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
