//! Images that hosts run: those of the release, with a real registry.

use api_server::settings::ReleaseImages;
use model::release_payload::COMPONENTS;
use oci_client::{Client, ClientOptions};
use registry::HttpAddr;
use serde_json::{Value, json};
use service::CancellationToken;
use service::server::Running;
use service::settings::Setting as _;

use crate::harness::{AGENT, PULL_SECRET, Server, cluster_params, host_id, inventory, merged};

/// A registry and a server whose settings name no images of hosts.
struct World {
    registry: String,
    shutdown: CancellationToken,
    running: Running,
    folder: tempfile::TempDir,
}

impl World {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let shutdown = CancellationToken::new();
        let settings = registry::Settings {
            registry_http_addr: HttpAddr(([127, 0, 0, 1], 0).into()),
            registry_storage_filesystem_rootdirectory: folder.path().to_owned(),
            ..registry::Settings::default()
        };
        let running = registry::start(settings, shutdown.clone()).await.unwrap();
        Self {
            registry: running.address().to_string(),
            shutdown,
            running,
            folder,
        }
    }

    /// The reference of a component of a release.
    fn component(&self, version: &str, name: &str) -> String {
        format!("{}/openshift/release:{version}-{name}", self.registry)
    }

    /// Publishes the payload of a release, and of its components those that installations need and `names`.
    async fn publish(&self, version: &str, names: &[&str]) {
        let client = Client::new(ClientOptions {
            insecure: true,
            ..ClientOptions::default()
        });
        let needed = [
            "baremetal-installer",
            "machine-config-operator",
            "must-gather",
        ];
        let names = needed.iter().chain(names);
        let images: Vec<_> = names
            .map(|name| (*name, self.component(version, name)))
            .collect();
        let images: Vec<_> = images
            .iter()
            .map(|(name, it)| (*name, it.as_str()))
            .collect();
        let release = self.release(version);
        testkit::release::publish_payload(&client.unwrap(), &release, version, &images)
            .await
            .unwrap();
    }

    fn release(&self, version: &str) -> String {
        format!("{}/openshift/release-images:{version}", self.registry)
    }

    async fn server(&self, change: impl FnOnce(&mut api_server::Settings)) -> Server {
        let releases = ["4.18.7", "4.18.9", "4.19.0-ec.2"].map(|version| {
            json!({ "openshift_version": version[..4], "version": version, "cpu_architecture": "x86_64",
                "url": self.release(version), "default": version == "4.18.7" })
        });
        Server::with(|settings| {
            settings.dummy_ignition = false;
            settings.skip_cert_verification = true;
            settings.release_images = ReleaseImages::parse(&json!(releases).to_string()).unwrap();
            settings.agent_docker_image.clear();
            settings.installer_image.clear();
            settings.controller_image.clear();
            settings
                .public_container_registries
                .0
                .push(self.registry.clone());
            change(settings);
        })
        .await
    }

    async fn stop(self) {
        self.shutdown.cancel();
        self.running.wait().await.unwrap();
        drop(self.folder);
    }
}

fn all() -> [&'static str; 3] {
    COMPONENTS.map(|one| one.name)
}

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
    let world = World::start().await;
    world.publish("4.18.7", &all()).await;
    world.publish("4.18.9", &all()).await;
    let server = world.server(|_| {}).await;
    let agent = |version| world.component(version, "agent-installer-node-agent");
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
    world.stop().await;
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
    let world = World::start().await;
    let [agent, installer, controller] = all();
    world.publish("4.18.7", &[agent, installer]).await;
    let server = world.server(|_| {}).await;
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
    let away = [&world.registry, "4.19.0-ec.2", "CONTROLLER_IMAGE"];
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
    let server = server.restart_with(|settings| {
        let release = json!([{ "openshift_version": "4.18", "version": "4.18.7", "cpu_architecture": "x86_64",
            "url": world.release("4.18.7") }]);
        settings.release_images = ReleaseImages::parse(&release.to_string()).unwrap();
        settings.dummy_ignition = false;
        settings.skip_cert_verification = true;
        settings.agent_docker_image = AGENT.to_owned();
        settings.installer_image.clear();
        settings.controller_image = "registry.example.com:5000/edge/controller:v1".to_owned();
        settings.public_container_registries.0.push(world.registry.clone());
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
    let world = World::start().await;
    world.publish("4.18.7", &all()).await;
    let server = world
        .server(|settings| settings.public_container_registries.0.clear())
        .await;
    let params = merged(cluster_params(), json!({ "openshift_version": "4.18.7" }));
    let answer = server.post("/v2/clusters", &params).await;
    let reason = answer.expect(400)["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains(&world.registry), "{reason}");
}
