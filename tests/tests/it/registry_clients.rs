//! The registry as skopeo and podman use it, over TLS with a password.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use system_tests::Installation;

#[tokio::test]
async fn skopeo_copies_there_and_back() -> Result<()> {
    if !runs("skopeo", &["--version"]) {
        skipped("skopeo");
        return Ok(());
    }
    let installation = Installation::start().await?;
    let place = ClientEnvironment::new(&installation)?;
    let pushed = layout(&place.folder.join("image"))?;
    let image = format!("oci:{}:v1", place.folder.join("image").display());
    let remote = format!("docker://{}/tests/image:v1", place.registry);
    let back = format!("oci:{}:v1", place.folder.join("back").display());
    let as_user = ["--insecure-policy", "copy", "--quiet"];
    let to = [
        "--dest-creds",
        &place.credentials,
        "--dest-cert-dir",
        &place.certificates,
    ];
    place.run("skopeo", &[&as_user[..], &to, &[&image, &remote]].concat())?;
    let from = [
        "--src-creds",
        &place.credentials,
        "--src-cert-dir",
        &place.certificates,
    ];
    place.run("skopeo", &[&as_user[..], &from, &[&remote, &back]].concat())?;
    let pulled = manifest_digest(&place.folder.join("back"))?;
    ensure!(pulled == pushed, "{pulled} came back for {pushed}");
    same_blobs(&place.folder.join("image"), &place.folder.join("back"))?;
    let inspected = place.run(
        "skopeo",
        &[
            "inspect",
            "--creds",
            &place.credentials,
            "--cert-dir",
            &place.certificates,
            &remote,
        ],
    )?;
    let inspected: Value = serde_json::from_str(&inspected)?;
    ensure!(
        inspected["Digest"] == *pushed && inspected["RepoTags"] == json!(["v1"]),
        "{inspected}"
    );
    let wrong = [
        "inspect",
        "--creds",
        "atoll:wrong",
        "--cert-dir",
        &place.certificates,
        &remote,
    ];
    let refusal = place
        .run("skopeo", &wrong)
        .expect_err("a wrong password is let in");
    ensure!(
        format!("{refusal:#}").contains("unauthorized"),
        "{refusal:#}"
    );
    installation.stop().await
}

#[tokio::test]
async fn podman_pulls_and_pushes() -> Result<()> {
    let installation = Installation::start().await?;
    let place = ClientEnvironment::new(&installation)?;
    if !runs("podman", &["--version"])
        || place.podman(&["info"]).is_err()
        || !runs("skopeo", &["--version"])
    {
        skipped("podman");
        return installation.stop().await;
    }
    let pushed = layout(&place.folder.join("image"))?;
    let image = format!("oci:{}:v1", place.folder.join("image").display());
    let remote = format!("{}/tests/image", place.registry);
    let (v1, v2) = (format!("{remote}:v1"), format!("{remote}:v2"));
    let with = [
        "--quiet",
        "--creds",
        &place.credentials,
        "--cert-dir",
        &place.certificates,
    ];
    place.podman(&[
        "login",
        "--username",
        "atoll",
        "--password",
        place.password()?,
        "--cert-dir",
        &place.certificates,
        &place.registry,
    ])?;
    let loaded = place.podman(&["pull", "--quiet", &image])?;
    place.podman(&["tag", loaded.trim(), &v1])?;
    place.podman(&[&["push"], &with[..], &[&v1]].concat())?;
    place.podman(&["rmi", "--force", loaded.trim()])?;
    let pulled = place.podman(&[&["pull"], &with[..], &[&v1]].concat())?;
    ensure!(pulled == loaded, "image {pulled} came back for {loaded}");
    place.podman(&["tag", &v1, &v2])?;
    place.podman(&[&["push"], &with[..], &[&v2]].concat())?;
    let digest = |tag: &str| -> Result<String> {
        let remote = format!("docker://{tag}");
        let inspected = place.run(
            "skopeo",
            &[
                "inspect",
                "--creds",
                &place.credentials,
                "--cert-dir",
                &place.certificates,
                &remote,
            ],
        )?;
        let inspected: Value = serde_json::from_str(&inspected)?;
        Ok(inspected["Digest"].as_str().unwrap_or_default().to_owned())
    };
    let (first, second) = (digest(&v1)?, digest(&v2)?);
    ensure!(
        first == second && !first.is_empty(),
        "{first} and {second}, from {pushed}"
    );
    installation.stop().await
}

/// The working environment of a registry's clients.
struct ClientEnvironment {
    folder: PathBuf,
    registry: String,
    /// A folder with the registry's certificate, in the layout of container tools.
    certificates: String,
    credentials: String,
}

impl ClientEnvironment {
    fn new(installation: &Installation) -> Result<Self> {
        let services = installation.state()?.services;
        let folder = installation.folder("clients")?;
        let certificates = installation.folder("clients/certificates")?;
        fs::copy(&services.registry_ca, certificates.join("ca.crt"))?;
        let password = fs::read_to_string(&services.registry_password_file)?;
        Ok(Self {
            folder,
            registry: services.registry,
            certificates: certificates.display().to_string(),
            credentials: format!("{}:{}", services.registry_user, password.trim_end()),
        })
    }

    fn password(&self) -> Result<&str> {
        let (_, password) = self.credentials.split_once(':').context("no password")?;
        Ok(password)
    }

    /// Podman with storage of its own, separate from the machine's.
    fn podman(&self, arguments: &[&str]) -> Result<String> {
        let path = |name: &str| self.folder.join(name).display().to_string();
        let (root, run_root) = (path("podman-root"), path("podman-run"));
        let own = [
            "--root",
            &root,
            "--runroot",
            &run_root,
            "--storage-driver",
            "vfs",
        ];
        self.run("podman", &[&own[..], arguments].concat())
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let output = Command::new(program)
            .args(arguments)
            .current_dir(&self.folder)
            .env("REGISTRY_AUTH_FILE", self.folder.join("auth.json"))
            .output()
            .with_context(|| format!("running {program}"))?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        // The arguments contain the password.
        ensure!(
            output.status.success(),
            "{program}: {} {complaint}",
            output.status
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

pub(crate) fn runs(program: &str, arguments: &[&str]) -> bool {
    let output = Command::new(program).args(arguments).output();
    output.is_ok_and(|output| output.status.success())
}

pub(crate) fn skipped(program: &str) {
    testkit::skipped(&format!("{program} does not run here"));
}

/// Writes an OCI image of one layer; returns the digest of its manifest.
fn layout(folder: &Path) -> Result<String> {
    fs::create_dir_all(folder.join("blobs/sha256"))?;
    fs::write(
        folder.join("oci-layout"),
        r#"{"imageLayoutVersion":"1.0.0"}"#,
    )?;
    let plain = tar()?;
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    std::io::Write::write_all(&mut packed, &plain)?;
    let layer = blob(
        folder,
        &packed.finish()?,
        "application/vnd.oci.image.layer.v1.tar+gzip",
    )?;
    let config = json!({
        "architecture": "amd64", "os": "linux", "config": {},
        "rootfs": { "type": "layers", "diff_ids": [digest(&plain)] },
    });
    let config = blob(
        folder,
        config.to_string().as_bytes(),
        "application/vnd.oci.image.config.v1+json",
    )?;
    let media_type = "application/vnd.oci.image.manifest.v1+json";
    let manifest =
        json!({ "schemaVersion": 2, "mediaType": media_type, "config": config, "layers": [layer] });
    let mut entry = blob(folder, manifest.to_string().as_bytes(), media_type)?;
    entry["annotations"] = json!({ "org.opencontainers.image.ref.name": "v1" });
    let index = json!({ "schemaVersion": 2, "manifests": [entry] });
    fs::write(folder.join("index.json"), index.to_string())?;
    manifest_digest(folder)
}

/// A file larger than any chunk.
fn tar() -> Result<Vec<u8>> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut state = 1_u32;
    let content: Vec<u8> = (0..8 << 20)
        .map(|_| {
            // Any bytes that do not compress well.
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        })
        .collect();
    let mut header = tar::Header::new_gnu();
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    builder.append_data(&mut header, "file", content.as_slice())?;
    Ok(builder.into_inner()?)
}

fn blob(folder: &Path, content: &[u8], media_type: &str) -> Result<Value> {
    let digest = digest(content);
    let name = digest.trim_start_matches("sha256:");
    fs::write(folder.join("blobs/sha256").join(name), content)?;
    Ok(json!({ "mediaType": media_type, "digest": digest, "size": content.len() }))
}

fn digest(content: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(content)))
}

fn manifest_digest(folder: &Path) -> Result<String> {
    let index: Value = serde_json::from_slice(&fs::read(folder.join("index.json"))?)?;
    let digest = index["manifests"][0]["digest"].as_str();
    Ok(digest.context("no manifest in index.json")?.to_owned())
}

fn same_blobs(one: &Path, other: &Path) -> Result<()> {
    let mut count = 0;
    for entry in fs::read_dir(one.join("blobs/sha256"))? {
        let name = entry?.file_name();
        let read = |folder: &Path| fs::read(folder.join("blobs/sha256").join(&name));
        ensure!(
            read(one)? == read(other)?,
            "blob {} has other content",
            name.display()
        );
        count += 1;
    }
    ensure!(count == 3, "{count} blobs");
    Ok(())
}
