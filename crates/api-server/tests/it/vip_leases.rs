//! Virtual addresses from DHCP.

use std::sync::Arc;
use std::time::Duration;

use api_server::Settings;
use api_server::settings::{OsImages, ReleaseImages};
use host_sim::image::BootConfig;
use host_sim::{Fleet, Network, Pace, Role, SimulationPlan};
use serde_json::{Value, json};
use service::settings::Setting as _;
use sqlx::ConnectOptions as _;

use crate::harness::{AGENT, Answer, PULL_SECRET, Server, inventory};
use crate::installation::wait_status;

const STEP: &str = "dhcp-lease-allocate";

/// The last version with a network plug-in that allows leased addresses.
fn with_sdn(settings: &mut Settings) {
    let releases = json!([{
        "openshift_version": "4.14", "version": "4.14.9", "cpu_architecture": "x86_64", "default": true,
        "url": "registry.example.com:5000/openshift/release:4.14.9",
    }]);
    let os_images = json!([{
        "openshift_version": "4.14", "cpu_architecture": "x86_64", "url": "http://images/4.14.iso", "version": "414.92",
    }]);
    settings.release_images = ReleaseImages::parse(&releases.to_string()).unwrap();
    settings.os_images = OsImages::parse(&os_images.to_string()).unwrap();
}

/// A cluster that leases its addresses, and an infra-env.
async fn leasing(server: &Server) -> (String, String) {
    let params = json!({
        "openshift_version": "4.14", "network_type": "OpenShiftSDN", "vip_dhcp_allocation": true,
    });
    let cluster = server.cluster(params).await;
    let params = json!({
        "name": "rack-1", "pull_secret": PULL_SECRET, "openshift_version": "4.14", "cluster_id": cluster,
    });
    let infra_env = server.post("/v2/infra-envs", &params).await.expect(201);
    (cluster, infra_env["id"].as_str().unwrap().to_owned())
}

/// A cluster with one host, whose network is the machine network.
async fn leasing_with_host(server: &Server) -> (String, String) {
    let (cluster, infra_env) = leasing(server).await;
    let host = server.host(&infra_env, 1).await;
    let answer = server.reply(&host, "inventory", &inventory(1)).await;
    answer.expect(204);
    (format!("/v2/clusters/{cluster}"), host)
}

/// The request of the step.
async fn request(server: &Server, host: &str) -> Value {
    let steps = server
        .get(&format!("{host}/instructions"))
        .await
        .expect(200);
    let mut steps = steps["instructions"].as_array().unwrap().iter();
    let step = steps.find(|step| step["step_type"] == STEP).unwrap();
    serde_json::from_str(step["args"][0].as_str().unwrap()).unwrap()
}

fn lease(address: &str) -> String {
    format!("lease {{\n  fixed-address {address};\n  expire 4 2026/01/01 01:00:00;\n}}\n")
}

async fn reply(server: &Server, host: &str, api: &str, ingress: &str) -> Answer {
    let output = json!({
        "api_vip_address": api, "api_vip_lease": lease(api),
        "ingress_vip_address": ingress, "ingress_vip_lease": lease(ingress),
    });
    server.reply(host, STEP, &output).await
}

/// Messages of the cluster's events of a name.
async fn messages(server: &Server, cluster: &str, name: &str) -> Vec<String> {
    let id = cluster.rsplit('/').next().unwrap();
    let events = server.get(&format!("/v2/events?cluster_id={id}")).await;
    let events = events.expect(200);
    let events = events.as_array().unwrap().iter();
    let named = events.filter(|event| event["name"] == name);
    let messages = named.map(|event| event["message"].as_str().unwrap().to_owned());
    messages.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_with_leased_addresses_are_installed() {
    let server = Server::with(with_sdn).await;
    let (cluster, infra_env) = leasing(&server).await;
    let fleet = Fleet {
        seed: infra_env.clone(),
        hosts: vec![(Role::Master, 3), (Role::Worker, 2)],
        faults: Vec::new(),
        network: "192.168.126.0/24".parse().unwrap(),
    };
    let plan = SimulationPlan {
        boot: BootConfig {
            url: server.url.clone(),
            infra_env_id: infra_env.parse().unwrap(),
            agent_version: AGENT.to_owned(),
            insecure: false,
            ca_pem: None,
            token: None,
        },
        machines: fleet.machines().unwrap(),
        network: Network {
            networks: vec!["192.168.126.0/24".parse().unwrap()],
            ..Network::default()
        },
        pace: Pace::new(1000.0),
        seed: fleet.seed,
        has_dummy_files: false,
        state: None,
        interval: Some(Duration::from_millis(100)),
    };
    let simulation = tokio::spawn(async move { host_sim::run(&plan, Arc::default()).await });
    let path = format!("/v2/clusters/{cluster}");
    let ready = wait_status(&server, &path, "ready").await;
    assert_eq!(ready["api_vips"][0]["ip"], "192.168.126.254", "{ready}");
    assert_eq!(ready["ingress_vips"][0]["ip"], "192.168.126.253");
    assert!(ready.get("vip_leases").is_none());
    let install = format!("{path}/actions/install");
    server.post(&install, &json!({})).await.expect(202);
    let installed = wait_status(&server, &path, "installed").await;
    assert_eq!(installed["api_vips"][0]["ip"], "192.168.126.254");
    simulation.abort();
    let events = messages(&server, &path, "api_ingress_vip_updated").await;
    assert_eq!(events.len(), 1, "{events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_are_stored_and_presented_again() {
    let server = Server::with(with_sdn).await;
    let (cluster, host) = leasing_with_host(&server).await;
    let waiting = server.get(&cluster).await.expect(200);
    assert_eq!(waiting["status"], "insufficient", "{waiting}");
    assert_eq!(waiting["machine_networks"][0]["cidr"], "192.0.2.0/24");
    let first = request(&server, &host).await;
    assert_eq!(first["interface"], "eth0");
    assert!(first.get("api_vip_lease").is_none(), "{first}");
    reply(&server, &host, "192.0.2.5", "192.0.2.6")
        .await
        .expect(204);
    let server = server.restart_with(with_sdn).await;
    let leased = server.get(&cluster).await.expect(200);
    assert_eq!(leased["api_vips"][0]["ip"], "192.0.2.5");
    assert_eq!(leased["ingress_vips"][0]["ip"], "192.0.2.6");
    let listed = server.get("/v2/clusters").await.expect(200);
    for shown in [&leased, &listed[0]] {
        assert!(shown.get("vip_leases").is_none(), "{shown}");
    }
    let second = request(&server, &host).await;
    assert_eq!(second["api_vip_mac"], first["api_vip_mac"]);
    let presented = second["api_vip_lease"].as_str().unwrap();
    assert!(
        presented.contains("fixed-address 192.0.2.5;\n  expire never;"),
        "{presented}"
    );
    // A reply that repeats the last one changes nothing.
    let before = leased["updated_at"].clone();
    reply(&server, &host, "192.0.2.5", "192.0.2.6")
        .await
        .expect(204);
    assert_eq!(server.get(&cluster).await.expect(200)["updated_at"], before);
    reply(&server, &host, "192.0.2.7", "192.0.2.6")
        .await
        .expect(204);
    assert_eq!(
        server.get(&cluster).await.expect(200)["api_vips"][0]["ip"],
        "192.0.2.7"
    );
    assert_eq!(
        messages(&server, &cluster, "api_ingress_vip_updated")
            .await
            .len(),
        2
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn impossible_leases_are_refused() {
    let server = Server::with(with_sdn).await;
    let (cluster, host) = leasing_with_host(&server).await;
    let outside = reply(&server, &host, "198.51.100.5", "192.0.2.6").await;
    let reason = outside.expect(400)["reason"].as_str().unwrap().to_owned();
    assert!(
        reason.contains("198.51.100.5 is not in machine network"),
        "{reason}"
    );
    let output = json!({
        "api_vip_address": "192.0.2.5", "ingress_vip_address": "192.0.2.6", "api_vip_lease": "lease { evil };",
    });
    let malformed = server.reply(&host, STEP, &output).await.expect(400);
    assert!(
        malformed["reason"]
            .as_str()
            .unwrap()
            .contains("api_vip_lease")
    );
    let params = json!({ "vip_dhcp_allocation": false });
    server.patch(&cluster, &params).await.expect(201);
    reply(&server, &host, "192.0.2.5", "192.0.2.6")
        .await
        .expect(409);
    assert_eq!(
        server.get(&cluster).await.expect(200)["api_vips"],
        json!([])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_leases_time_out() {
    let server = Server::with(with_sdn).await;
    let (cluster, host) = leasing_with_host(&server).await;
    let info = |cluster: &Value| cluster["validations_info"].as_str().unwrap().to_owned();
    let waiting = server.get(&cluster).await.expect(200);
    assert!(
        info(&waiting).contains("Waiting for DHCP leases"),
        "{waiting}"
    );
    let mut connection = server.database.options().connect().await.unwrap();
    let requested = "update clusters set revision = revision + 1, record_revision = revision + 1,
        record = jsonb_set(record, '{vip_leases,requested_at}', '\"2020-01-01T00:00:00.000Z\"')";
    sqlx::query(requested)
        .execute(&mut connection)
        .await
        .unwrap();
    for _ in 0..2 {
        let _ = request(&server, &host).await;
    }
    let events = messages(&server, &cluster, "api_ingress_vip_timed_out").await;
    assert_eq!(events.len(), 1, "{events:?}");
    let failed = server.get(&cluster).await.expect(200);
    assert!(
        info(&failed).contains("no DHCP server of 192.0.2.0/24"),
        "{failed}"
    );
    reply(&server, &host, "192.0.2.5", "192.0.2.6")
        .await
        .expect(204);
    let leased = server.get(&cluster).await.expect(200);
    assert!(!info(&leased).contains("no DHCP server"), "{leased}");
}
