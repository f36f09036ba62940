//! One running installation: its machines boot, it is installed, and its final state is judged.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use declarations::site::SiteFinding;
use host_sim::{Hardware, Simulation, SimulationPlan};
use model::explain::Explanation;
use model::host::HostRole;
use reqwest::Method;
use serde_json::{Value, json};

use crate::Error;
use crate::api::{InstallerApi, accepted};
use crate::findings::{self, list, name_of};
use crate::options::PlayOptions;
use crate::progress::{RehearsalEvent, StateTracker};
use crate::records::CreatedRecords;
use crate::script::Script;

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

/// The end of one installation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstallationOutcome {
    /// Whether the cluster is installed, with the hosts that join it.
    pub is_installed: bool,
    /// Last status of the cluster.
    pub status: String,
    /// Mistakes that it met.
    pub findings: Vec<SiteFinding>,
}

/// A running installation; its machines end when it is dropped.
pub(crate) struct PlayedInstallation<'a> {
    api: &'a InstallerApi,
    script: &'a Script,
    options: &'a PlayOptions,
    made: &'a CreatedRecords,
    simulation: Simulation,
    tracker: StateTracker,
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

impl<'a> PlayedInstallation<'a> {
    /// Switches the machines of created records on.
    pub(crate) async fn start(
        api: &'a InstallerApi,
        script: &'a Script,
        options: &'a PlayOptions,
        made: &'a CreatedRecords,
        mut tracker: StateTracker,
    ) -> Result<Self, Error> {
        let plan = SimulationPlan {
            boot: made.boot_config(api).await?,
            machines: made.machines(api, script).await?,
            network: script.network.clone(),
            pace: options.pace,
            seed: script.seed.clone(),
            has_dummy_files: options.has_dummy_files,
            state: None,
            interval: None,
        };
        let simulation =
            Simulation::start(&plan, api.connections()).map_err(|e| Error::internal(e.chain()))?;
        tracker.start(options.pace);
        Ok(Self {
            api,
            script,
            options,
            made,
            simulation,
            tracker,
            settled: BTreeSet::new(),
            failures: Vec::new(),
        })
    }

    /// Installs the cluster, and lets machines join it.
    pub(crate) async fn play(&mut self) -> Result<InstallationOutcome, Error> {
        let hosts = self.script.machines.iter().filter(|one| !one.joins).count();
        self.tracker.event(&RehearsalEvent::Booting { hosts });
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
        self.tracker.event(&RehearsalEvent::Accepted);
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
    async fn join(&mut self, joining: usize) -> Result<InstallationOutcome, Error> {
        let path = format!(
            "/v2/clusters/{}/actions/allow-add-workers",
            self.made.cluster
        );
        accepted(self.api.send(Method::POST, &path, None).await?)?;
        self.simulation.boot_joining();
        self.tracker
            .event(&RehearsalEvent::Joining { hosts: joining });
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

    async fn end(&self, view: &View, is_installed: bool) -> Result<InstallationOutcome, Error> {
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
        Ok(InstallationOutcome {
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
            let is_new = self.tracker.show(&cluster);
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
                    serde_json::from_value(body).map_err(Error::server)?;
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
                self.tracker.event(&RehearsalEvent::Refused {
                    host: name_of(host),
                    reason: &refusal.observed(),
                });
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
