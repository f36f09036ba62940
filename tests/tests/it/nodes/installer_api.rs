//! Nodes of an installed cluster over the installer API: their state, and the plan and progress of a replacement.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use data_encoding::BASE64;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use system_tests::{ApiClient, Installation, until};

use super::cluster::Cluster;
use super::replace::{Progress, Site};
use super::servers::Servers;

/// Port of etcd on the platform: the API server looks for it there.
const ETCD_PORT: u16 = 2379;
const LIMIT: Duration = Duration::from_mins(2);
const CONFIG_MAPS: &str = "/api/v1/namespaces/openshift-etcd/configmaps";
const SECRETS: &str = "/api/v1/namespaces/openshift-etcd/secrets";

/// A site with a cluster that it knows, and that has one failed control node.
struct KnownCluster {
    site: Site,
    installation: Installation,
    api: ClusterApi,
}

/// The installer API of one cluster.
#[derive(Clone)]
struct ClusterApi {
    api: ApiClient,
    id: String,
}

impl KnownCluster {
    async fn start() -> Result<Option<Self>> {
        let Some(cluster) = Cluster::start().await? else {
            return Ok(None);
        };
        let Some(servers) = Servers::start_at(3, ETCD_PORT).await else {
            return Ok(None);
        };
        let site = Site::of(cluster, servers).await?;
        let installation = Installation::start().await?;
        let api = installation.api()?;
        let import = json!({
            "name": "lab", "api_vip_dnsname": "api.lab.test", "openshift_cluster_id": "7a6c1f0e-2f0e-4c3e-9a57-6a6f8d1c0b12",
        });
        let imported = api
            .ask(Method::POST, "/v2/clusters/import", Some(&import))
            .await?;
        ensure!(
            imported.status == StatusCode::CREATED,
            "{}",
            imported.text()
        );
        let id = imported.json()?["id"].as_str().context("no id")?.to_owned();
        let known = Self {
            site,
            installation,
            api: ClusterApi { api, id },
        };
        known.add_way_to_etcd().await?;
        Ok(Some(known))
    }

    /// The records by which etcd is found.
    async fn add_way_to_etcd(&self) -> Result<()> {
        let (cluster, servers) = (&self.site.cluster, &self.site.servers);
        let file = |name: &str| fs::read_to_string(servers.path(name));
        let addresses = servers.places.values();
        let addresses: Value = addresses
            .map(|place| (place.name.clone(), Value::from(place.host.clone())))
            .collect::<serde_json::Map<_, _>>()
            .into();
        for (name, data) in [
            ("etcd-endpoints", addresses),
            (
                "etcd-ca-bundle",
                json!({ "ca-bundle.crt": file("authority.pem")? }),
            ),
        ] {
            let record = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": data,
            });
            cluster.create(CONFIG_MAPS, &record).await?;
        }
        let client = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "etcd-client" },
            "stringData": { "tls.crt": file("certificate.pem")?, "tls.key": file("key.pem")? },
        });
        cluster.create(SECRETS, &client).await
    }

    /// Stores a kubeconfig as that of the cluster's installation.
    fn store(&self, kubeconfig: &Value) -> Result<()> {
        let folder = self.installation.data().join("api-server");
        let folder = folder.join(&self.api.id);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("kubeconfig-noingress"), kubeconfig.to_string())?;
        Ok(())
    }

    /// The administrator's kubeconfig, with its authority in itself.
    fn kubeconfig(&self) -> Result<Value> {
        let cluster = &self.site.cluster;
        let mut kubeconfig: Value =
            serde_json::from_str(&fs::read_to_string(&cluster.kubeconfig)?)?;
        let authority = fs::read(cluster.scratch.path().join("authority.pem"))?;
        let entry = &mut kubeconfig["clusters"][0]["cluster"];
        entry["certificate-authority-data"] = BASE64.encode(&authority).into();
        let members = entry.as_object_mut().context("no cluster")?;
        members.remove("certificate-authority");
        Ok(kubeconfig)
    }
}

impl ClusterApi {
    async fn ask(&self, path: &str, body: Option<Value>) -> Result<(u16, Value)> {
        let method = if body.is_some() {
            Method::POST
        } else {
            Method::GET
        };
        let path = format!("/v2/clusters/{}/{path}", self.id);
        let answer = self.api.ask(method, &path, body.as_ref()).await?;
        Ok((answer.status.as_u16(), answer.json()?))
    }

    async fn get(&self, path: &str) -> Result<Value> {
        let (status, answer) = self.ask(path, None).await?;
        ensure!(status == 200, "{path}: {answer}");
        Ok(answer)
    }

    async fn plan(&self, body: Value) -> Result<(u16, Value)> {
        self.ask("node-replacement/plan", Some(body)).await
    }

    /// Waits until the members of etcd are two, and compares the published progress.
    async fn watch_replacement(&self) -> Result<()> {
        let seen = until("the old member is removed", LIMIT, async || {
            let seen = self.get("node-replacement").await?;
            let is_open = seen["last"]["window"]["since"].is_string();
            Ok(is_open.then_some(seen))
        });
        let seen = seen.await?;
        let holder = seen["run"]["holder"].as_str().unwrap_or_default();
        ensure!(holder.contains("process"), "{seen}");
        let last = &seen["last"];
        ensure!(
            last["state"] == "unfinished" && last["window"]["until"].is_null(),
            "{seen}"
        );
        let steps = last["steps"].as_array().context("no steps")?;
        let removed = steps.iter().find(|step| step["step"] == "remove-member");
        ensure!(removed.context("no step")?["state"] == "finished", "{seen}");
        ensure!(!seen.to_string().contains("s3cret-token"), "{seen}");
        let other = json!({
            "node": "control-1", "unwanted": true, "new_name": "control-4", "new_address": "127.0.0.14",
        });
        let (status, plan) = self.plan(other).await?;
        ensure!(status == 200, "{plan}");
        let closed = plan["closed"].as_array().context("no gates")?;
        let is_other = |gate: &Value| gate["gate"] == "no-other-replacement";
        ensure!(closed.iter().any(is_other), "{plan}");
        Ok(())
    }

    /// Each way to no answer, with its reason.
    async fn check_refusals(&self) -> Result<()> {
        for (body, status, reason) in [
            (json!({ "node": "control-1" }), 409, "is healthy"),
            (json!({ "node": "control-9" }), 409, "control-9"),
            (
                json!({ "node": "control-2", "new_name": "control-4" }),
                400,
                "new_name",
            ),
            (json!({ "node": "" }), 400, "node"),
            (json!({ "knot": "control-2" }), 400, "knot"),
        ] {
            let (seen, answer) = self.plan(body.clone()).await?;
            ensure!(seen == status, "{body}: {seen} {answer}");
            ensure!(answer.to_string().contains(reason), "{body}: {answer}");
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plan_and_progress_of_a_replacement_are_those_of_the_command() -> Result<()> {
    let Some(mut known) = KnownCluster::start().await? else {
        return Ok(());
    };
    let (status, refused) = known.api.ask("nodes", None).await?;
    ensure!(status == 409, "without a kubeconfig: {status} {refused}");
    let mut hostile = known.kubeconfig()?;
    hostile["users"][0]["user"] = json!({ "exec": { "command": "true", "apiVersion": "v1" } });
    known.store(&hostile)?;
    let (status, refused) = known.api.ask("nodes", None).await?;
    ensure!(
        status == 500,
        "a program in the kubeconfig: {status} {refused}"
    );
    known.store(&known.kubeconfig()?)?;

    let report = known.api.get("nodes").await?;
    let nodes = report["nodes"].as_array().context("no nodes")?;
    let row = nodes.iter().find(|row| row["node"] == "control-2");
    let row = row.context("no control-2")?;
    ensure!(
        row["is_ready"] == false && row["machine"] == "machine-2",
        "{row}"
    );
    ensure!(!report.to_string().contains("correct-horse"));
    known.api.check_refusals().await?;
    let before = known.api.get("node-replacement").await?;
    ensure!(before == json!({ "run": null, "last": null }), "{before}");

    let (status, plan) = known.api.plan(json!({ "node": "control-2" })).await?;
    ensure!(status == 200, "{plan}");
    let site = &mut known.site;
    let printed = site.command(&["--state", &site.state(), "--plan", "--json"])?;
    let printed = { printed }.output()?;
    let printed: Value = serde_json::from_slice(&printed.stdout)?;
    ensure!(plan == printed, "{plan}\n{printed}");
    ensure!(
        plan["fewest_voters"] == 2 && plan["host"] == "host-2",
        "{plan}"
    );

    let api = known.api.clone();
    let (run, ()) = tokio::try_join!(
        known.site.run(None, Progress::Waiting),
        api.watch_replacement()
    )?;
    ensure!(run.status.is_some_and(|it| it.success()), "{}", run.text);
    let ended = known.api.get("node-replacement").await?;
    ensure!(ended["run"].is_null(), "{ended}");
    ensure!(ended["last"]["state"] == "completed", "{ended}");
    ensure!(ended["last"]["window"]["until"].is_string(), "{ended}");
    let nodes = known.api.get("nodes").await?;
    let is_ready = |row: &Value| row["node"].is_null() || row["is_ready"] == true;
    let nodes = nodes["nodes"].as_array().context("no nodes")?;
    ensure!(nodes.iter().all(is_ready), "{nodes:?}");

    let mut unknown = known.kubeconfig()?;
    unknown["users"][0]["user"] = json!({ "token": "s3cret-token" });
    known.store(&unknown)?;
    let (status, refused) = known.api.ask("nodes", None).await?;
    ensure!(status == 409, "an unknown account: {status} {refused}");
    ensure!(!refused.to_string().contains("s3cret-token"), "{refused}");
    let mut away = known.kubeconfig()?;
    away["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9".into();
    known.store(&away)?;
    let (status, refused) = known.api.ask("nodes", None).await?;
    ensure!(status == 503, "an API that is away: {status} {refused}");
    known.installation.stop().await
}
