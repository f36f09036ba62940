//! One storage folder that docker-registry and the registry of this build use alternately.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use oci::media_type::{OCI_CONFIG, OCI_LAYER, OCI_MANIFEST};
use oci::{Digest, Manifest, Reference};
use oci_client::{Client, ClientOptions};
use reqwest::header::ACCEPT;
use serde_json::{Value, json};
use system_tests::process::{self, Signal, program};
use system_tests::{Distribution, Scratch, client, free_ports, until};

use crate::registry_clients::skipped;

const LIMIT: Duration = Duration::from_mins(1);

/// `atoll serve registry` over a folder; killed on drop.
struct AtollRegistry {
    child: Child,
    address: String,
}

impl AtollRegistry {
    /// Starts it with a collector without a grace period, and waits until it is ready.
    async fn start(root: &Path) -> Result<Self> {
        let address = format!("127.0.0.1:{}", free_ports(1)?);
        let child = Command::new(program("atoll")?)
            .args(["serve", "registry"])
            .env("REGISTRY_HTTP_ADDR", &address)
            .env("REGISTRY_STORAGE_FILESYSTEM_ROOTDIRECTORY", root)
            .env("REGISTRY_STORAGE_DELETE_ENABLED", "true")
            .env("REGISTRY_STORAGE_MAINTENANCE_GC_GRACE", "0s")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("running atoll serve registry")?;
        let ours = Self { child, address };
        let (client, url) = (client(None)?, format!("http://{}/ready", ours.address));
        until("the registry is ready", LIMIT, async || {
            let answer = client.get(&url).send().await;
            Ok(answer.ok().filter(|answer| answer.status().is_success()))
        })
        .await?;
        Ok(ours)
    }

    /// Stops it as service managers do.
    async fn stop(mut self) -> Result<()> {
        process::signal(self.child.id(), Signal::TERM)?;
        let ended = until("the registry ends", LIMIT, async || {
            Ok(self.child.try_wait()?)
        })
        .await?;
        ensure!(ended.success(), "it ended with {ended}");
        Ok(())
    }

    async fn collect(&self) -> Result<Value> {
        let url = format!("http://{}/v2/_atoll/gc", self.address);
        let answer = client(None)?.post(url).send().await?.error_for_status()?;
        Ok(serde_json::from_slice(&answer.bytes().await?)?)
    }
}

impl Drop for AtollRegistry {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Pushes an image of one layer to `name`, which is a repository with its tag.
async fn push(registry: &str, name: &str, layer: &str) -> Result<Digest> {
    let options = ClientOptions {
        plain_http: true,
        ..ClientOptions::default()
    };
    let client = Client::new(options)?;
    let image: Reference = format!("{registry}/{name}").parse()?;
    let layer = layer.as_bytes().to_vec().into();
    let layer = client.push_blob_bytes(&image, OCI_LAYER, layer).await?;
    let config = json!({"architecture": "amd64", "os": "linux"}).to_string();
    let config = client.push_blob_bytes(&image, OCI_CONFIG, config.into());
    let manifest = json!({
        "schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config.await?, "layers": [layer],
    });
    let manifest = Manifest::parse(manifest.to_string().into(), None)?;
    client.push_manifest(&image, &manifest).await?;
    Ok(manifest.digest)
}

/// Checks that a registry serves each tag with its digest, and all content of the image.
async fn serves(registry: &str, tags: &[(&str, &str, &Digest)]) -> Result<()> {
    let client = client(None)?;
    for (repository, tag, digest) in tags {
        let get = async |path: String| -> Result<Vec<u8>> {
            let url = format!("http://{registry}/v2/{repository}/{path}");
            let answer = client.get(&url).header(ACCEPT, OCI_MANIFEST).send().await?;
            ensure!(answer.status() == 200, "{url}: {}", answer.status());
            Ok(answer.bytes().await?.into())
        };
        let manifest = get(format!("manifests/{tag}")).await?;
        let found = Digest::sha256(&manifest);
        ensure!(found == **digest, "{repository}:{tag} is {found}");
        let manifest: Value = serde_json::from_slice(&manifest)?;
        for blob in [&manifest["config"], &manifest["layers"][0]] {
            let digest = blob["digest"].as_str().context("a blob without digest")?;
            let bytes = get(format!("blobs/{digest}")).await?;
            ensure!(Digest::sha256(&bytes).to_string() == digest, "{digest}");
        }
    }
    Ok(())
}

fn run(program: &str, arguments: &[&str]) -> Result<()> {
    let output = Command::new(program).args(arguments).output()?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program}: {complaint}");
    Ok(())
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path is not UTF-8")
}

/// The content of a docker-registry with one image, with old mtimes.
async fn backup(program: &Path, folder: PathBuf, name: &str) -> Result<(PathBuf, Digest)> {
    let registry = Distribution::start(program, &folder).await?;
    let digest = push(registry.address(), &format!("{name}:v1"), name).await?;
    let content = registry.folder().to_owned();
    drop(registry);
    let long_ago = ["-exec", "touch", "-d", "2001-02-03", "{}", "+"];
    run("find", &[&[text(&content)?], &long_ago[..]].concat())?;
    Ok((content, digest))
}

#[tokio::test]
async fn changes_by_docker_registry_and_backups_are_served_and_kept() -> Result<()> {
    let Some(program) = Distribution::program() else {
        skipped("docker-registry");
        return Ok(());
    };
    let scratch = Scratch::new()?;
    let folder = scratch.path().join("registry");
    let (copied, of_copied) = backup(&program, scratch.path().join("one"), "older/copied").await?;
    let (unpacked, of_unpacked) =
        backup(&program, scratch.path().join("two"), "older/unpacked").await?;

    let distribution = Distribution::start(&program, &folder).await?;
    let content = distribution.folder().to_owned();
    let before = push(distribution.address(), "team/app:moved", "before").await?;
    push(distribution.address(), "team/app:before", "before").await?;
    push(distribution.address(), "team/app:after", "after").await?;
    drop(distribution);

    // Adopted, then restarted.
    for _ in 0..2 {
        let ours = AtollRegistry::start(&content).await?;
        serves(&ours.address, &[("team/app", "moved", &before)]).await?;
        ours.stop().await?;
    }

    // The link of the tag is rewritten in place; the mtimes of the folders are unchanged.
    let distribution = Distribution::start(&program, &folder).await?;
    let after = push(distribution.address(), "team/app:moved", "after").await?;
    ensure!(before != after);
    drop(distribution);
    run(
        "cp",
        &["-a", &format!("{}/.", text(&copied)?), text(&content)?],
    )?;
    let archive = scratch.path().join("backup.tar");
    run(
        "tar",
        &["-C", text(&unpacked)?, "-cf", text(&archive)?, "."],
    )?;
    run("tar", &["-C", text(&content)?, "-xpf", text(&archive)?])?;

    let tags = [
        ("team/app", "moved", &after),
        ("team/app", "before", &before),
        ("team/app", "after", &after),
        ("older/copied", "v1", &of_copied),
        ("older/unpacked", "v1", &of_unpacked),
    ];
    let ours = AtollRegistry::start(&content).await?;
    serves(&ours.address, &tags).await?;
    let url = format!("http://{}/v2/_catalog", ours.address);
    let listed = client(None)?.get(url).send().await?.bytes().await?;
    let listed: Value = serde_json::from_slice(&listed)?;
    let all = json!({"repositories": ["older/copied", "older/unpacked", "team/app"]});
    ensure!(listed == all, "{listed}");
    for _ in 0..2 {
        let collected = ours.collect().await?;
        let nothing = collected["blobs"] == 0 && collected["links"] == 0;
        ensure!(nothing && collected["manifests"] == 0, "{collected}");
    }
    serves(&ours.address, &tags).await?;
    ours.stop().await?;

    let distribution = Distribution::start(&program, &folder).await?;
    serves(distribution.address(), &tags).await
}
