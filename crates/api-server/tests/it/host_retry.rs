//! Retries of single hosts while their cluster is being installed.

use std::time::Duration;

use api_server::settings::Settings;
use serde_json::{Value, json};
use service::settings::CommaList;

use crate::binding::event_names;
use crate::harness::{Answer, Server, host_id, inventory};
use crate::installation::{finish, output, progress, wait_status};

const WRITING: [&str; 3] = [
    "Starting installation",
    "Installing",
    "Writing image to disk",
];

fn patient(settings: &mut Settings) {
    settings.host_retry_timeout = Duration::from_mins(30);
    with_hosts(settings);
}

/// Hosts of these tests have no network between them that they could check.
fn with_hosts(settings: &mut Settings) {
    let list = |ids: &[&str]| CommaList(ids.iter().map(ToString::to_string).collect());
    settings.disabled_host_validations = list(&["belongs-to-majority-group"]);
    settings.disabled_cluster_validations = list(&["api-vips-valid", "ingress-vips-valid"]);
}

/// A cluster whose hosts have started their installation, and their paths.
struct Installing {
    path: String,
    infra_env: String,
    hosts: Vec<String>,
}

impl Installing {
    async fn start(server: &Server, masters: u32, workers: u32) -> Self {
        let vips =
            json!({ "api_vips": [{ "ip": "192.0.2.5" }], "ingress_vips": [{ "ip": "192.0.2.6" }] });
        let id = server.cluster(vips).await;
        let infra_env = server.infra_env(Some(&id)).await;
        let path = format!("/v2/clusters/{id}");
        let mut hosts = Vec::new();
        for number in 1..=masters + workers {
            let host = server.host(&infra_env, number).await;
            let role = if number <= masters {
                "master"
            } else {
                "worker"
            };
            let role = json!({ "host_role": role });
            server.patch(&host, &role).await.expect(201);
            hosts.push(host);
        }
        let installing = Self {
            path,
            infra_env,
            hosts,
        };
        installing.reply_until(server, "known").await;
        wait_status(server, &installing.path, "ready").await;
        let install = format!("{}/actions/install", installing.path);
        server.post(&install, &json!({})).await.expect(202);
        installing.reply_until(server, "installing").await;
        installing
    }

    async fn reply_until(&self, server: &Server, status: &str) {
        for at in 0..self.hosts.len() {
            self.reply(server, at, status).await;
        }
    }

    /// Replies to the steps of all hosts until that one has the status.
    async fn reply(&self, server: &Server, at: usize, status: &str) {
        let one = &self.hosts[at];
        server
            .until(&format!("{one} is {status}"), async || {
                for (at, host) in self.hosts.iter().enumerate() {
                    answer_steps(server, host, u32::try_from(at).unwrap() + 1).await;
                }
                let record = server.get(one).await.expect(200);
                if record["status"] == status {
                    return Ok(());
                }
                Err(format!(
                    "{} {} {}",
                    record["status"], record["status_info"], record["validations_info"]
                ))
            })
            .await;
    }

    fn bootstrap(cluster: &Value) -> String {
        let hosts = cluster["hosts"].as_array().unwrap();
        let host = hosts.iter().find(|host| host["bootstrap"] == true);
        host.unwrap()["id"].as_str().unwrap().to_owned()
    }

    /// Reports every stage of a host, in the order of its role.
    async fn install(&self, server: &Server, at: usize) {
        let record = server.get(&self.hosts[at]).await.expect(200);
        let stages = record["progress_stages"].as_array().unwrap();
        let stages: Vec<&str> = stages.iter().map(|one| one.as_str().unwrap()).collect();
        progress(server, &self.hosts[at], &stages).await;
    }

    async fn fail(&self, server: &Server, at: usize) {
        progress(server, &self.hosts[at], &WRITING).await;
        progress(server, &self.hosts[at], &["Failed"]).await;
        wait_status(server, &self.hosts[at], "error").await;
    }
}

async fn answer_steps(server: &Server, host: &str, number: u32) {
    let now = service::clock::now().timestamp();
    let path = format!("{host}/instructions?timestamp={now}");
    let steps = server.get(&path).await.expect(200);
    for step in steps["instructions"].as_array().into_iter().flatten() {
        let kind = step["step_type"].as_str().unwrap();
        let reply = match kind {
            "inventory" => Some(inventory(number)),
            _ => output(step),
        };
        if let Some(reply) = reply {
            server.reply(host, kind, &reply).await.expect(204);
        }
    }
}

async fn reset(server: &Server, host: &str) -> Answer {
    server
        .post(&format!("{host}/actions/reset"), &json!({}))
        .await
}

fn assert_refused(answer: Answer, part: &str) {
    let error = answer.expect(409);
    assert!(error["reason"].as_str().unwrap().contains(part), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_worker_is_retried_and_its_cluster_installed() {
    let server = Server::with(patient).await;
    let cluster = Installing::start(&server, 3, 2).await;
    assert_refused(
        reset(&server, &cluster.hosts[4]).await,
        "only a host that failed",
    );
    cluster.fail(&server, 4).await;
    let waiting = wait_status(&server, &cluster.path, "installing-pending-user-action").await;
    let info = waiting["status_info"].as_str().unwrap();
    assert!(info.contains("host-5"), "{info}");
    let failed = server.get(&cluster.hosts[4]).await.expect(200);
    assert_eq!(failed["can_retry"], true);
    let dry = format!("{}/actions/reset?dry_run=true", cluster.hosts[4]);
    server.post(&dry, &json!({})).await.expect(200);
    assert_eq!(
        server.get(&cluster.hosts[4]).await.expect(200)["status"],
        "error"
    );
    let retried = reset(&server, &cluster.hosts[4]).await.expect(200);
    assert_eq!(retried["status"], "resetting-pending-user-action");
    assert!(retried.get("can_retry").is_none(), "{retried}");
    assert!(retried["progress"].get("current_stage").is_none());
    assert!(retried.get("logs_info").is_none());

    // The server restarts before the host boots, and again before it is ready.
    let server = server.restart_with(patient).await;
    server.host(&cluster.infra_env, 5).await;
    let server = server.restart_with(patient).await;
    assert_eq!(
        server.get(&cluster.hosts[4]).await.expect(200)["status"],
        "discovering"
    );
    cluster.reply(&server, 4, "installing").await;
    wait_status(&server, &cluster.path, "installing").await;
    let path = format!("{}/instructions", cluster.hosts[4]);
    let steps = server.get(&path).await.expect(200);
    assert!(steps.to_string().contains("\"install\""), "{steps}");
    for at in 0..5 {
        cluster.install(&server, at).await;
    }
    wait_status(&server, &cluster.path, "finalizing").await;
    finish(&server, &cluster.path).await;
    let names = event_names(&server, 5).await;
    for name in [
        "host_installation_reset",
        "user_required_complete_installation_reset",
        "host_installation_started",
    ] {
        assert!(names.iter().any(|one| one == name), "{name} {names:?}");
    }
    assert_refused(reset(&server, &cluster.hosts[4]).await, "is installed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_lacks_a_host_fails_at_once_by_default() {
    let server = Server::with(with_hosts).await;
    let cluster = Installing::start(&server, 3, 2).await;
    let shown = server.get(&cluster.path).await.expect(200);
    let bootstrap = Installing::bootstrap(&shown);
    let at = (1..=3)
        .find(|number| host_id(*number) == bootstrap)
        .unwrap();
    let host = &cluster.hosts[usize::try_from(at).unwrap() - 1];
    progress(&server, host, &["Rebooting"]).await;
    server.host(&cluster.infra_env, at).await;
    wait_status(&server, host, "installing-pending-user-action").await;
    assert_refused(reset(&server, host).await, "bootstrap host");
    cluster.fail(&server, 4).await;
    wait_status(&server, &cluster.path, "error").await;
    for host in &cluster.hosts {
        assert_refused(reset(&server, host).await, "reset the cluster");
    }
    let names = event_names(&server, 5).await;
    let refused = "host_installation_reset_failed";
    assert!(names.iter().any(|one| one == refused), "{names:?}");
}
