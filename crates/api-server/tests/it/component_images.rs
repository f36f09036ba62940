//! Images that hosts run: those of the release, with a real registry.

use serde_json::{Value, json};

use crate::harness::{AGENT, PULL_SECRET, Server, cluster_params, host_id, inventory, merged};
use crate::site_registry::{SiteRegistry, all};

const VERSIONS: [&str; 3] = ["4.18.7", "4.18.9", "4.19.0-ec.2"];

/// Image of the agent in the response to a registration.
async fn agent_of(server: &Server, infra_env: &str, number: u32) -> String {
    let params = json!({ "host_id": host_id(number), "discovery_agent_version": AGENT });
    let path = format!("/v2/infra-envs/{infra_env}/hosts");
    let registered = server.post(&path, &params).await.expect(201);
    let request = &registered["next_step_runner_command"]["args"][0];
    let request: Value = serde_json::from_str(request.as_str().unwrap()).unwrap();
    request["agent_version"].as_str().unwrap().to_owned()
}

async fn ignition(server: &Server, infra_env: &str) -> String {
    let path = format!("/v2/infra-envs/{infra_env}/downloads/files?file_name=discovery.ign");
    server.get(&path).await.expect(200).to_string()
}

async fn upgrade(server: &Server, host: &str) -> Value {
    let steps = server
        .get(&format!("{host}/instructions"))
        .await
        .expect(200);
    let first = &steps["instructions"][0];
    assert_eq!(first["step_type"], "upgrade-agent", "{steps}");
    serde_json::from_str(first["args"][0].as_str().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_run_images_of_the_release_of_their_cluster() {
    let registry = SiteRegistry::start().await;
    registry.publish("4.18.7", &all()).await;
    registry.publish("4.18.9", &all()).await;
    let server = registry.server(&VERSIONS).await;
    let agent = |version| registry.component(version, "agent-installer-node-agent");
    let older = server
        .cluster(json!({ "openshift_version": "4.18.7" }))
        .await;
    let newer = json!({ "name": "other", "openshift_version": "4.18.9" });
    let newer = server.cluster(newer).await;
    let (in_older, in_newer) = (
        server.infra_env(Some(&older)).await,
        server.infra_env(Some(&newer)).await,
    );
    assert_eq!(agent_of(&server, &in_older, 1).await, agent("4.18.7"));
    assert_eq!(agent_of(&server, &in_newer, 2).await, agent("4.18.9"));
    let text = ignition(&server, &in_older).await;
    assert!(text.contains(&agent("4.18.7")), "{text}");

    // A pool takes the newest release of its version, and a host that leaves it for a cluster that of the cluster.
    let pool = server.infra_env(None).await;
    assert_eq!(agent_of(&server, &pool, 3).await, agent("4.18.9"));
    let host = format!("/v2/infra-envs/{pool}/hosts/{}", host_id(3));
    assert_eq!(
        upgrade(&server, &host).await["agent_image"],
        agent("4.18.9")
    );
    server
        .reply(&host, "inventory", &inventory(3))
        .await
        .expect(204);
    let bind = json!({ "cluster_id": older });
    let bound = server.post(&format!("{host}/actions/bind"), &bind).await;
    bound.expect(200);

    // Read once, and kept over a restart without the registry.
    registry.stop().await;
    let listed = server.get("/v2/component-versions").await.expect(200);
    assert!(
        listed["versions"].get("discovery-agent").is_none(),
        "{listed}"
    );
    let server = server
        .restart_with(|settings| {
            settings.agent_docker_image.clear();
            settings.installer_image.clear();
            settings.controller_image.clear();
        })
        .await;
    assert!(
        agent_of(&server, &in_older, 4)
            .await
            .contains(":4.18.7-agent")
    );
    assert!(agent_of(&server, &pool, 3).await.contains(":4.18.7-agent"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_release_lacks_is_named_when_a_cluster_is_created() {
    let registry = SiteRegistry::start().await;
    let [agent, installer, controller] = all();
    registry.publish("4.18.7", &[agent, installer]).await;
    let server = registry.server(&VERSIONS).await;
    let refused = async |server: &Server, path: &str, params: Value, parts: &[&str]| {
        let answer = server.post(path, &params).await;
        let reason = answer.expect(400)["reason"].as_str().unwrap().to_owned();
        for part in parts {
            assert!(reason.contains(part), "{part}: {reason}");
        }
    };
    let of = |version: &str| merged(cluster_params(), json!({ "openshift_version": version }));
    let clusters = "/v2/clusters";
    refused(
        &server,
        clusters,
        of("4.18.7"),
        &[controller, "CONTROLLER_IMAGE", "4.18.7"],
    )
    .await;
    // Not there.
    let away = [&registry.address, "4.19.0-ec.2", "CONTROLLER_IMAGE"];
    refused(&server, clusters, of("4.19.0-ec.2"), &away).await;

    // Hosts without an agent inside their image need one; others do without.
    let pool = |is_embedded: bool| {
        json!({ "name": "rack-1", "pull_secret": PULL_SECRET, "openshift_version": "4.19",
            "embedded_agent": is_embedded })
    };
    refused(
        &server,
        "/v2/infra-envs",
        pool(false),
        &["AGENT_DOCKER_IMAGE"],
    )
    .await;
    server.post("/v2/infra-envs", &pool(true)).await.expect(201);

    // A setting fills the gap, and wins.
    let change = registry.settings(&["4.18.7"]);
    let server = server.restart_with(|settings| {
        change(settings);
        settings.agent_docker_image = AGENT.to_owned();
        settings.controller_image = "registry.example.com:5000/edge/controller:v1".to_owned();
    });
    let server = server.await;
    let cluster = server
        .cluster(json!({ "openshift_version": "4.18.7" }))
        .await;
    let infra_env = server.infra_env(Some(&cluster)).await;
    assert_eq!(agent_of(&server, &infra_env, 1).await, AGENT);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_secret_covers_the_images_of_the_release() {
    let registry = SiteRegistry::start().await;
    registry.publish("4.18.7", &all()).await;
    let change = registry.settings(&["4.18.7"]);
    let server = Server::with(|settings| {
        change(settings);
        settings.public_container_registries.0.clear();
    })
    .await;
    let params = merged(cluster_params(), json!({ "openshift_version": "4.18.7" }));
    let answer = server.post("/v2/clusters", &params).await;
    let reason = answer.expect(400)["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains(&registry.address), "{reason}");
}
