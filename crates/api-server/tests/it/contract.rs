//! The contract with clients: every operation, with a valid request and with every kind of refused one.
//!
//! A refused request is sent in the state in which the valid one succeeds, so the flaw is the only reason.

mod cases;
mod description;

use std::collections::{BTreeMap, BTreeSet};

use reqwest::Method;
use serde_json::{Value, json};
use testkit::certificates;

use crate::binding::{pool_host, register_again};
use crate::day2::make_known;
use crate::harness::{Answer, PULL_SECRET, Server, cluster_params, host_id};
use crate::installation::{finalize_single_node, finish, ready, reply_until, wait_status};
use cases::{ContractRequest, RefusedCase, RequestFlaw};
use description::ApiShapes;

const PART: &str = "--b\r\nContent-Disposition: form-data; name=\"upfile\"; filename=\"l\"\r\n\r\nBYTES\r\n--b--\r\n";
/// Operations of this server that the description has not.
const OWN_PATHS: &[&str] = &[
    "/v2/archives",
    "/v2/jobs",
    "/v2/jobs/{job_id}",
    "/v2/jobs/{job_id}/actions/cancel",
    "/v2/jobs/{job_id}/downloads/files",
    "/v2/rehearsal-options",
    "/v2/operator-catalogs",
    "/v2/os-images",
    "/v2/release-images",
    "/v2/audit",
    "/v2/clusters/{cluster_id}/explain",
    "/v2/clusters/{cluster_id}/node-replacement",
    "/v2/clusters/{cluster_id}/node-replacement/plan",
    "/v2/clusters/{cluster_id}/nodes",
    "/v2/doctor",
    "/v2/events/stream",
    "/v2/explain",
    "/v2/infra-envs/apply",
    "/v2/infra-envs/{infra_env_id}/apply",
    "/v2/infra-envs/{infra_env_id}/bmc-boot",
    "/v2/infra-envs/{infra_env_id}/expected-hosts",
    "/v2/infra-envs/{infra_env_id}/export",
    "/v2/offline-openshift-versions",
    "/v2/platform-versions",
];
/// Query parameters that this server alone has.
const OWN_PARAMETERS: &[&str] = &["changes", "dry_run"];

/// The objects that requests are about.
#[derive(Debug, Default)]
struct ContractSubjects {
    cluster: String,
    /// The path of a host, or of an infra-env.
    host: String,
    operator: String,
    bundle: String,
}

impl ContractSubjects {
    fn parameters(&self) -> Vec<(&'static str, String)> {
        let mut parts = self.host.split('/').skip(3);
        let infra_env = parts.next().unwrap_or_default();
        let host = parts.nth(1).unwrap_or_default();
        let parameters = [
            ("cluster_id", self.cluster.as_str()),
            ("infra_env_id", infra_env),
            ("host_id", host),
            ("operator_name", self.operator.as_str()),
            ("id", self.bundle.as_str()),
            ("validation_id", "container-images-available"),
        ];
        parameters
            .map(|(name, value)| (name, value.to_owned()))
            .into()
    }
}

/// The walk over the operations.
struct Contract {
    server: Server,
    description: ApiShapes,
    seen: BTreeSet<String>,
    cases: BTreeMap<RequestFlaw, usize>,
    problems: Vec<String>,
}

impl Contract {
    async fn start() -> Self {
        Self {
            server: Server::start().await,
            description: ApiShapes::read(),
            seen: BTreeSet::new(),
            cases: BTreeMap::new(),
            problems: Vec::new(),
        }
    }

    /// Keeps the contract of each line of a table: an operation, a query after `?`, a body.
    async fn keep_all(&mut self, subjects: &ContractSubjects, table: &str) {
        for line in table.lines().filter(|line| !line.is_empty()) {
            let mut line = line.to_owned();
            for (name, value) in subjects.parameters() {
                line = line.replace(&format!("{{{name}}}"), &value);
            }
            let (id, rest) = line.split_once(' ').unwrap_or((&line, ""));
            let (query, body) = match rest.strip_prefix('?') {
                Some(query) => (query, Value::Null),
                None if rest.is_empty() => ("", Value::Null),
                None => ("", serde_json::from_str(rest).unwrap()),
            };
            self.keep(subjects, id, query, body).await;
        }
    }

    /// Sends the refused variants of a request, and then the request.
    async fn keep(&mut self, subjects: &ContractSubjects, id: &str, query: &str, body: Value) {
        let request = self.request(id, subjects, query, body);
        for case in cases::refused(&self.description, id, &request) {
            *self.cases.entry(case.flaw).or_default() += 1;
            let answer = self.send(id, &case.request).await;
            if let Err(problem) = check_refusal(&case, &answer) {
                let RefusedCase { flaw, request, .. } = case;
                let (method, url, body) = (&request.method, request.url(), &request.body);
                let sent = format!("{method} {url} {}", json!(body));
                self.problems
                    .push(format!("{id}: {flaw:?}: {problem}: {sent}"));
            }
        }
        let answer = self.send(id, &request).await;
        if let Err(problem) = self.check_success(id, &answer) {
            self.problems.push(format!("{id}: valid: {problem}"));
        }
        self.seen.insert(id.to_owned());
    }

    fn request(
        &self,
        id: &str,
        subjects: &ContractSubjects,
        query: &str,
        body: Value,
    ) -> ContractRequest {
        let operation = &self.description.operations[id];
        let mut query: Vec<_> = url::form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        // Unknown parameters are ignored.
        query.push(("parameter_of_nothing".to_owned(), "1".to_owned()));
        ContractRequest {
            method: operation.method().parse().unwrap(),
            path: operation.path().to_owned(),
            parameters: subjects.parameters(),
            query,
            body: Some(body).filter(|body| !body.is_null()),
        }
    }

    async fn send(&self, id: &str, request: &ContractRequest) -> Answer {
        let mut builder = self.server.request(request.method.clone(), &request.url());
        if id == "V2UploadLogs" && request.method == Method::POST {
            builder = builder
                .header("content-type", "multipart/form-data; boundary=b")
                .body(PART);
        } else if let Some(body) = &request.body {
            builder = builder.json(body);
        }
        Server::send(builder).await
    }

    fn check_success(&self, id: &str, answer: &Answer) -> Result<(), String> {
        let status = answer.status.as_u16();
        let operation = &self.description.operations[id];
        let Some(shape) = operation.answers.get(&status) else {
            return Err(format!("{status} is not described: {}", answer.text));
        };
        let kind = answer.header("content-type");
        match shape.as_str() {
            "none" if answer.text.is_empty() => return Ok(()),
            "none" => return Err(format!("the body is not empty: {}", answer.text)),
            "file" if kind == "application/octet-stream" => return Ok(()),
            // Observed: the description has a host here, the service that clients know sends nothing.
            _ if id == "v2ResetHostValidation" && answer.text.is_empty() => return Ok(()),
            _ => {}
        }
        if kind != "application/json" {
            return Err(format!("content type {kind:?}"));
        }
        let deviations = self.description.deviations(shape, &answer.body);
        if deviations.is_empty() {
            Ok(())
        } else {
            Err(deviations.join("; "))
        }
    }
}

/// Compares a refusal with its case, and its body with the two shapes of errors.
fn check_refusal(case: &RefusedCase, answer: &Answer) -> Result<(), String> {
    let status = answer.status.as_u16();
    if status != case.status || !answer.text.contains(&json_text(&case.mentions)) {
        let (expected, mentions) = (case.status, &case.mentions);
        let text = &answer.text;
        return Err(format!(
            "expected {expected} with {mentions:?}, got {status} {text}"
        ));
    }
    if answer.status.is_success() {
        return Ok(());
    }
    let body = &answer.body;
    let expected = match case.flaw {
        RequestFlaw::UnknownId => json!({
            "code": status.to_string(), "href": "", "id": status, "kind": "Error", "reason": body["reason"],
        }),
        _ => json!({ "code": status, "message": body["message"] }),
    };
    if *body != expected {
        return Err(format!("the body is not {expected}: {body}"));
    }
    if answer.header("content-type") != "application/json" {
        return Err("the error is not JSON".to_owned());
    }
    let allow = answer.header("allow");
    if case.flaw == RequestFlaw::WrongMethod && !case.mentions.contains(&format!("[{allow}]")) {
        return Err(format!("Allow is {allow:?}"));
    }
    Ok(())
}

/// The text as a part of a JSON string.
fn json_text(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Operations without a subject, which need no state.
const CATALOGUE: &str = r#"
v2ListClusters ?with_hosts=true
ListInfraEnvs
V2GetClusterDefaultConfig
V2ListManagedDomains
V2ListSupportedOperators
V2ListOperatorProperties
V2ListBundles ?openshift_version=4.18
V2GetBundle
v2ListComponentVersions
v2ListSupportedOpenshiftVersions
v2ListReleaseSources
GetSupportedFeatures ?openshift_version=4.18&cpu_architecture=x86_64
GetDetailedSupportedFeatures ?openshift_version=4.18&cpu_architecture=x86_64
GetSupportedArchitectures ?openshift_version=4.18
v2ImportCluster {"name":"old","api_vip_dnsname":"api.old.example.com","openshift_cluster_id":"6b1f3a52-6f5a-4c5e-9c0e-3f4d5a6b7c8d"}
v2RegisterDisconnectedCluster {"name":"edge","openshift_version":"4.19"}
"#;

/// A new cluster with a host, until all are deleted. The manifest is `kind: ConfigMap` in base64.
const NEW_CLUSTER: &str = r#"
v2RegisterHost {"host_id":"{host_id}","discovery_agent_version":"registry.example.com:5000/edge/agent:v1"}
v2GetNextSteps ?timestamp=1
v2PostStepReply {"step_type":"ntp-synchronizer","step_id":"ntp-1","exit_code":0,"output":"{\"ntp_sources\":[]}"}
v2GetCluster
V2UpdateCluster {"tags":"blue"}
ListClusterHosts ?with-inventory=true&with-connectivity=true
GetClusterSupportedPlatforms
v2GetPreflightRequirements
V2ListOfClusterOperators
v2ReportMonitoredOperatorStatus {"name":"lso","status":"progressing"}
v2GetClusterInstallConfig
v2UpdateClusterInstallConfig "{\"fips\":true}"
V2UpdateClusterUISettings "text"
V2GetClusterUISettings
v2SetIgnoredValidations {"cluster-validation-ids":"[\"network-type-valid\"]","host-validation-ids":"[]"}
v2GetIgnoredValidations
V2CreateClusterManifest {"folder":"openshift","file_name":"a.yaml","content":"a2luZDogQ29uZmlnTWFwCg=="}
V2UpdateClusterManifest {"folder":"openshift","file_name":"a.yaml","updated_file_name":"b.yaml"}
V2ListClusterManifests
v2DownloadClusterManifest ?folder=openshift&file_name=b.yaml
V2DeleteClusterManifest ?folder=openshift&file_name=b.yaml
v2UpdateClusterLogsProgress {"logs_state":"requested"}
V2UploadLogs ?logs_type=controller
V2DownloadClusterLogs ?logs_type=controller
v2TriggerEvent {"name":"note","cluster_id":"{cluster_id}","severity":"info","category":"user","message":"noted","event_time":"2026-01-02T03:04:05.000Z"}
v2ListEvents ?limit=10
GetInfraEnv
UpdateInfraEnv {"additional_ntp_sources":"192.0.2.1"}
GetInfraEnvDownloadURL
GetInfraEnvPresignedFileURL ?file_name=ipxe-script
v2DownloadInfraEnvFiles ?file_name=discovery.ign
DownloadMinimalInitrd
RegenerateInfraEnvSigningKey
v2ListHosts
v2GetHost
v2UpdateHost {"host_name":"alpha"}
v2UpdateHostInstallerArgs {"args":["--append-karg","a=b"]}
v2UpdateHostIgnition {"config":"{\"ignition\":{\"version\":\"3.2.0\"}}"}
v2ResetHostValidation
v2UpdateHostLogsProgress {"logs_state":"requested"}
v2DeregisterHost
DeregisterInfraEnv
v2DeregisterCluster
"#;

const INSTALLING: &str = r#"
v2GetNextSteps
v2UpdateHostInstallProgress {"current_stage":"Starting installation"}
v2GetHostIgnition
v2DownloadHostIgnition
V2DownloadClusterFiles ?file_name=bootstrap.ign
V2GetPresignedForClusterFiles ?file_name=bootstrap.ign
V2CancelInstallation
v2ResetCluster
"#;

const FINALIZING: &str = r#"
v2UpdateClusterFinalizingProgress {"finalizing_stage":"Waiting for cluster operators"}
v2UploadClusterIngressCert "{certificate}"
v2CompleteInstallation {"is_success":true}
"#;

const INSTALLED: &str = "
v2GetCluster
v2GetHost
V2GetCredentials
V2DownloadClusterCredentials ?file_name=kubeconfig
V2GetPresignedForClusterCredentials ?file_name=kubeconfig
TransformClusterToDay2
";

async fn catalogue(contract: &mut Contract) {
    let subjects = ContractSubjects {
        operator: "lso".to_owned(),
        bundle: "virtualization".to_owned(),
        ..ContractSubjects::default()
    };
    let infra_env =
        json!({ "name": "rack-2", "pull_secret": PULL_SECRET, "openshift_version": "4.18" });
    contract
        .keep(&subjects, "v2RegisterCluster", "", cluster_params())
        .await;
    contract
        .keep(&subjects, "RegisterInfraEnv", "", infra_env)
        .await;
    contract.keep_all(&subjects, CATALOGUE).await;
}

async fn new_cluster(contract: &mut Contract) {
    let server = &contract.server;
    let operators = json!({ "olm_operators": [{ "name": "lso" }] });
    let cluster = server.cluster(operators).await;
    let infra_env = server.infra_env(Some(&cluster)).await;
    let subjects = ContractSubjects {
        host: format!("/v2/infra-envs/{infra_env}/hosts/{}", host_id(1)),
        cluster,
        ..ContractSubjects::default()
    };
    contract.keep_all(&subjects, NEW_CLUSTER).await;
}

/// A host of a pool, which joins a cluster and leaves it.
async fn late_binding(contract: &mut Contract) {
    let server = &contract.server;
    let pool = server.infra_env(None).await;
    let subjects = ContractSubjects {
        cluster: server.cluster(json!({})).await,
        host: pool_host(server, &pool, 2).await,
        ..ContractSubjects::default()
    };
    let bind = json!({ "cluster_id": subjects.cluster });
    contract.keep(&subjects, "BindHost", "", bind).await;
    register_again(&contract.server, &subjects.host).await;
    contract.keep_all(&subjects, "UnbindHost").await;
}

/// An installation that is cancelled.
async fn cancelled(contract: &mut Contract) {
    let (cluster, host) = ready(&contract.server).await;
    let path = format!("/v2/clusters/{cluster}");
    let subjects = ContractSubjects {
        cluster,
        host,
        ..ContractSubjects::default()
    };
    contract.keep_all(&subjects, "v2InstallCluster").await;
    reply_until(&contract.server, &subjects.host, "installing").await;
    wait_status(&contract.server, &path, "installing").await;
    contract.keep_all(&subjects, INSTALLING).await;
}

/// An installation, and a host that joins the cluster later.
async fn installed(contract: &mut Contract) {
    let (cluster, host) = finalize_single_node(&contract.server).await;
    let path = format!("/v2/clusters/{cluster}");
    let mut subjects = ContractSubjects {
        cluster,
        host,
        ..ContractSubjects::default()
    };
    let certificate = certificates::self_signed("ingress.example.com").unwrap();
    let quoted = json_text(&certificate.cert);
    let finalizing = FINALIZING.replace("{certificate}", &quoted);
    contract.keep_all(&subjects, &finalizing).await;
    finish(&contract.server, &path).await;
    contract.keep_all(&subjects, INSTALLED).await;
    let (infra_env, _) = subjects.host.split_once("/hosts/").unwrap();
    let infra_env = infra_env.rsplit('/').next().unwrap().to_owned();
    subjects.host = contract.server.host(&infra_env, 3).await;
    make_known(&contract.server, &subjects.host, 3).await;
    contract
        .keep_all(&subjects, "v2InstallHost\nv2ResetHost")
        .await;
}

/// The other name of the transformation.
async fn transformed(contract: &mut Contract) {
    let (cluster, host) = finalize_single_node(&contract.server).await;
    finish(&contract.server, &format!("/v2/clusters/{cluster}")).await;
    let subjects = ContractSubjects {
        cluster,
        host,
        ..ContractSubjects::default()
    };
    contract
        .keep_all(&subjects, "TransformClusterToAddingHosts")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_keeps_its_contract() {
    let mut contract = Contract::start().await;
    catalogue(&mut contract).await;
    new_cluster(&mut contract).await;
    late_binding(&mut contract).await;
    // Each installs host 1, which belongs to one cluster of a server.
    cancelled(&mut contract).await;
    contract.server = Server::start().await;
    installed(&mut contract).await;
    contract.server = Server::start().await;
    transformed(&mut contract).await;

    let operations: BTreeSet<String> = contract.description.operations.keys().cloned().collect();
    assert_eq!(operations.len(), 81);
    assert_eq!(contract.seen, operations);
    let problems = &contract.problems;
    assert!(
        problems.is_empty(),
        "{}:\n{}",
        problems.len(),
        problems.join("\n")
    );
    // Fewer would mean that the cases are not derived any more.
    for (flaw, count) in [
        (RequestFlaw::MissingField, 60),
        (RequestFlaw::WrongType, 250),
        (RequestFlaw::UnknownField, 40),
        (RequestFlaw::UnknownId, 80),
        (RequestFlaw::WrongMethod, 200),
    ] {
        let found = contract.cases[&flaw];
        assert!(found >= count, "{flaw:?}: {found}");
    }
}

/// Route and query parameters of an operation, in order; the required ones with `!`.
type Outline = (String, Vec<String>);

/// The operations of the served document, except those of this server alone.
fn served(document: &Value) -> BTreeMap<String, Outline> {
    let mut found = BTreeMap::new();
    let paths = document["paths"].as_object().unwrap().iter();
    for (path, methods) in paths.filter(|(path, _)| !OWN_PATHS.contains(&path.as_str())) {
        for (method, operation) in methods.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let mut query: Vec<String> = parameters
                .filter(|parameter| parameter["in"] == "query")
                .filter(|parameter| !OWN_PARAMETERS.contains(&parameter["name"].as_str().unwrap()))
                .map(|parameter| {
                    let mark = if parameter["required"] == true {
                        "!"
                    } else {
                        ""
                    };
                    format!("{}{mark}", parameter["name"].as_str().unwrap())
                })
                .collect();
            query.sort_unstable();
            let id = operation["operationId"].as_str().unwrap().to_owned();
            let route = format!("{} {path}", method.to_ascii_uppercase());
            found.insert(id, (route, query));
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn the_served_description_has_the_same_operations() {
    let server = Server::start().await;
    let document: Value = serde_json::from_str(&server.get("/openapi").await.text).unwrap();
    let outline = |operation: description::DescribedOperation| {
        let query = operation.query.into_keys().collect();
        (operation.route, query)
    };
    let expected = ApiShapes::read().operations.into_iter();
    let expected: BTreeMap<String, Outline> = expected
        .map(|(id, operation)| (id, outline(operation)))
        .collect();
    let found = served(&document);
    for (id, outline) in &expected {
        assert_eq!(found.get(id), Some(outline), "{id}");
    }
    assert_eq!(found.len(), expected.len());
}
