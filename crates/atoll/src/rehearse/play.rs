//! Plays installations: creates the cluster of a script, boots its machines, installs, and judges the final state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use host_sim::image::BootConfig;
use host_sim::{Hardware, Pace, Simulation, SimulationPlan};
use model::explain::Explanation;
use model::host::HostRole;
use model::ids::ClusterId;
use reqwest::Method;
use rules::declaration;
use rules::site::SiteFinding;
use serde_json::{Value, json};
use service::Error;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::DOING;
use super::api::{InstallerApi, RequestRefusal};
use super::findings::{self, list, name_of};
use super::machines::SufficientHardware;
use super::progress::Progress;
use super::script::{Script, refused};

/// Interval of reading the cluster.
const LOOK: Duration = Duration::from_millis(500);
/// Shortest pause after a reading, as a multiple of its duration: reading clusters of many hosts is work for the server,
/// too, and must not keep it from the hosts' requests.
const PAUSE: u32 = 4;
/// Statuses in which validations are up to date.
const JUDGED: [&str; 3] = ["ready", "preparing-for-installation", "insufficient"];
/// Multiple of the time without any change, while validations wait for results of hosts.
const PATIENCE: u32 = 3;
/// Statuses that an installation does not leave.
const ENDED: [&str; 3] = ["installed", "error", "cancelled"];

/// The way of playing.
#[derive(Debug, Clone)]
pub(super) struct PlayOptions {
    /// Relation of simulated to real time.
    pub(super) pace: Pace,
    /// Time without any change after which a state counts as final. It is counted in readings of the cluster, which a busy
    /// server delays as it delays the hosts.
    pub(super) quiet: Duration,
    /// Version of the release; none: the server's default.
    pub(super) version: Option<String>,
    /// Whether the server makes files without an installer.
    pub(super) has_dummy_files: bool,
    /// No progress lines.
    pub(super) is_quiet: bool,
    /// Whether the clusters are removed at the end.
    pub(super) removes: bool,
}

/// The end of one installation.
#[derive(Debug, Clone, Default)]
pub(super) struct Outcome {
    /// Whether the cluster is installed, with the hosts that join it.
    pub(super) is_installed: bool,
    /// Last status of the cluster.
    pub(super) status: String,
    /// Mistakes that it met.
    pub(super) findings: Vec<SiteFinding>,
}

/// Plays copies of a script, at most `at_once` at the same time.
///
/// Errors: the first that any of them has.
pub(super) async fn all(
    api: &InstallerApi,
    script: &Script,
    options: &PlayOptions,
    copies: usize,
    at_once: usize,
) -> Result<Vec<Outcome>, Error> {
    let (version, permits) = (release(api, options).await?, Semaphore::new(at_once));
    let permits = Arc::new(permits);
    let mut running = JoinSet::new();
    for at in 0..copies {
        let (api, options, version) = (api.clone(), options.clone(), version.clone());
        let permit = Arc::clone(&permits).acquire_owned().await;
        let permit = permit.map_err(|e| Error::new(DOING, e))?;
        // Copied after the permit: only running installations have machines in memory.
        let script = script.copy(at);
        running.spawn(async move {
            let outcome = play(&api, &script, &options, &version).await;
            drop(permit);
            outcome
        });
    }
    let mut outcomes = Vec::new();
    while let Some(ended) = running.join_next().await {
        outcomes.push(ended.map_err(|e| Error::new(DOING, e))??);
    }
    Ok(outcomes)
}

/// The version of new clusters.
async fn release(api: &InstallerApi, options: &PlayOptions) -> Result<String, Error> {
    if let Some(version) = &options.version {
        return Ok(version.clone());
    }
    let versions = accepted(api.get("/v2/openshift-versions").await?)?;
    let versions = versions.as_object().cloned().unwrap_or_default();
    let default = versions
        .iter()
        .find(|(_, version)| version["default"] == true);
    let version = default.or_else(|| versions.iter().next_back());
    let version = version.map(|(name, _)| name.clone());
    version.ok_or_else(|| Error::new(DOING, "the server offers no release"))
}

/// The body of a response that no site has to do with.
fn accepted(answer: Result<Value, RequestRefusal>) -> Result<Value, Error> {
    answer.map_err(|refusal| {
        let reason = format!("the server answered {}: {}", refusal.status, refusal.reason);
        Error::new(DOING, reason)
    })
}

async fn play(
    api: &InstallerApi,
    script: &Script,
    options: &PlayOptions,
    version: &str,
) -> Result<Outcome, Error> {
    let mut made = CreatedRecords::default();
    let result = async {
        if let Err(finding) = made.create(api, script, version).await? {
            return Ok(Outcome {
                status: "not created".to_owned(),
                findings: vec![finding],
                ..Outcome::default()
            });
        }
        let boot = boot_config(api, &made).await?;
        let plan = SimulationPlan {
            boot,
            machines: machines(api, &made, script).await?,
            network: script.network.clone(),
            pace: options.pace,
            seed: script.seed.clone(),
            has_dummy_files: options.has_dummy_files,
            state: None,
            interval: None,
        };
        let simulation = Simulation::start(&plan, api.connections())
            .map_err(|e| Error::new(DOING, e.chain()))?;
        let mut installation = PlayedInstallation {
            api,
            script,
            options,
            made: &made,
            simulation,
            progress: Progress::new(options.is_quiet, names(script)),
            settled: BTreeSet::new(),
            failures: Vec::new(),
        };
        installation.play().await
    }
    .await;
    if options.removes {
        made.remove(api).await?;
    }
    result
}

/// Records on the server.
#[derive(Debug, Default)]
struct CreatedRecords {
    cluster: String,
    infra_env: String,
}

impl CreatedRecords {
    /// Creates cluster and infra-env. The inner error is the refusal of the site.
    async fn create(
        &mut self,
        api: &InstallerApi,
        script: &Script,
        version: &str,
    ) -> Result<Result<(), SiteFinding>, Error> {
        let wanted = &script.site.declaration;
        let params = match declaration::cluster_params(wanted, version) {
            Ok(params) => params,
            Err(error) => return Ok(Err(refused(&error))),
        };
        let body = serde_json::to_value(&params).map_err(|e| Error::new(DOING, e))?;
        let created = api.send(Method::POST, "/v2/clusters", Some(&body)).await?;
        match created {
            Ok(cluster) => self.cluster = id(&cluster)?,
            Err(refusal) => return Ok(Err(findings::refused(&refusal))),
        }
        if !wanted.overrides.is_empty() {
            let overrides = serde_json::to_string(&wanted.overrides);
            let overrides = overrides.map_err(|e| Error::new(DOING, e))?;
            let path = format!("/v2/clusters/{}/install-config", self.cluster);
            let body = Value::String(overrides);
            if let Err(refusal) = api.send(Method::PATCH, &path, Some(&body)).await? {
                return Ok(Err(findings::refused(&refusal)));
            }
        }
        let cluster: ClusterId = self.cluster.parse().map_err(|e| Error::new(DOING, e))?;
        let params = match declaration::infra_env_params(wanted, Some(cluster), version) {
            Ok(params) => params,
            Err(error) => return Ok(Err(refused(&error))),
        };
        let body = serde_json::to_value(&params).map_err(|e| Error::new(DOING, e))?;
        match api
            .send(Method::POST, "/v2/infra-envs", Some(&body))
            .await?
        {
            Ok(infra_env) => self.infra_env = id(&infra_env)?,
            Err(refusal) => return Ok(Err(findings::refused(&refusal))),
        }
        Ok(Ok(()))
    }

    /// Removes the records, as far as they were created; a refusal leaves them to the user.
    async fn remove(&self, api: &InstallerApi) -> Result<(), Error> {
        if !self.cluster.is_empty() {
            let path = format!("/v2/clusters/{}", self.cluster);
            let cancel = format!("{path}/actions/cancel");
            // Refused unless the installation runs.
            let _ = api.send(Method::POST, &cancel, None).await?;
            let _ = api.send(Method::DELETE, &path, None).await?;
        }
        if !self.infra_env.is_empty() {
            let path = format!("/v2/infra-envs/{}", self.infra_env);
            let _ = api.send(Method::DELETE, &path, None).await?;
        }
        Ok(())
    }
}

fn id(record: &Value) -> Result<String, Error> {
    let id = record["id"].as_str().unwrap_or_default().to_owned();
    if id.is_empty() {
        return Err(Error::new(DOING, "the server created a record without id"));
    }
    Ok(id)
}

/// The agent's configuration, as the discovery image has it.
async fn boot_config(api: &InstallerApi, made: &CreatedRecords) -> Result<BootConfig, Error> {
    let path = format!(
        "/v2/infra-envs/{}/downloads/files?file_name=discovery.ign",
        made.infra_env
    );
    let ignition = accepted(api.get(&path).await?)?;
    BootConfig::from_ignition(&ignition).map_err(|e| Error::new(DOING, e.chain()))
}

/// The machines of a script, large enough for the created cluster.
async fn machines(
    api: &InstallerApi,
    made: &CreatedRecords,
    script: &Script,
) -> Result<Vec<Hardware>, Error> {
    let path = format!("/v2/clusters/{}/preflight-requirements", made.cluster);
    // Servers without this operation have the requirements that the machines of a role suit anyway.
    let needs = SufficientHardware::of(&api.get(&path).await?.unwrap_or_default());
    let mut machines = script.machines.clone();
    needs.apply(&mut machines, &script.site);
    Ok(machines)
}

/// A running installation.
struct PlayedInstallation<'a> {
    api: &'a InstallerApi,
    script: &'a Script,
    options: &'a PlayOptions,
    made: &'a CreatedRecords,
    simulation: Simulation,
    progress: Progress,
    /// Ids of hosts whose declared settings were sent.
    settled: BTreeSet<String>,
    /// Validations that failed and did not keep the cluster from being installed.
    failures: Vec<SiteFinding>,
}

/// The state at the end of a wait.
struct View {
    cluster: Value,
    findings: Vec<SiteFinding>,
}

impl PlayedInstallation<'_> {
    async fn play(&mut self) -> Result<Outcome, Error> {
        let hosts = self.script.machines.iter().filter(|one| !one.joins).count();
        self.progress.line(&format!("{hosts} hosts boot"));
        let view = self
            .watch(|cluster| {
                let known = count(cluster, &["known"]);
                status(cluster) == "ready" && known == hosts
            })
            .await?;
        if status(&view.cluster) != "ready" || count(&view.cluster, &["known"]) != hosts {
            return self.end(&view, false).await;
        }
        let path = format!("/v2/clusters/{}/actions/install", self.made.cluster);
        if let Err(refusal) = self.api.send(Method::POST, &path, None).await? {
            let mut outcome = self.end(&view, false).await?;
            outcome.findings.push(findings::refused(&refusal));
            return Ok(outcome);
        }
        self.progress.line("installation accepted");
        let view = self
            .watch(|cluster| ENDED.contains(&status(cluster)))
            .await?;
        let is_installed = status(&view.cluster) == "installed";
        let joining = self.script.machines.iter().filter(|one| one.joins).count();
        if !is_installed || joining == 0 {
            return self.end(&view, is_installed).await;
        }
        self.join(joining).await
    }

    /// Lets the joining machines boot, and installs each.
    async fn join(&mut self, joining: usize) -> Result<Outcome, Error> {
        let path = format!(
            "/v2/clusters/{}/actions/allow-add-workers",
            self.made.cluster
        );
        accepted(self.api.send(Method::POST, &path, None).await?)?;
        self.simulation.boot_joining();
        self.progress.line(&format!("{joining} hosts join"));
        let view = self
            .watch(|cluster| count(cluster, &["known"]) == joining)
            .await?;
        for host in list(&view.cluster["hosts"]).filter(|host| host["status"] == "known") {
            let path = format!("{}/actions/install", path_of(host));
            accepted(self.api.send(Method::POST, &path, None).await?)?;
        }
        let joined = ["added-to-existing-cluster"];
        let view = self
            .watch(|cluster| count(cluster, &joined) == joining)
            .await?;
        let is_complete = count(&view.cluster, &joined) == joining;
        self.end(&view, is_complete).await
    }

    async fn end(&self, view: &View, is_installed: bool) -> Result<Outcome, Error> {
        let path = format!(
            "/v2/events?cluster_id={}&severities=warning",
            self.made.cluster
        );
        let warnings = accepted(self.api.get(&path).await?)?;
        let breaches = self.simulation.world().breaches().into_iter();
        let breaches = breaches.map(|observed| SiteFinding {
            id: "agent-protocol".to_owned(),
            observed,
            required: "a server that speaks the protocol of agents".to_owned(),
            ..SiteFinding::default()
        });
        // The causes of an installed cluster are those of hosts that never were part of it.
        let mut causes: Vec<SiteFinding> = view.findings.clone();
        causes.retain(|_| !is_installed);
        for failure in &self.failures {
            let is_same = |one: &SiteFinding| one.id == failure.id && one.host == failure.host;
            if !causes.iter().any(is_same) {
                causes.push(failure.clone());
            }
        }
        let status = status(&view.cluster).to_owned();
        let mut findings = self.missing(&view.cluster);
        findings.extend(causes);
        findings.extend(findings::of_events(&warnings, &view.cluster));
        findings.extend(breaches);
        if !is_installed && findings.is_empty() {
            findings.push(SiteFinding {
                id: status.clone(),
                observed: text(&view.cluster, "status_info").to_owned(),
                ..SiteFinding::default()
            });
        }
        Ok(Outcome {
            is_installed,
            status,
            findings,
        })
    }

    /// Machines that are switched on and never registered.
    fn missing(&self, cluster: &Value) -> Vec<SiteFinding> {
        let is_known = |id: &str| list(&cluster["hosts"]).any(|host| text(host, "id") == id);
        let machines = self.script.machines.iter().filter(|one| !one.joins);
        let missing = machines.filter(|one| !is_known(&one.host_id.to_string()));
        let finding = |machine: &Hardware| SiteFinding {
            id: "host-missing".to_owned(),
            host: machine.hostname.clone(),
            observed: "the host never registered".to_owned(),
            required: "a host that reaches the server from its network".to_owned(),
            fix: "Check its medium, its network configuration and the server's address.".to_owned(),
        };
        missing.map(finding).collect()
    }

    /// Reads the cluster until the condition holds, or nothing new has come for long.
    async fn watch(&mut self, is_done: impl Fn(&Value) -> bool) -> Result<View, Error> {
        let mut unchanged = Duration::ZERO;
        let mut causes = BTreeSet::new();
        loop {
            let began = Instant::now();
            let path = format!("/v2/clusters/{}", self.made.cluster);
            let cluster = accepted(self.api.get(&path).await?)?;
            let is_new = self.progress.show(&cluster);
            let is_sent = self.send_settings(&cluster).await?;
            // Later on, validations of hosts that restart are out of date.
            if JUDGED.contains(&status(&cluster)) {
                self.failures = findings::failures(&cluster);
            }
            if is_done(&cluster) {
                let findings = self.findings(&cluster).await?;
                return Ok(View { cluster, findings });
            }
            let findings = self.findings(&cluster).await?;
            // Counted once: causes may alternate for ever.
            let known = causes.len();
            causes.extend(
                findings
                    .iter()
                    .map(|one| (one.id.clone(), one.host.clone())),
            );
            if is_new || is_sent || causes.len() > known {
                unchanged = Duration::ZERO;
            }
            let patience = if findings::has_pending(&cluster) {
                PATIENCE
            } else {
                1
            };
            if unchanged >= self.options.quiet * patience {
                return Ok(View { cluster, findings });
            }
            unchanged += LOOK;
            tokio::time::sleep(LOOK.max(began.elapsed() * PAUSE)).await;
        }
    }

    async fn findings(&self, cluster: &Value) -> Result<Vec<SiteFinding>, Error> {
        let path = format!("/v2/clusters/{}/explain", self.made.cluster);
        // Servers without explanations have no such path.
        match self.api.get(&path).await? {
            Ok(body) => {
                let explanation: Explanation =
                    serde_json::from_value(body).map_err(|e| Error::new(DOING, e))?;
                Ok(findings::of_explanation(&explanation))
            }
            Err(_) => Ok(findings::of_validations(cluster)),
        }
    }

    /// Sends role and installation disk of hosts with an inventory; true if there were any.
    async fn send_settings(&mut self, cluster: &Value) -> Result<bool, Error> {
        let mut is_sent = false;
        for host in list(&cluster["hosts"]) {
            let id = text(host, "id");
            if self.settled.contains(id) || text(host, "inventory").is_empty() {
                continue;
            }
            let params = self.settings_of(id);
            self.settled.insert(id.to_owned());
            if params.as_object().is_some_and(serde_json::Map::is_empty) {
                continue;
            }
            is_sent = true;
            let answer = self
                .api
                .send(Method::PATCH, &path_of(host), Some(&params))
                .await?;
            if let Err(refusal) = answer {
                self.progress
                    .line(&format!("{}: {}", name_of(host), refusal.reason));
            }
        }
        Ok(is_sent)
    }

    /// Declared role and installation disk of a host.
    fn settings_of(&self, id: &str) -> Value {
        let mut hosts = self.script.site.hosts.iter().zip(&self.script.machines);
        let Some((host, machine)) = hosts.find(|(_, one)| one.host_id.to_string() == id) else {
            return json!({});
        };
        let mut params = json!({});
        if let Some(role) = host.role.filter(|role| *role != HostRole::AutoAssign) {
            params["host_role"] = json!(role.as_str());
        }
        if host.disk_hints.is_some() {
            let disk = host
                .installation_disk()
                .and_then(|at| machine.disks.get(at));
            // Without a hardware record, the machine has the disk that the hints describe.
            let disk = match &host.record.hardware {
                Some(_) => disk,
                None => machine.disks.first(),
            };
            if let Some(disk) = disk {
                params["disks_selected_config"] =
                    json!([{ "id": disk.by_id(), "role": "install" }]);
            }
        }
        params
    }
}

/// Names of the machines by their host ids.
fn names(script: &Script) -> BTreeMap<String, String> {
    let machines = script.machines.iter();
    machines
        .map(|machine| (machine.host_id.to_string(), machine.hostname.clone()))
        .collect()
}

fn path_of(host: &Value) -> String {
    let (infra_env, id) = (text(host, "infra_env_id"), text(host, "id"));
    format!("/v2/infra-envs/{infra_env}/hosts/{id}")
}

fn text<'a>(record: &'a Value, member: &str) -> &'a str {
    record[member].as_str().unwrap_or_default()
}

fn status(record: &Value) -> &str {
    text(record, "status")
}

/// Number of hosts in one of the statuses.
fn count(cluster: &Value, statuses: &[&str]) -> usize {
    let hosts = list(&cluster["hosts"]);
    hosts
        .filter(|host| statuses.contains(&status(host)))
        .count()
}
