//! `atoll node replace`: a control node whose machine hangs, with a real kube-apiserver, a real etcd, and a simulated BMC.
//! The test is installer, kubelet and static pod.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use etcd::quorum::MemberId;
use etcd::{EtcdCluster, MemberHealth, ObservedMember};
use host_sim::bmc::{BMC_PROFILES, BmcBootSource, BmcRack, BmcRackPlan, SimulatedPower};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use system_tests::process::program;
use system_tests::{BOOTSTRAPPER_TOKEN, CONTROL_NODE_TOKEN};

use super::cluster::Cluster;
use super::requests::{CSRS, client, serving};
use super::servers::{Place, Servers};

/// The failed node: the second BMC of the rack.
const NODE: &str = "control-2";
const MACHINES: &str =
    "/apis/machine.openshift.io/v1beta1/namespaces/openshift-machine-api/machines";
const HOSTS: &str = "/apis/metal3.io/v1alpha1/namespaces/openshift-machine-api/baremetalhosts";
const POOL: &str = "/apis/machineconfiguration.openshift.io/v1/machineconfigpools";
const ETCDS: &str = "/apis/operator.openshift.io/v1/etcds";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/atoll-node-repair";
const IMAGE: &str = "http://192.0.2.1:8080/control-2.iso?token=s3cret-token";
const POLL: Duration = Duration::from_millis(100);

/// A cluster with one failed control node.
pub(super) struct Site {
    pub(super) cluster: Cluster,
    pub(super) servers: Servers,
    etcd: EtcdCluster,
    rack: BmcRack,
    failed: MemberId,
}

/// The new machine.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Waiting,
    ClientCertificate,
    ServingCertificate,
    Ready,
    Joined,
}

impl Site {
    async fn start() -> Result<Option<Self>> {
        let Some(cluster) = Cluster::start().await? else {
            return Ok(None);
        };
        let Some(servers) = Servers::start(3).await else {
            return Ok(None);
        };
        Ok(Some(Self::of(cluster, servers).await?))
    }

    /// Adds the records and the failure.
    pub(super) async fn of(cluster: Cluster, mut servers: Servers) -> Result<Self> {
        cluster.add_platform().await?;
        cluster.admit_requests().await?;
        let rack = BmcRack::start(BmcRackPlan::of(&BMC_PROFILES[0], 3)).await?;
        for bmc in rack.bmcs() {
            bmc.set_power(SimulatedPower::On);
        }
        std::fs::write(cluster.scratch.path().join("bmc-ca.pem"), rack.ca_pem())?;
        let etcd = servers.cluster();
        let failed = servers.id(&etcd.observe().await?, NODE);
        servers.kill(NODE);
        let site = Self {
            cluster,
            servers,
            etcd,
            rack,
            failed,
        };
        site.add_records().await?;
        Ok(site)
    }

    async fn add_records(&self) -> Result<()> {
        let config = "controlPlane:\n  name: master\n  replicas: 3\n";
        let config = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "cluster-config-v1" },
            "data": { "install-config": config },
        });
        self.cluster
            .create("/api/v1/namespaces/kube-system/configmaps", &config)
            .await?;
        // Members are added by the command: etcd's operator is no part of the test.
        let revisions = self
            .servers
            .places
            .keys()
            .map(|name| json!({ "nodeName": name, "currentRevision": 7 }));
        let etcd = json!({
            "apiVersion": "operator.openshift.io/v1", "kind": "Etcd", "metadata": { "name": "cluster" },
            "spec": { "managementState": "Unmanaged" },
            "status": { "latestAvailableRevision": 7, "nodeStatuses": revisions.collect::<Vec<_>>() },
        });
        self.cluster.create(ETCDS, &etcd).await?;
        let pool = json!({
            "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
            "metadata": { "name": "master" }, "spec": { "paused": false },
        });
        self.cluster.create(POOL, &pool).await?;
        for (index, place) in self.servers.places.values().enumerate() {
            self.cluster
                .create("/api/v1/nodes", &node(place, place.name != NODE))
                .await?;
            for secret in ["peer", "serving", "serving-metrics"] {
                let secret = json!({
                    "apiVersion": "v1", "kind": "Secret",
                    "metadata": { "name": format!("etcd-{secret}-{}", place.name) },
                });
                let path = "/api/v1/namespaces/openshift-etcd/secrets";
                self.cluster.create(path, &secret).await?;
            }
            self.add_machine(index, place).await?;
        }
        Ok(())
    }

    /// Secret, BareMetalHost and Machine, with the finalizers of controllers that do not act.
    async fn add_machine(&self, index: usize, place: &Place) -> Result<()> {
        let number = index + 1;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": { "name": format!("host-{number}-bmc"), "namespace": "openshift-machine-api" },
            "stringData": { "username": "admin", "password": "correct-horse" },
        });
        let path = "/api/v1/namespaces/openshift-machine-api/secrets";
        self.cluster.create(path, &secret).await?;
        let bmc = &self.rack.bmcs()[index];
        let address = format!(
            "redfish-virtualmedia+{}{}",
            self.rack.origin(index, "https"),
            bmc.profile.system_path()
        );
        let host = json!({
            "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
            "metadata": {
                "name": format!("host-{number}"), "namespace": "openshift-machine-api",
                "finalizers": ["baremetalhost.metal3.io/finalizer"],
            },
            "spec": {
                "online": true, "bootMACAddress": format!("52:54:00:00:00:0{number}"),
                "bmc": { "address": address, "credentialsName": format!("host-{number}-bmc") },
                "consumerRef": {
                    "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
                    "name": format!("machine-{number}"), "namespace": "openshift-machine-api",
                },
            },
            "status": { "poweredOn": true, "provisioning": { "state": "externally provisioned" } },
        });
        self.cluster.create(HOSTS, &host).await?;
        let machine = json!({
            "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
            "metadata": {
                "name": format!("machine-{number}"), "namespace": "openshift-machine-api",
                "labels": { "machine.openshift.io/cluster-api-machine-role": "master" },
                "annotations": { "metal3.io/BareMetalHost": format!("openshift-machine-api/host-{number}") },
                "finalizers": ["machine.machine.openshift.io"],
            },
            "spec": {},
            "status": {
                "phase": "Running", "nodeRef": { "kind": "Node", "name": place.name },
                "addresses": [{ "type": "InternalIP", "address": place.host }],
            },
        });
        self.cluster.create(MACHINES, &machine).await
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = Command::new(program("atoll")?);
        command.args(["node", "replace", NODE]).args(arguments);
        command.arg("--kubeconfig").arg(&self.cluster.kubeconfig);
        for place in self.servers.places.values() {
            command.args(["--etcd-endpoint", &place.client_url()]);
        }
        for (option, file) in [
            ("--etcd-ca", "authority.pem"),
            ("--etcd-cert", "certificate.pem"),
            ("--etcd-key", "key.pem"),
        ] {
            command.arg(option).arg(self.servers.path(file));
        }
        command
            .arg("--bmc-ca")
            .arg(self.cluster.scratch.path().join("bmc-ca.pem"));
        Ok(command)
    }

    pub(super) fn state(&self) -> String {
        let path = self.cluster.scratch.path().join("replacements");
        path.display().to_string()
    }

    async fn get(&self, path: &str) -> Result<Value> {
        let answer = self.cluster.server.ask(Method::GET, path, None).await?;
        ensure!(answer.status == StatusCode::OK, "{path}: {}", answer.text());
        answer.json()
    }

    async fn exists(&self, path: &str) -> Result<bool> {
        let answer = self.cluster.server.ask(Method::GET, path, None).await?;
        Ok(answer.status != StatusCode::NOT_FOUND)
    }

    /// Starts from the image so far.
    fn image_boots(&self) -> usize {
        let boots = self.rack.bmcs()[1].boots();
        let is_image = |boot: &BmcBootSource| !matches!(boot, BmcBootSource::Disk);
        boots.iter().filter(|boot| is_image(boot)).count()
    }

    async fn ask(&self, token: &str, request: &Value) -> Result<()> {
        let server = &self.cluster.server;
        let answer = server.ask_as(token, Method::POST, CSRS, Some(request));
        let answer = answer.await?;
        ensure!(answer.status == StatusCode::CREATED, "{}", answer.text());
        Ok(())
    }

    async fn is_approved(&self, name: &str) -> Result<bool> {
        let request = self.get(&format!("{CSRS}/{name}")).await?;
        Ok(request["status"]["conditions"][0]["type"] == "Approved")
    }

    /// Acts as the new machine: its kubelet asks for certificates, and its static pod starts the member.
    async fn act(&mut self, progress: Progress) -> Result<Progress> {
        let place = self.servers.places[NODE].clone();
        Ok(match progress {
            Progress::Waiting if self.image_boots() > 0 => {
                self.ask(BOOTSTRAPPER_TOKEN, &client("own-client", NODE)?)
                    .await?;
                // With the same account, another machine asks to be another node.
                self.ask(BOOTSTRAPPER_TOKEN, &client("hostile-client", "control-1")?)
                    .await?;
                Progress::ClientCertificate
            }
            Progress::ClientCertificate if self.is_approved("own-client").await? => {
                self.cluster
                    .create("/api/v1/nodes", &node(&place, false))
                    .await?;
                self.ask(
                    CONTROL_NODE_TOKEN,
                    &serving("own-serving", NODE, &place.host)?,
                )
                .await?;
                self.ask(
                    CONTROL_NODE_TOKEN,
                    &serving("hostile-serving", NODE, "192.0.2.99")?,
                )
                .await?;
                Progress::ServingCertificate
            }
            Progress::ServingCertificate if self.is_approved("own-serving").await? => {
                let path = format!("/api/v1/nodes/{NODE}");
                let mut stored = self.get(&path).await?;
                stored["status"] = node(&place, true)["status"].clone();
                let path = format!("{path}/status");
                let server = &self.cluster.server;
                let answer = server.ask(Method::PUT, &path, Some(&stored)).await?;
                ensure!(answer.status == StatusCode::OK, "{}", answer.text());
                Progress::Ready
            }
            Progress::Ready => {
                let view = self.etcd.observe().await?;
                let own = view.member_at(&place.host);
                let is_added = own.is_some_and(|own| own.health == MemberHealth::NotStarted);
                if is_added && own.is_some_and(|own| own.member.id != self.failed) {
                    self.servers.join(NODE, &view);
                    Progress::Joined
                } else {
                    Progress::Ready
                }
            }
            progress => progress,
        })
    }

    /// Runs the command until it ends, or its output has the text of `kill`: then it is killed.
    pub(super) async fn run(&mut self, kill: Option<&str>, mut progress: Progress) -> Result<Run> {
        let output = self.cluster.scratch.path().join("replace.log");
        let log = File::create(&output)?;
        let state = self.state();
        let mut command = self.command(&["--state", &state, "--image", IMAGE])?;
        command.stdout(log.try_clone()?).stderr(log);
        let mut child = Running(command.stdin(Stdio::null()).spawn()?);
        loop {
            progress = self.act(progress).await?;
            let text = std::fs::read_to_string(&output)?;
            if let Some(status) = child.0.try_wait()? {
                let status = Some(status);
                return Ok(Run {
                    status,
                    text,
                    progress,
                });
            }
            if kill.is_some_and(|kill| text.contains(kill)) {
                child.0.kill()?;
                child.0.wait()?;
                let status = None;
                return Ok(Run {
                    status,
                    text,
                    progress,
                });
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

/// The end of a run; no status after a kill.
pub(super) struct Run {
    pub(super) status: Option<ExitStatus>,
    pub(super) text: String,
    pub(super) progress: Progress,
}

/// Killed with a failed test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn node(place: &Place, is_ready: bool) -> Value {
    let status = if is_ready { "True" } else { "Unknown" };
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": place.name, "labels": { "node-role.kubernetes.io/control-plane": "" } },
        "status": {
            "addresses": [{ "type": "InternalIP", "address": place.host }],
            "conditions": [{ "type": "Ready", "status": status, "reason": "Test", "message": "a test" }],
        },
    })
}

/// Whether a folder has a replacement.
fn is_begun(folder: &str) -> bool {
    let entries = std::fs::read_dir(folder);
    entries.is_ok_and(|mut it| it.any(|entry| entry.is_ok_and(|it| it.path().is_dir())))
}

fn shown(command: &mut Command) -> Result<String> {
    let output = command.output()?;
    Ok(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_control_node_is_replaced_through_kills() -> Result<()> {
    let Some(mut site) = Site::start().await? else {
        return Ok(());
    };
    let plan = shown(
        site.command(&["--state", &site.state(), "--plan"])?
            .arg("--image")
            .arg(IMAGE),
    )?;
    for part in [
        "control-2 (127.0.0.12) failed",
        "records: Machine machine-2, BareMetalHost host-2",
        "etcd: 2 of 3 voters healthy, at fewest 2 voters",
        "Remove the old member from etcd",
    ] {
        ensure!(plan.contains(part), "{part}: {plan}");
    }
    ensure!(!site.exists(LEASE).await?, "a plan changes nothing");

    let mut progress = Progress::Waiting;
    for kill in [
        "Remove the old member from etcd: done",
        "Boot the new node with its image …",
    ] {
        let run = site.run(Some(kill), progress).await?;
        ensure!(run.status.is_none(), "{}", run.text);
        progress = run.progress;
    }
    let run = site.run(None, progress).await?;
    ensure!(
        run.status.is_some_and(|status| status.success()),
        "{}",
        run.text
    );
    ensure!(run.progress == Progress::Joined, "{:?}", run.progress);
    ensure!(
        run.text.contains("the replacement is complete"),
        "{}",
        run.text
    );
    ensure!(!run.text.contains("s3cret-token"), "{}", run.text);
    site.check().await
}

impl Site {
    /// The end: a whole cluster, restored settings, and no request of others approved.
    async fn check(&self) -> Result<()> {
        let view = self.etcd.observe().await?;
        let count = view.voter_count();
        ensure!((count.voters, count.healthy) == (3, 3), "{view:?}");
        ensure!(view.members.iter().all(ObservedMember::is_healthy));
        ensure!(view.member(self.failed).is_none());
        for (name, is_approved) in [
            ("own-client", true),
            ("own-serving", true),
            ("hostile-client", false),
            ("hostile-serving", false),
        ] {
            ensure!(self.is_approved(name).await? == is_approved, "{name}");
        }
        let pool = self.get(&format!("{POOL}/master")).await?;
        ensure!(pool["spec"]["paused"] == false, "{pool}");
        let host = self.get(&format!("{HOSTS}/host-2")).await?;
        ensure!(host["spec"]["externallyProvisioned"] == true, "{host}");
        ensure!(host["metadata"]["deletionTimestamp"].is_null(), "{host}");
        let machine = self.get(&format!("{MACHINES}/machine-2")).await?;
        ensure!(
            machine["metadata"]["deletionTimestamp"].is_null(),
            "{machine}"
        );
        let secret = "/api/v1/namespaces/openshift-etcd/secrets/etcd-peer-control-2";
        ensure!(
            !self.exists(secret).await?,
            "the old certificates are deleted"
        );
        ensure!(!self.exists(LEASE).await?, "the lease is given back");
        let bmc = &self.rack.bmcs()[1];
        ensure!(bmc.images().is_empty(), "{:?}", bmc.images());
        ensure!(bmc.power() == SimulatedPower::On);
        let folder = PathBuf::from(self.state());
        let Some(entry) = std::fs::read_dir(&folder)?.find_map(|entry| {
            let path = entry.ok()?.path();
            path.join("snapshot.db").exists().then_some(path)
        }) else {
            bail!("no snapshot in {}", folder.display());
        };
        let journal = std::fs::read_to_string(entry.join("journal"));
        ensure!(!journal.context("the journal")?.contains("correct-horse"));
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_person_learns_whose_repair_is_under_way() -> Result<()> {
    let Some(mut site) = Site::start().await? else {
        return Ok(());
    };
    let fence = "Make sure that the old node is off …";
    let run = site.run(Some(fence), Progress::Waiting).await?;
    ensure!(run.status.is_none(), "{}", run.text);
    let before = site.get(&format!("{POOL}/master")).await?;
    // The lease is held by another process that renews it.
    let lease = site.get(LEASE).await?;
    ensure!(lease["spec"]["holderIdentity"].is_string(), "{lease}");
    let other = site.cluster.scratch.path().join("others");
    let other = other.display().to_string();
    let mut second = Running(
        site.command(&["--state", &other, "--no-snapshot"])?
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?,
    );
    for renewal in 0.. {
        let mut lease = site.get(LEASE).await?;
        // An equal record would not be stored again.
        lease["metadata"]["labels"] = json!({ "renewal": renewal.to_string() });
        let server = &site.cluster.server;
        let answer = server.ask(Method::PUT, LEASE, Some(&lease)).await?;
        ensure!(answer.status == StatusCode::OK, "{}", answer.text());
        if let Some(status) = second.0.try_wait()? {
            ensure!(!status.success());
            break;
        }
        tokio::time::sleep(POLL).await;
    }
    let mut text = String::new();
    let stderr = second.0.stderr.as_mut().context("no output")?;
    std::io::Read::read_to_string(stderr, &mut text)?;
    ensure!(
        text.contains("a repair of") && text.contains("is under way since"),
        "{text}"
    );
    // It changes nothing; the first one may have got further than its output.
    let after = site.get(&format!("{POOL}/master")).await?;
    ensure!(after == before, "{after}");
    ensure!(!is_begun(&other), "the second one has a journal");
    Ok(())
}
