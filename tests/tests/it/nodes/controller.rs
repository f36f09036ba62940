//! `atoll host controller` with a real kube-apiserver and simulated BMCs.

use std::fs::File;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use host_controller::{ControllerTiming, HostController};
use host_sim::bmc::{BMC_PROFILES, BmcRack, BmcRackPlan, SimulatedPower};
use kubernetes::{ClusterAddress, KubernetesCluster, LeaseTerms};
use redfish::{RedfishConnector, RedfishTiming};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use system_tests::process::{Signal, program, signal};
use system_tests::{HOST_CONTROLLER_TOKEN, until};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::cluster::Cluster;

const HOSTS: &str = "/apis/metal3.io/v1alpha1/namespaces/openshift-machine-api/baremetalhosts";
const SECRETS: &str = "/api/v1/namespaces/openshift-machine-api/secrets";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/openshift-machine-api/deployments";
const LEASE: &str =
    "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/atoll-host-controller";
const LIMIT: Duration = Duration::from_mins(2);
const TERMS: LeaseTerms = LeaseTerms {
    duration: Duration::from_secs(20),
    poll_interval: Duration::from_millis(100),
};

fn timing() -> ControllerTiming {
    ControllerTiming {
        power_poll: Duration::from_millis(200),
        secret_poll: Duration::from_millis(100),
        first_backoff: Duration::from_millis(50),
        longest_backoff: Duration::from_millis(200),
        resync: Duration::from_secs(1),
        ..ControllerTiming::default()
    }
}

/// A cluster with hosts.
struct Site {
    cluster: Cluster,
    rack: BmcRack,
}

/// A controller that runs.
struct RunningController {
    stop: CancellationToken,
    ended: JoinHandle<Result<(), model::Error>>,
}

impl RunningController {
    async fn stop(self) -> Result<()> {
        self.stop.cancel();
        Ok(self.ended.await??)
    }
}

impl Site {
    async fn start(hosts: usize) -> Result<Option<Self>> {
        let Some(cluster) = Cluster::start().await? else {
            return Ok(None);
        };
        cluster.add_platform().await?;
        let rack = BmcRack::start(BmcRackPlan::of(&BMC_PROFILES[0], hosts)).await?;
        Ok(Some(Self { cluster, rack }))
    }

    /// A Secret and an externally provisioned host that is to run.
    async fn add_host(&self, index: usize, password: &str) -> Result<()> {
        self.add_secret(index, password).await?;
        let host = json!({
            "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
            "metadata": { "name": name(index) },
            "spec": {
                "online": true, "externallyProvisioned": true,
                "bmc": { "address": self.address(index), "credentialsName": format!("{}-bmc", name(index)) },
            },
        });
        self.cluster.create(HOSTS, &host).await
    }

    async fn add_secret(&self, index: usize, password: &str) -> Result<()> {
        let secret = secret(index, password);
        self.cluster.create(SECRETS, &secret).await
    }

    async fn mend_secret(&self, index: usize, password: &str) -> Result<()> {
        let path = format!("{SECRETS}/{}-bmc", name(index));
        let secret = secret(index, password);
        let server = &self.cluster.server;
        let answer = server.ask(Method::PUT, &path, Some(&secret)).await?;
        ensure!(answer.status == StatusCode::OK, "{path}: {}", answer.text());
        Ok(())
    }

    fn address(&self, index: usize) -> String {
        let path = self.rack.bmcs()[index].profile.system_path();
        format!("redfish+{}{path}", self.rack.origin(index, "https"))
    }

    /// A controller that calls itself `holder`; `ca` are the authorities of the BMCs that it trusts.
    async fn controller(&self, holder: &str, ca: Option<&str>) -> Result<HostController> {
        let cluster = KubernetesCluster::new(ClusterAddress {
            kubeconfig: Some(&self.cluster.kubeconfig),
            context: None,
        })
        .await?;
        let quick = RedfishTiming {
            poll: Duration::from_millis(5),
            first_pause: Duration::from_millis(2),
            longest_pause: Duration::from_millis(10),
            ..RedfishTiming::default()
        };
        let connector = RedfishConnector::new(ca.map(str::as_bytes), quick)?;
        let controller = HostController::new(cluster, &connector, holder);
        Ok(controller.with_timing(timing(), TERMS))
    }

    async fn running(&self, holder: &str, ca: Option<&str>) -> Result<RunningController> {
        let controller = self.controller(holder, ca).await?;
        let stop = CancellationToken::new();
        let own = stop.clone();
        Ok(RunningController {
            stop,
            ended: tokio::spawn(async move { controller.run(&own).await }),
        })
    }

    async fn host(&self, index: usize) -> Result<Option<Value>> {
        let path = format!("{HOSTS}/{}", name(index));
        let answer = self.cluster.server.ask(Method::GET, &path, None).await?;
        match answer.status {
            StatusCode::OK => Ok(Some(answer.json()?)),
            StatusCode::NOT_FOUND => Ok(None),
            _ => bail!("{path}: {}", answer.text()),
        }
    }

    async fn existing_host(&self, index: usize) -> Result<Value> {
        self.host(index).await?.context("the host was removed")
    }

    async fn lease(&self) -> Result<Value> {
        let answer = self.cluster.server.ask(Method::GET, LEASE, None).await?;
        ensure!(answer.status == StatusCode::OK, "{}", answer.text());
        answer.json()
    }

    /// Waits for a host whose record fulfils the condition.
    async fn wait(
        &self,
        index: usize,
        doing: &str,
        is_reached: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        until(doing, LIMIT, async || {
            let host = self.existing_host(index).await?;
            Ok(is_reached(&host).then_some(host))
        })
        .await
    }

    /// Applies members of an object, as a person.
    async fn apply(&self, path: &str, object: &Value) -> Result<()> {
        let path = format!("{path}?fieldManager=person&force=true");
        let server = &self.cluster.server;
        let answer = server.ask(Method::PATCH, &path, Some(object)).await?;
        ensure!(answer.status == StatusCode::OK, "{path}: {}", answer.text());
        Ok(())
    }

    async fn set_online(&self, index: usize, is_online: bool) -> Result<()> {
        let host = json!({
            "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
            "metadata": { "name": name(index) }, "spec": { "online": is_online },
        });
        self.apply(&format!("{HOSTS}/{}", name(index)), &host).await
    }

    /// Writes a status in the name of a program.
    async fn write_status(&self, index: usize, manager: &str, state: &str) -> Result<()> {
        let mut host = self.existing_host(index).await?;
        host["status"] = json!({
            "errorCount": 0, "errorMessage": "", "hardwareProfile": "", "operationalStatus": "OK",
            "poweredOn": false, "provisioning": { "ID": "", "state": state },
        });
        let path = format!("{HOSTS}/{}/status?fieldManager={manager}", name(index));
        let server = &self.cluster.server;
        let answer = server.ask(Method::PUT, &path, Some(&host)).await?;
        ensure!(answer.status == StatusCode::OK, "{path}: {}", answer.text());
        Ok(())
    }

    /// The account that is shipped, with its rights.
    async fn add_account(&self) -> Result<()> {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../deploy/host-controller.yaml"
        );
        let objects: Vec<Value> = serde_yaml::from_multiple(&std::fs::read_to_string(path)?)?;
        for object in objects {
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
            let resources = self.cluster.server.resources(&object, namespace).await?;
            self.cluster.create(&resources, &object).await?;
        }
        Ok(())
    }

    /// A file with the authority of the BMCs.
    fn ca_file(&self) -> Result<String> {
        let path = self.cluster.scratch.path().join("bmc-ca.pem");
        std::fs::write(&path, self.rack.ca_pem())?;
        Ok(path.display().to_string())
    }

    /// Runs `atoll host controller --once`: whether its exit code is zero, and its output.
    fn once(&self) -> Result<(bool, String)> {
        let ca = self.ca_file()?;
        let arguments = ["host", "controller", "--once", "--bmc-ca", &ca];
        let output = self.cluster.atoll(&arguments)?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok((output.status.success(), text))
    }
}

fn name(index: usize) -> String {
    format!("host-{}", index + 1)
}

fn secret(index: usize, password: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": { "name": format!("{}-bmc", name(index)) },
        "stringData": { "username": "admin", "password": password },
    })
}

fn state(host: &Value) -> &str {
    let state = host["status"]["provisioning"]["state"].as_str();
    state.unwrap_or_default()
}

fn is_managed(host: &Value) -> bool {
    state(host) == "externally provisioned" && host["status"]["operationalStatus"] == "OK"
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_is_registered_powered_and_removed() -> Result<()> {
    let Some(site) = Site::start(1).await? else {
        return Ok(());
    };
    site.rack.bmcs()[0].set_power(SimulatedPower::Off);
    site.add_host(0, "wrong-horse").await?;
    let running = site.running("one", Some(site.rack.ca_pem())).await?;
    registration(&site).await?;
    power(&site).await?;
    restart(&site).await?;
    running.stop().await?;
    nothing_left(&site).await?;
    removal(&site).await
}

/// A registration fails, until its Secret is mended.
async fn registration(site: &Site) -> Result<()> {
    let bmc = &site.rack.bmcs()[0];
    // Credentials that were refused are not sent again, until others are there.
    let host = site
        .wait(0, "the refusal is recorded", |host| {
            host["status"]["errorType"] == "registration error"
        })
        .await?;
    ensure!(state(&host) == "registering", "{host}");
    ensure!(host["status"]["operationalStatus"] == "error", "{host}");
    ensure!(host["status"]["errorCount"] == 1, "{host}");
    let message = host["status"]["errorMessage"].as_str().unwrap_or_default();
    ensure!(message.contains("correct the secret"), "{host}");
    ensure!(!host.to_string().contains("horse"), "{host}");
    let refused = bmc.refused_logins();
    // Another change of the record is no reason to send them, either.
    site.set_online(0, false).await?;
    site.set_online(0, true).await?;
    site.mend_secret(0, "correct-horse").await?;
    let host = site
        .wait(0, "the host is powered on", |host| {
            is_managed(host) && host["status"]["poweredOn"] == true
        })
        .await?;
    ensure!(bmc.power() == SimulatedPower::On);
    ensure!(bmc.refused_logins() == refused, "{}", bmc.refused_logins());
    ensure!(host["status"]["errorType"].is_null(), "{host}");
    ensure!(host["status"]["errorMessage"] == "", "{host}");
    let finalizers = &host["metadata"]["finalizers"];
    ensure!(*finalizers == json!(["baremetalhost.metal3.io"]), "{host}");
    Ok(())
}

/// Power follows the record, and the record the power.
async fn power(site: &Site) -> Result<()> {
    let bmc = &site.rack.bmcs()[0];
    site.set_online(0, false).await?;
    let off = |host: &Value| host["status"]["poweredOn"] == false;
    site.wait(0, "the host is powered off", off).await?;
    ensure!(bmc.power() == SimulatedPower::Off);
    site.set_online(0, true).await?;
    let on = |host: &Value| host["status"]["poweredOn"] == true;
    site.wait(0, "the host is powered on again", on).await?;
    bmc.set_power(SimulatedPower::Off);
    let is_on = until("a host that went off is powered on", LIMIT, async || {
        Ok((bmc.power() == SimulatedPower::On).then_some(()))
    });
    is_on.await
}

/// A restart is made once.
async fn restart(site: &Site) -> Result<()> {
    let bmc = &site.rack.bmcs()[0];
    let on = |host: &Value| host["status"]["poweredOn"] == true;
    let boots = bmc.boots().len();
    let restart = json!({
        "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
        "metadata": { "name": name(0), "annotations": { "reboot.metal3.io": r#"{"mode": "hard"}"# } },
        "spec": { "online": true },
    });
    site.apply(&format!("{HOSTS}/{}", name(0)), &restart)
        .await?;
    let restarted = |host: &Value| {
        let annotations = &host["metadata"]["annotations"];
        annotations["reboot.metal3.io"].is_null() && bmc.boots().len() > boots && on(host)
    };
    site.wait(0, "the host is restarted", restarted).await?;
    ensure!(bmc.boots().len() == boots + 1, "{:?}", bmc.boots());
    Ok(())
}

/// Nothing is left to do, and nothing is written.
async fn nothing_left(site: &Site) -> Result<()> {
    let bmc = &site.rack.bmcs()[0];
    let ca = Some(site.rack.ca_pem());
    let before = site.existing_host(0).await?;
    let reports = site.controller("two", ca).await?.once().await?;
    ensure!(
        reports.len() == 1 && reports[0].changes.is_empty(),
        "{reports:?}"
    );
    let (is_good, text) = site.once()?;
    ensure!(is_good && text.contains("no host was changed"), "{text}");
    let after = site.existing_host(0).await?;
    ensure!(before == after, "{before} {after}");
    ensure!(bmc.open_sessions() == 0, "{}", bmc.open_sessions());
    Ok(())
}

/// A deleted host is switched off before its record is removed.
async fn removal(site: &Site) -> Result<()> {
    let bmc = &site.rack.bmcs()[0];
    let path = format!("{HOSTS}/{}", name(0));
    site.cluster.server.ask(Method::DELETE, &path, None).await?;
    ensure!(
        site.host(0).await?.is_some(),
        "the finalizer keeps the record"
    );
    let (is_good, text) = site.once()?;
    for part in [
        "state: externally provisioned → powering off before delete (switches a deleted host off)",
        "power: on → off",
        "state: deleting → removed",
    ] {
        ensure!(is_good && text.contains(part), "{part}: {text}");
    }
    ensure!(site.host(0).await?.is_none(), "the record is removed");
    ensure!(bmc.power() == SimulatedPower::Off);
    let lease = site.cluster.server.ask(Method::GET, LEASE, None).await?;
    ensure!(lease.status == StatusCode::NOT_FOUND, "{}", lease.text());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn records_beyond_the_controller_are_reported_and_kept() -> Result<()> {
    let Some(site) = Site::start(3).await? else {
        return Ok(());
    };
    for index in 0..3 {
        site.rack.bmcs()[index].set_power(SimulatedPower::On);
        site.add_host(index, "correct-horse").await?;
    }
    // A state of a later version of this controller.
    site.write_status(0, "atoll-host-controller", "levitating")
        .await?;
    let paused = json!({
        "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
        "metadata": { "name": name(1), "annotations": { "baremetalhost.metal3.io/paused": "" } },
    });
    site.apply(&format!("{HOSTS}/{}", name(1)), &paused).await?;
    let image = json!({
        "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": { "name": name(2) },
        "spec": { "externallyProvisioned": false, "image": { "url": "http://192.0.2.1/image" } },
    });
    site.apply(&format!("{HOSTS}/{}", name(2)), &image).await?;

    let kept = [site.existing_host(0).await?, site.existing_host(1).await?];
    let (is_good, text) = site.once()?;
    for part in [
        "host-1: status.provisioning.state \"levitating\" is not a state of a host",
        "host-2: it is paused",
        "state: inspecting → preparing (prepares the host)",
        "host-3: provisioning error: this controller writes no images",
    ] {
        ensure!(!is_good && text.contains(part), "{part}: {text}");
    }
    for (index, before) in kept.iter().enumerate() {
        let after = site.existing_host(index).await?;
        ensure!(*before == after, "{before} {after}");
        ensure!(site.rack.bmcs()[index].requests().is_empty());
    }
    let host = site.existing_host(2).await?;
    ensure!(state(&host) == "available", "{host}");
    ensure!(host["status"]["hardware"]["nics"].is_array(), "{host}");
    let (is_good, text) = site.once()?;
    ensure!(!is_good && text.contains("no host was changed"), "{text}");
    ensure!(host == site.existing_host(2).await?, "{host}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_controller_acts_and_another_takes_over() -> Result<()> {
    let Some(site) = Site::start(1).await? else {
        return Ok(());
    };
    site.add_host(0, "correct-horse").await?;
    let ca = Some(site.rack.ca_pem());
    let first = site.running("one", ca).await?;
    site.wait(0, "the first one acts", is_managed).await?;
    // The second one trusts no BMC here: each of its looks would be an error in the record.
    let second = site.running("two", None).await?;
    let refused = site.controller("three", ca).await?.once().await;
    let reason = refused.err().context("two controllers act")?.to_string();
    ensure!(reason.contains("a host controller of one"), "{reason}");
    let requests = site.rack.bmcs()[0].requests().len();
    let further = until("the first one looks again", LIMIT, async || {
        let now = site.rack.bmcs()[0].requests().len();
        Ok((now > requests).then_some(()))
    });
    further.await?;
    ensure!(is_managed(&site.existing_host(0).await?));

    first.stop().await?;
    let host = site
        .wait(0, "the second one acts", |host| !is_managed(host))
        .await?;
    let message = host["status"]["errorMessage"].as_str().unwrap_or_default();
    ensure!(message.contains("not trusted"), "{host}");
    ensure!(site.lease().await?["spec"]["holderIdentity"] == "two");

    // A lease that another program takes and abandons comes back.
    let server = &site.cluster.server;
    let stolen = until("the lease is taken away", LIMIT, async || {
        let mut lease = site.lease().await?;
        lease["spec"]["holderIdentity"] = json!("thief");
        let answer = server.ask(Method::PUT, LEASE, Some(&lease)).await?;
        // Between two renewals.
        Ok((answer.status == StatusCode::OK).then_some(lease))
    });
    let stolen = stolen.await?["spec"]["acquireTime"].clone();
    let taken = until("the second one has it again", LIMIT, async || {
        let lease = site.lease().await?;
        Ok((lease["spec"]["holderIdentity"] == "two").then_some(lease))
    });
    ensure!(taken.await?["spec"]["acquireTime"] != stolen);
    second.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn other_controllers_are_not_disturbed() -> Result<()> {
    let Some(site) = Site::start(1).await? else {
        return Ok(());
    };
    site.add_host(0, "correct-horse").await?;
    let ca = Some(site.rack.ca_pem());
    let labels = json!({ "k8s-app": "metal3" });
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "metal3" },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "operator", "image": "192.0.2.1/operator" }] },
            },
        },
        "status": { "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1 },
    });
    site.cluster.create(DEPLOYMENTS, &deployment).await?;
    let controller = site.controller("one", ca).await?;
    let refused = controller
        .once()
        .await
        .err()
        .context("it acts")?
        .to_string();
    ensure!(
        refused.contains("openshift-machine-api/metal3"),
        "{refused}"
    );
    let refused = controller.run(&CancellationToken::new()).await;
    ensure!(refused.is_err());

    let path = format!("{DEPLOYMENTS}/metal3");
    site.cluster.server.ask(Method::DELETE, &path, None).await?;
    site.write_status(0, "another-operator", "registering")
        .await?;
    let before = site.existing_host(0).await?;
    let refused = controller
        .once()
        .await
        .err()
        .context("it acts")?
        .to_string();
    ensure!(
        refused.contains("another-operator has written the status of host-1"),
        "{refused}"
    );
    ensure!(before == site.existing_host(0).await?);
    ensure!(site.rack.bmcs()[0].requests().is_empty());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_logs_changes_and_gives_its_lease_back() -> Result<()> {
    let Some(site) = Site::start(1).await? else {
        return Ok(());
    };
    site.add_host(0, "correct-horse").await?;
    site.add_account().await?;
    let folder = site.cluster.scratch.path();
    let server = &site.cluster.server;
    let kubeconfig =
        server.kubeconfig_as(HOST_CONTROLLER_TOKEN, folder, "controller-kubeconfig")?;
    let log = site.cluster.scratch.path().join("controller.log");
    let mut child = Command::new(program("atoll")?)
        .args(["host", "controller", "--bmc-ca", &site.ca_file()?])
        .arg("--kubeconfig")
        .arg(&kubeconfig)
        .stdin(Stdio::null())
        .stderr(File::create(&log)?)
        .spawn()?;
    let managed = site.wait(0, "the command acts", is_managed).await;
    signal(child.id(), Signal::TERM)?;
    let status = child.wait()?;
    let log = std::fs::read_to_string(&log)?;
    ensure!(managed.is_ok() && status.success(), "{status}: {log}");
    let taken_over = "takes over an installed host";
    let changes = log.lines().filter(|line| line.contains(taken_over));
    ensure!(changes.count() == 1, "{log}");
    ensure!(!log.contains("correct-horse"), "{log}");
    let lease = server.ask(Method::GET, LEASE, None).await?;
    ensure!(lease.status == StatusCode::NOT_FOUND, "{}", lease.text());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn many_hosts_are_managed_beside_hosts_that_fail() -> Result<()> {
    const HOSTS: usize = 100;
    let Some(site) = Site::start(HOSTS).await? else {
        return Ok(());
    };
    let is_failing = |index: usize| index.is_multiple_of(10);
    for index in 0..HOSTS {
        let password = if is_failing(index) {
            "wrong"
        } else {
            "correct-horse"
        };
        site.add_host(index, password).await?;
        site.rack.bmcs()[index].set_power(SimulatedPower::Off);
    }
    let running = site.running("one", Some(site.rack.ca_pem())).await?;
    for index in 0..HOSTS {
        let bmc = &site.rack.bmcs()[index];
        if is_failing(index) {
            let refused = |host: &Value| host["status"]["errorType"] == "registration error";
            site.wait(index, "the refusal is recorded", refused).await?;
            ensure!(bmc.power() == SimulatedPower::Off && bmc.refused_logins() == 1);
        } else {
            let is_on = |host: &Value| is_managed(host) && host["status"]["poweredOn"] == true;
            site.wait(index, "the host is powered on", is_on).await?;
            ensure!(bmc.boots().len() == 1, "{:?}", bmc.boots());
        }
    }
    running.stop().await
}
