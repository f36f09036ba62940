//! The Kubernetes side and the machines, simulated as far as a replacement observes them.
//!
//! etcd is real. The operator adds and promotes members, removes those of deleted Machines, and rolls revisions out;
//! kubelets ask for certificates; a hostile one asks as well.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use etcd::quorum::MemberRole;
use etcd::{EtcdCluster, EtcdView, MemberHealth};
use kubernetes::CertificateRequest;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use replacement::{
    HostView, KubernetesSide, KubernetesView, MachineSide, MachineView, NodeHardware, NodePlace,
    NodeView, PowerState, RecordKind, ReplacementCase, RolloutView, WorldError,
};
use serde_json::{Value, json};

use crate::servers::Servers;

/// Interval of the controllers.
const TICK: Duration = Duration::from_millis(100);
/// Ticks of an installation.
const INSTALLATION: u32 = 3;

/// Properties of the platform that differ between cases.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlatformOptions {
    pub(crate) control_nodes: u8,
    pub(crate) has_machine_api: bool,
    pub(crate) is_operator_managed: bool,
}

/// The platform. Its controllers run until it is dropped.
pub(crate) struct Platform {
    state: Arc<Mutex<PlatformState>>,
    controllers: tokio::task::JoinHandle<()>,
}

/// State of a machine that boots.
enum BootPhase {
    Installing(u32),
    ClientCertificate(String),
    ServingCertificate(String),
}

pub(crate) struct PlatformState {
    options: PlatformOptions,
    pub(crate) servers: Servers,
    pub(crate) nodes: BTreeMap<String, NodeView>,
    pub(crate) machines: BTreeMap<String, MachineView>,
    /// Machines with the hook of etcd's operator.
    hooks: BTreeSet<String>,
    pub(crate) hosts: BTreeMap<String, HostView>,
    pub(crate) records: BTreeMap<String, Value>,
    etcd_secrets: BTreeSet<String>,
    pub(crate) is_pool_paused: bool,
    pub(crate) rollout_override: Value,
    endpoints: BTreeSet<IpAddr>,
    latest: i64,
    revisions: BTreeMap<String, i64>,
    pub(crate) power: BTreeMap<String, PowerState>,
    /// New machines that run another system before they boot.
    pub(crate) others: BTreeSet<String>,
    booting: BTreeMap<String, BootPhase>,
    pub(crate) csrs: BTreeMap<String, CertificateRequest>,
    pub(crate) approved: BTreeSet<String>,
    /// Observations until the API answers again: its address was on a failed node.
    pub(crate) api_away: u32,
    /// Boots so far.
    pub(crate) boots: u32,
    /// Whether a member that joins hangs at once.
    pub(crate) hangs_learners: bool,
}

impl Platform {
    /// A platform with a healthy control plane of the servers.
    pub(crate) fn start(servers: Servers, options: PlatformOptions) -> Self {
        let cluster = servers.cluster();
        let mut state = PlatformState::new(servers, options);
        for place in state.servers.places.clone().into_values() {
            state.add_node(&place.name, place.host.parse().unwrap());
            state.nodes.get_mut(&place.name).unwrap().is_ready = true;
            let number = place.name.trim_start_matches("control-").to_owned();
            state.install_records(&number);
        }
        let state = Arc::new(Mutex::new(state));
        let controllers = tokio::spawn(operate(Arc::clone(&state), cluster));
        Self { state, controllers }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, PlatformState> {
        self.state.lock().unwrap()
    }

    /// A machine that hangs: its member is dead, its power is on.
    pub(crate) fn fail(&self, name: &str) {
        let mut state = self.state();
        state.servers.kill(name);
        state.nodes.get_mut(name).unwrap().is_ready = false;
    }

    fn api(&self) -> Result<MutexGuard<'_, PlatformState>, WorldError> {
        let mut state = self.state();
        if state.api_away > 0 {
            state.api_away -= 1;
            return Err(WorldError {
                doing: "asking the API server".to_owned(),
                reason: "connection refused".to_owned(),
                is_transient: true,
            });
        }
        Ok(state)
    }
}

impl Drop for Platform {
    fn drop(&mut self) {
        self.controllers.abort();
    }
}

impl PlatformState {
    fn new(servers: Servers, options: PlatformOptions) -> Self {
        Self {
            options,
            servers,
            nodes: BTreeMap::new(),
            machines: BTreeMap::new(),
            hooks: BTreeSet::new(),
            hosts: BTreeMap::new(),
            records: BTreeMap::new(),
            etcd_secrets: BTreeSet::new(),
            is_pool_paused: false,
            rollout_override: Value::Null,
            endpoints: BTreeSet::new(),
            latest: 1,
            revisions: BTreeMap::new(),
            power: BTreeMap::new(),
            others: BTreeSet::new(),
            booting: BTreeMap::new(),
            csrs: BTreeMap::new(),
            approved: BTreeSet::new(),
            api_away: 0,
            boots: 0,
            hangs_learners: false,
        }
    }

    fn add_node(&mut self, name: &str, address: IpAddr) {
        let node = NodeView {
            address: Some(address),
            is_ready: false,
            is_control_plane: true,
        };
        self.nodes.insert(name.to_owned(), node);
        self.revisions.insert(name.to_owned(), 1);
        self.power.insert(name.to_owned(), PowerState::On);
        for kind in ["peer", "serving", "serving-metrics"] {
            self.etcd_secrets.insert(format!("etcd-{kind}-{name}"));
        }
    }

    fn install_records(&mut self, number: &str) {
        if self.options.has_machine_api {
            for record in node_records(number, &self.servers.places[&node(number)].host) {
                self.insert_record(&record);
            }
        }
    }

    fn insert_record(&mut self, record: &Value) {
        let name = record["metadata"]["name"].as_str().unwrap().to_owned();
        match record["kind"].as_str().unwrap() {
            "BareMetalHost" => {
                let host = HostView {
                    state: "externally provisioned".to_owned(),
                    credentials: Some(format!("{name}-bmc")),
                    is_deleting: false,
                };
                self.hosts.entry(name.clone()).or_insert(host);
            }
            "Machine" => {
                let annotation = &record["metadata"]["annotations"]["metal3.io/BareMetalHost"];
                let host = annotation.as_str().unwrap().split('/').nth(1).unwrap();
                let number = host.trim_start_matches("host-");
                let address = &record["spec"]["address"];
                let machine = MachineView {
                    addresses: vec![address.as_str().unwrap().parse().unwrap()],
                    node: Some(node(number)),
                    host: Some(host.to_owned()),
                    is_deleting: false,
                    phase: "Running".to_owned(),
                };
                self.machines.entry(name.clone()).or_insert(machine);
            }
            _ => {}
        }
        let key = format!("{}/{name}", record["kind"].as_str().unwrap());
        self.records.entry(key).or_insert_with(|| record.clone());
    }

    /// The Machine of an address.
    fn machine_at(&self, address: IpAddr) -> Option<(&String, &MachineView)> {
        let mut machines = self.machines.iter();
        machines.find(|(_, it)| it.addresses.contains(&address))
    }

    /// Kubelets ask for certificates, and report Ready when they have them.
    fn run_kubelets(&mut self) {
        for (name, phase) in std::mem::take(&mut self.booting) {
            if self.power[&name] == PowerState::Off {
                continue;
            }
            let address = self.servers.places[&name].host.clone();
            let next = match phase {
                BootPhase::Installing(0) => {
                    let csr = format!("csr-client-{name}-{}", self.boots);
                    let request = client_request(&csr, &name);
                    self.csrs.insert(csr.clone(), request);
                    self.ask_hostile(&name);
                    BootPhase::ClientCertificate(csr)
                }
                BootPhase::Installing(ticks) => BootPhase::Installing(ticks - 1),
                BootPhase::ClientCertificate(csr) if self.approved.contains(&csr) => {
                    self.add_node(&name, address.parse().unwrap());
                    let csr = format!("csr-serving-{name}-{}", self.boots);
                    let request = serving_request(&csr, &name, &[&name, &address]);
                    self.csrs.insert(csr.clone(), request);
                    BootPhase::ServingCertificate(csr)
                }
                BootPhase::ServingCertificate(csr) if self.approved.contains(&csr) => {
                    self.nodes.get_mut(&name).unwrap().is_ready = true;
                    continue;
                }
                phase => phase,
            };
            self.booting.insert(name, next);
        }
    }

    /// Requests that must not be approved: of another node, and with an address of the cluster.
    fn ask_hostile(&mut self, name: &str) {
        let other = client_request("hostile-client", "control-1.other");
        let account = CertificateRequest {
            requestor: "system:serviceaccount:default:default".to_owned(),
            ..client_request("hostile-account", name)
        };
        let names = serving_request("hostile-names", name, &[name, "192.0.2.1"]);
        for request in [other, account, names] {
            self.csrs.insert(request.name.clone(), request);
        }
    }

    /// Rolls a revision out to one node, where etcd survives its restart.
    fn roll_out(&mut self, view: &EtcdView) {
        let living = self
            .nodes
            .iter()
            .filter(|(_, it)| it.is_ready)
            .map(|(name, _)| name);
        let next = living
            .into_iter()
            .find(|name| self.revisions[*name] != self.latest);
        let is_safe = view.voter_count().spare() > 0 || self.rollout_override == true;
        match next.cloned() {
            Some(next) if is_safe => {
                self.revisions.insert(next, self.latest);
            }
            Some(_) => {}
            None => {
                let voters: BTreeSet<IpAddr> = voters(view);
                if voters != self.endpoints {
                    self.endpoints = voters;
                    self.latest += 1;
                }
            }
        }
    }

    /// Machines get their hook, and those that are deleted stay while their member is there.
    fn keep_hooks(&mut self) {
        let kept = self.machines.iter().filter(|(_, it)| !it.is_deleting);
        self.hooks.extend(kept.map(|(name, _)| name.clone()));
    }

    /// A node whose member the operator adds.
    fn joining(&self, view: &EtcdView) -> Option<String> {
        let nodes = self.nodes.iter().filter(|(_, it)| it.is_ready);
        let mut joining = nodes.filter(|(_, node)| {
            let address = node.address.unwrap();
            let is_member = view.member_at(&address.to_string()).is_some();
            let is_taken = !self.options.has_machine_api
                || self.machine_at(address).is_some_and(|(name, machine)| {
                    !machine.is_deleting && self.hooks.contains(name)
                });
            !is_member && is_taken
        });
        joining.next().map(|(name, _)| name.clone())
    }
}

/// The loop of all controllers.
async fn operate(state: Arc<Mutex<PlatformState>>, cluster: EtcdCluster) {
    let mut ticks = tokio::time::interval(TICK);
    loop {
        ticks.tick().await;
        state.lock().unwrap().run_kubelets();
        let Ok(view) = cluster.observe().await else {
            continue;
        };
        let (joining, is_managed) = {
            let mut state = state.lock().unwrap();
            if state.api_away > 0 {
                continue;
            }
            state.keep_hooks();
            let is_managed = state.options.is_operator_managed;
            if is_managed {
                state.roll_out(&view);
            }
            (state.joining(&view), is_managed)
        };
        start_members(&state, &view);
        if is_managed {
            // Errors are repeated in the next tick, as the operator does.
            drop(manage(&state, &cluster, &view, joining).await);
        }
    }
}

/// Nodes start the member that was added for them.
fn start_members(state: &Mutex<PlatformState>, view: &EtcdView) {
    let mut state = state.lock().unwrap();
    for added in &view.members {
        if added.health != MemberHealth::NotStarted {
            continue;
        }
        let urls = &added.member.peer_urls;
        let places = state.servers.places.values();
        let place = places
            .clone()
            .find(|place| urls.contains(&place.peer_url()));
        let name = place.unwrap().name.clone();
        if state.nodes.get(&name).is_some_and(|it| it.is_ready) && !state.servers.runs(&name) {
            state.servers.join(&name, view);
            if state.hangs_learners {
                state.servers.signal(&name, "-STOP");
            }
        }
    }
}

/// etcd's operator, as its `clustermembercontroller` and `clustermemberremovalcontroller`.
async fn manage(
    state: &Mutex<PlatformState>,
    cluster: &EtcdCluster,
    view: &EtcdView,
    joining: Option<String>,
) -> Result<(), etcd::EtcdError> {
    let is_unhealthy = |health: &MemberHealth| matches!(health, MemberHealth::Unhealthy { .. });
    if view.members.iter().any(|it| is_unhealthy(&it.health)) {
        return Ok(());
    }
    let leader = cluster.leader(view)?;
    let learner = view
        .members
        .iter()
        .find(|it| it.member.role == MemberRole::Learner);
    if let Some(learner) = learner {
        return leader.promote(learner.member.id).await;
    }
    if let Some(joining) = joining {
        let url = state.lock().unwrap().servers.places[&joining].peer_url();
        leader.add_learner(&[url]).await?;
        return Ok(());
    }
    let (retired, desired) = {
        let state = state.lock().unwrap();
        let mut members = view.members.iter();
        let retired = members.find(|it| {
            let host = it.member.peer_host().unwrap();
            let machine = state.machine_at(host.parse().unwrap());
            machine.is_some_and(|(_, machine)| machine.is_deleting)
        });
        let retired = retired.map(|it| it.member.id);
        (retired, usize::from(state.options.control_nodes))
    };
    match retired {
        Some(id) if view.voter_count().voters > desired => leader.remove(id).await,
        _ => Ok(()),
    }
}

fn voters(view: &EtcdView) -> BTreeSet<IpAddr> {
    let members = view.members.iter().map(|it| &it.member);
    let voters = members.filter(|it| it.role == MemberRole::Voter);
    voters
        .map(|it| it.peer_host().unwrap().parse().unwrap())
        .collect()
}

#[async_trait]
impl KubernetesSide for Platform {
    async fn observe(&self) -> Result<KubernetesView, WorldError> {
        let state = self.api()?;
        let pending = state
            .csrs
            .values()
            .filter(|it| !state.approved.contains(&it.name));
        let revisions = state.revisions.iter();
        Ok(KubernetesView {
            topology: "HighlyAvailable".to_owned(),
            desired_replicas: state.options.control_nodes.into(),
            upgrade: None,
            has_machine_api: state.options.has_machine_api,
            is_operator_managed: state.options.is_operator_managed,
            etcd_endpoints: state.endpoints.clone(),
            rollouts: vec![RolloutView {
                operator: "etcd".to_owned(),
                revisions: revisions
                    .filter(|(name, _)| state.nodes.contains_key(*name))
                    .map(|(name, revision)| (name.clone(), *revision))
                    .collect(),
                latest: state.latest,
            }],
            rollout_override: state.rollout_override.clone(),
            is_pool_paused: state.is_pool_paused,
            nodes: state.nodes.clone(),
            machines: state.machines.clone(),
            hosts: state.hosts.clone(),
            etcd_secrets: state.etcd_secrets.clone(),
            pending_csrs: pending.cloned().collect(),
        })
    }

    async fn node_records(&self, case: &ReplacementCase) -> Result<Vec<Value>, WorldError> {
        let state = self.api()?;
        let (Some(host), Some(machine)) = (&case.host, &case.machine) else {
            return Ok(Vec::new());
        };
        let keys = [
            format!("Secret/{host}-bmc"),
            format!("BareMetalHost/{host}"),
            format!("Machine/{machine}"),
        ];
        Ok(keys
            .iter()
            .filter_map(|key| state.records.get(key).cloned())
            .collect())
    }

    async fn create(&self, record: &Value) -> Result<(), WorldError> {
        let mut state = self.api()?;
        let metadata = &record["metadata"];
        assert!(
            metadata["uid"].is_null() && record["status"].is_null(),
            "{record}"
        );
        state.insert_record(record);
        Ok(())
    }

    async fn delete(&self, kind: RecordKind, name: &str) -> Result<(), WorldError> {
        let mut state = self.api()?;
        match kind {
            RecordKind::EtcdSecret => {
                state.etcd_secrets.remove(name);
            }
            RecordKind::Node => {
                state.nodes.remove(name);
                state.revisions.remove(name);
            }
            // Their finalizers hold them.
            RecordKind::BareMetalHost => {
                if let Some(host) = state.hosts.get_mut(name) {
                    host.is_deleting = true;
                }
            }
            RecordKind::Machine => {
                if let Some(machine) = state.machines.get_mut(name) {
                    machine.is_deleting = true;
                }
            }
        }
        Ok(())
    }

    async fn drop_finalizers(&self, kind: RecordKind, name: &str) -> Result<(), WorldError> {
        let mut state = self.api()?;
        match kind {
            RecordKind::BareMetalHost => {
                assert!(
                    state.hosts.get(name).is_none_or(|it| it.is_deleting),
                    "{name}"
                );
                state.hosts.remove(name);
                state.records.remove(&format!("BareMetalHost/{name}"));
            }
            RecordKind::Machine => {
                assert!(
                    state.machines.get(name).is_none_or(|it| it.is_deleting),
                    "{name}"
                );
                state.machines.remove(name);
                state.hooks.remove(name);
                state.records.remove(&format!("Machine/{name}"));
            }
            RecordKind::EtcdSecret | RecordKind::Node => {}
        }
        Ok(())
    }

    async fn pause_pool(&self, paused: bool) -> Result<(), WorldError> {
        self.api()?.is_pool_paused = paused;
        Ok(())
    }

    async fn set_rollout_override(&self, value: &Value) -> Result<(), WorldError> {
        self.api()?.rollout_override = value.clone();
        Ok(())
    }

    async fn approve_csr(
        &self,
        request: &CertificateRequest,
        reason: &str,
    ) -> Result<(), WorldError> {
        assert!(!reason.is_empty());
        self.api()?.approved.insert(request.name.clone());
        Ok(())
    }
}

#[async_trait]
impl NodeHardware for Platform {
    async fn power(
        &self,
        _: MachineSide,
        node: &NodePlace,
    ) -> Result<Option<PowerState>, WorldError> {
        Ok(self.state().power.get(&node.name).copied())
    }

    async fn power_off(&self, node: &NodePlace) -> Result<(), WorldError> {
        let mut state = self.state();
        state.servers.kill(&node.name);
        state.power.insert(node.name.clone(), PowerState::Off);
        if let Some(node) = state.nodes.get_mut(&node.name) {
            node.is_ready = false;
        }
        Ok(())
    }

    async fn boot(&self, node: &NodePlace) -> Result<(), WorldError> {
        let mut state = self.state();
        // The old machine is off: two with one name and address would both be there.
        let is_other = state.others.remove(&node.name);
        let is_on = state.power.get(&node.name) == Some(&PowerState::On);
        assert!(is_other || !is_on, "{node:?}");
        state.boots += 1;
        state.power.insert(node.name.clone(), PowerState::On);
        let phase = BootPhase::Installing(INSTALLATION);
        state.booting.insert(node.name.clone(), phase);
        Ok(())
    }

    async fn eject(&self, _: &NodePlace) -> Result<(), WorldError> {
        Ok(())
    }
}

fn node(number: &str) -> String {
    format!("control-{number}")
}

/// Secret, host and Machine of a node, as a cluster has them.
pub(crate) fn node_records(number: &str, address: &str) -> Vec<Value> {
    let metadata = |name: String| {
        json!({
            "name": name, "namespace": "openshift-machine-api", "uid": "1", "resourceVersion": "2",
            "managedFields": [{}],
        })
    };
    let mut machine = metadata(format!("machine-{number}"));
    machine["annotations"] =
        json!({"metal3.io/BareMetalHost": format!("openshift-machine-api/host-{number}")});
    vec![
        json!({"kind": "Secret", "metadata": metadata(format!("host-{number}-bmc")), "data": {}}),
        json!({
            "kind": "BareMetalHost",
            "metadata": metadata(format!("host-{number}")),
            "spec": {"online": true},
            "status": {"poweredOn": true},
        }),
        json!({
            "kind": "Machine",
            "metadata": machine,
            "spec": {"address": address},
            "status": {"phase": "Running"},
        }),
    ]
}

/// The first request of a kubelet.
pub(crate) fn client_request(csr: &str, node: &str) -> CertificateRequest {
    CertificateRequest {
        name: csr.to_owned(),
        signer: "kubernetes.io/kube-apiserver-client-kubelet".to_owned(),
        requestor: "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
            .to_owned(),
        groups: vec!["system:authenticated".to_owned()],
        usages: vec!["digital signature".to_owned(), "client auth".to_owned()],
        pem: request(node, &[]),
    }
}

fn serving_request(csr: &str, node: &str, names: &[&str]) -> CertificateRequest {
    CertificateRequest {
        name: csr.to_owned(),
        signer: "kubernetes.io/kubelet-serving".to_owned(),
        requestor: format!("system:node:{node}"),
        groups: vec!["system:nodes".to_owned()],
        usages: vec!["digital signature".to_owned(), "server auth".to_owned()],
        pem: request(node, names),
    }
}

fn request(node: &str, names: &[&str]) -> Vec<u8> {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name = DistinguishedName::new();
    let subject = &mut params.distinguished_name;
    subject.push(DnType::OrganizationName, "system:nodes");
    subject.push(DnType::CommonName, format!("system:node:{node}"));
    let key = KeyPair::generate().unwrap();
    let request = params.serialize_request(&key).unwrap();
    request.pem().unwrap().into_bytes()
}
