//! `atoll backup --pod` of a running pod, and `atoll restore --pod` on a host without any of its data.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result, ensure};
use oci::media_type::{OCI_CONFIG, OCI_LAYER, OCI_MANIFEST};
use oci::{Descriptor, Digest, Manifest, Reference};
use oci_client::{Client, ClientOptions, Credentials, Login};
use reqwest::Method;
use serde_json::{Value, json};
use system_tests::ApiClient;
use system_tests::pod::Engine;
use system_tests::process::program;

use crate::podman_compose::{Project, succeed};
use crate::{Trials, say};

const PULL_SECRET: &str =
    r#"{"auths":{"registry.example.com:5000":{"auth":"dXNlcjpwYXNzd29yZA=="}}}"#;
const RELEASES: &str = r#"[{"openshift_version":"4.18","version":"4.18.7","cpu_architecture":"x86_64","default":true,"url":"registry.example.com:5000/openshift/release:4.18.7"}]"#;
const BOOT_IMAGES: &str = r#"[{"openshift_version":"4.18","version":"418.94","cpu_architecture":"x86_64","url":"file:///images/4.18.iso"}]"#;
const HOST: &str = "00000000-0000-4000-8000-000000000001";
/// Repository that clients push to while the backup is made.
const BUSY: &str = "acme/busy";

pub(crate) fn add(trials: &mut Trials) {
    trials.add_long(
        "backup::a_pod_moves_to_another_host_while_images_are_pushed",
        moves,
    );
}

async fn moves(_engine: Engine) -> Result<()> {
    let mut project = Project::new()?;
    let folder = project.place.folder.path();
    project.place.folder.set([
        ("COMPOSE_PROJECT_NAME", project.place.name.clone()),
        ("RELEASE_IMAGES", RELEASES.to_owned()),
        ("OS_IMAGES", BOOT_IMAGES.to_owned()),
    ])?;
    project.compose(&["up", "-d"])?;
    project.place.api_is_ready().await?;
    let registry = PodRegistry::of(&project, &folder)?;
    register(&project).await?;
    let before = project.served().await?;
    let kept = registry.push("acme/kept", 1).await?;

    let is_over = Arc::new(AtomicBool::new(false));
    let pushing = tokio::spawn(push_until(Arc::clone(&is_over), registry.clone()));
    let file = project.place.folder.beside("backups")?.join("pod.backup");
    let saved = atoll("backup", &file, &folder, &["--verify"]).await;
    is_over.store(true, Ordering::Relaxed);
    let pushed = pushing.await??;
    say(&format!(
        "{pushed} images pushed meanwhile; {}",
        saved?.trim()
    ));

    // Neither a running pod nor existing data is replaced by mistake.
    let other = project.place.folder.beside("other-host")?.join("pod");
    let refused = atoll("restore", &file, &other, &[]).await;
    let refused = format!("{:#}", refused.err().context("a running pod is replaced")?);
    ensure!(refused.contains("podman-compose down"), "{refused}");
    project.compose(&["down"])?;
    let refused = atoll("restore", &file, &other, &[]).await;
    let refused = format!("{:#}", refused.err().context("volumes are replaced")?);
    ensure!(refused.contains("--replace"), "{refused}");
    project.compose(&["down", "-v"])?;

    atoll("restore", &file, &other, &[]).await?;
    project.moved_to(&other);
    project.compose(&["up", "-d"])?;
    project.place.api_is_ready().await?;
    let after = project.served().await?;
    ensure!(after == before, "{before} was served, and now {after}");
    // With the authority and the password of the first host.
    ensure!(registry.pull("acme/kept", "v1").await? == kept);
    let busy = registry.name(BUSY, "latest")?;
    let tags = registry.client.tags(&busy).await?;
    for tag in &tags {
        registry.pull(BUSY, tag.as_str()).await?;
    }
    say(&format!("of these, {} are in the backup", tags.len()));
    registry.push("acme/kept", 2).await?;
    Ok(())
}

impl Project {
    /// The API's records of the cluster and its host.
    async fn served(&self) -> Result<Value> {
        let api = self.api()?;
        let cluster = api.get("/v2/clusters").await?[0].clone();
        let id = cluster["id"].as_str().context("no cluster")?;
        let cluster = api.get(&format!("/v2/clusters/{id}")).await?;
        let host = &cluster["hosts"][0];
        ensure!(host["id"] == HOST, "{host}");
        Ok(json!({
            "id": id, "name": cluster["name"], "created_at": cluster["created_at"],
            "host": host["id"], "host_created_at": host["created_at"], "infra_env": host["infra_env_id"],
        }))
    }

    fn api(&self) -> Result<ApiClient> {
        ApiClient::new(&format!(
            "http://127.0.0.1:{}",
            self.place.port("PUBLISH_API")?
        ))
    }
}

async fn register(project: &Project) -> Result<()> {
    let api = project.api()?;
    let cluster = json!({
        "name": "kept", "base_dns_domain": "example.org", "openshift_version": "4.18",
        "pull_secret": PULL_SECRET,
    });
    let cluster = api.succeed(Method::POST, "/v2/clusters", &cluster).await?;
    let infra_env = json!({
        "name": "kept", "pull_secret": PULL_SECRET, "cluster_id": cluster["id"], "openshift_version": "4.18",
    });
    let infra_env = api
        .succeed(Method::POST, "/v2/infra-envs", &infra_env)
        .await?;
    let id = infra_env["id"].as_str().context("no infra-env")?;
    let host = json!({ "host_id": HOST, "discovery_agent_version": "agent:v1" });
    let path = format!("/v2/infra-envs/{id}/hosts");
    api.succeed(Method::POST, &path, &host).await.map(drop)
}

/// The pod's registry, for a user of the first host.
#[derive(Clone)]
struct PodRegistry {
    client: Client,
    address: String,
}

impl PodRegistry {
    fn of(project: &Project, folder: &Path) -> Result<Self> {
        let read = |name: &str| std::fs::read_to_string(folder.join("secrets").join(name));
        let address = format!("127.0.0.1:{}", project.place.port("PUBLISH_REGISTRY")?);
        let login = Login {
            user: "atoll".to_owned(),
            password: read("registry-password")?.trim_end().to_owned().into(),
        };
        let client = Client::new(ClientOptions {
            credentials: Credentials::anonymous().with(address.clone(), login),
            ca_pem: Some(read("registry.crt")?.into_bytes()),
            ..ClientOptions::default()
        })?;
        Ok(Self { client, address })
    }

    fn name(&self, repository: &str, tag: &str) -> Result<Reference> {
        Ok(format!("{}/{repository}:{tag}", self.address).parse()?)
    }

    /// Pushes image `number` under a tag of that number.
    async fn push(&self, repository: &str, number: usize) -> Result<Digest> {
        let image = self.name(repository, &format!("v{number}"))?;
        let blob = async |kind, text: String| {
            let pushed = self.client.push_blob_bytes(&image, kind, text.into());
            pushed.await
        };
        let config = json!({"architecture": "amd64", "os": "linux", "number": number});
        let config = blob(OCI_CONFIG, config.to_string()).await?;
        let layer = blob(OCI_LAYER, format!("layer {number}")).await?;
        let manifest = json!({
            "schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": [layer],
        });
        let manifest = Manifest::parse(manifest.to_string().into(), None)?;
        self.client.push_manifest(&image, &manifest).await?;
        Ok(manifest.digest)
    }

    /// Pulls an image with all its content; returns its digest.
    async fn pull(&self, repository: &str, tag: &str) -> Result<Digest> {
        let image = self.name(repository, tag)?;
        let manifest = self.client.pull_manifest(&image).await?;
        let content: Value = serde_json::from_slice(&manifest.bytes)?;
        for blob in [&content["config"], &content["layers"][0]] {
            let blob: Descriptor = serde_json::from_value(blob.clone())?;
            let bytes = self.client.pull_blob_bytes(&image, &blob, 1 << 20).await?;
            ensure!(Digest::sha256(&bytes) == blob.digest);
        }
        Ok(manifest.digest)
    }
}

/// Pushes one image after the other until `is_over`; returns their number.
async fn push_until(is_over: Arc<AtomicBool>, registry: PodRegistry) -> Result<usize> {
    let mut number = 0;
    while !is_over.load(Ordering::Relaxed) {
        number += 1;
        registry.push(BUSY, number).await?;
    }
    Ok(number)
}

/// Runs `atoll VERB FILE --pod FOLDER`; returns its output.
async fn atoll(verb: &str, file: &Path, folder: &Path, more: &[&str]) -> Result<String> {
    let program: PathBuf = program("atoll")?;
    let mut command = Command::new(program);
    command
        .arg(verb)
        .arg(file)
        .arg("--pod")
        .arg(folder)
        .args(more);
    tokio::task::spawn_blocking(move || succeed(&mut command)).await?
}
