//! Content of the local registry, and boot images.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use ::bundle::assemble::{ARCHIVES, BOOT_IMAGES};
use ::bundle::{BundleFile, BundledImage, ImageUse, path_in_registry};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use oci::{MANIFEST_LIMIT_BYTES, Manifest, Reference};
use oci_client::{Client, ClientOptions, Credentials, Login};
use secrecy::ExposeSecret as _;
use serde_json::json;
use service::Error;

use super::sum;
use crate::pod::compose::ComposeProject;
use crate::pod::init::in_url;
use crate::terminal;

/// Folder of extracted archives, which is removed at the end.
const EXTRACTED: &str = "atoll-archives";
const PUBLISH: &str = "PUBLISH_REGISTRY";
const PORT: &str = "5000";
const LOOPBACK: &str = "127.0.0.1";
/// Files for clusters.
const RESULTS: &str = "mirror-results";

/// Whether the bundle has something for the registry.
pub(super) fn has_any(bundle: &BundleFile) -> bool {
    let mut images = bundle.manifest().images.iter();
    images.any(|it| it.used == ImageUse::Registry) || bundle.below(ARCHIVES).next().is_some()
}

/// Extracts boot images; those that are there with the same bytes are kept.
///
/// Errors: no space.
pub(super) fn boot_images(bundle: &BundleFile, dir: &Path) -> Result<(), Error> {
    for member in bundle.below(BOOT_IMAGES) {
        let target = dir.join(&member.path);
        let size = fs::metadata(&target).map(|it| it.len()).ok();
        if size == Some(member.content_size) && sum(&target).as_ref() == Some(&member.sha256) {
            continue;
        }
        terminal::progress(&format!("extracting {}", member.path));
        let extracted = bundle.extract(member, &target);
        extracted.map_err(|e| Error::new(format!("extracting {}", member.path), e.chain()))?;
    }
    terminal::clear_progress();
    Ok(())
}

/// Published port of the registry.
fn port(project: &ComposeProject) -> &str {
    let published = project.setting(PUBLISH).unwrap_or(PORT);
    published.rsplit(':').next().unwrap_or(PORT)
}

/// Pushes images into the running registry.
///
/// Errors: the registry's.
pub(super) fn push_images(
    bundle: &BundleFile,
    project: &ComposeProject,
    dir: &Path,
) -> Result<(), Error> {
    let port = port(project);
    let images = bundle.manifest().images.iter();
    let images: Vec<_> = images.filter(|it| it.used == ImageUse::Registry).collect();
    if images.is_empty() {
        return Ok(());
    }
    let doing = "pushing images into the registry";
    let failed = |error: model::Error| Error::new(doing, error.chain());
    let certificate =
        fs::read(dir.join("secrets/registry.crt")).map_err(|e| Error::new(doing, e))?;
    let client = Client::new(ClientOptions {
        credentials: Credentials::anonymous().with(format!("{LOOPBACK}:{port}"), login(dir)?),
        ca_pem: Some(certificate),
        ..ClientOptions::default()
    })
    .map_err(failed)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| Error::new(doing, e))?;
    for image in images {
        terminal::progress(&format!("pushing {}", image.name));
        let path = path_in_registry(&image.name);
        let pushed = runtime.block_on(push_image(
            bundle,
            image,
            &client,
            &format!("{LOOPBACK}:{port}/{path}"),
        ));
        pushed.map_err(|e| Error::new(format!("pushing {}", image.name), e.chain()))?;
    }
    terminal::clear_progress();
    Ok(())
}

/// The registry's own user.
fn login(dir: &Path) -> Result<Login, Error> {
    let path = dir.join("secrets/registry-password");
    let password = fs::read_to_string(&path)
        .map_err(|e| Error::new(format!("reading {}", path.display()), e))?;
    Ok(Login {
        user: crate::secrets::REGISTRY_USER.to_owned(),
        password: password.trim_end().to_owned().into(),
    })
}

/// Pushes blobs, then manifests, the entries of an index before it.
async fn push_image(
    bundle: &BundleFile,
    image: &BundledImage,
    client: &Client,
    target: &str,
) -> Result<(), model::Error> {
    let target: Reference = target.parse()?;
    if client.manifest_digest(&target).await? == Some(image.digest.clone()) {
        return Ok(());
    }
    let read = |digest: &oci::Digest| -> Result<Manifest, model::Error> {
        let bytes = bundle.bytes(&::bundle::blob_path(digest), MANIFEST_LIMIT_BYTES as u64)?;
        Manifest::parse(Bytes::from(bytes), None)
    };
    let mut manifests = Vec::new();
    let mut pending = vec![image.digest.clone()];
    while let Some(digest) = pending.pop() {
        let manifest = read(&digest)?;
        pending.extend(manifest.required_manifests().cloned());
        manifests.push(manifest);
    }
    for blob in manifests.iter().flat_map(Manifest::required_blobs) {
        let source = bundle.blob(blob);
        let source = source.ok_or_else(|| model::Error::not_found("blob of the bundle", blob))?;
        let sent = Arc::default();
        client
            .provide_blob(&target, blob, &source, None, &sent)
            .await?;
    }
    let (top, entries) = manifests
        .split_first()
        .ok_or_else(|| model::Error::not_found("image", &target))?;
    for manifest in entries.iter().rev() {
        let by_digest = target.with_digest(manifest.digest.clone());
        client.push_manifest(&by_digest, manifest).await?;
    }
    client.push_manifest(&target, top).await
}

/// Checksums of the archives of the bundle.
pub(super) fn archives(bundle: &BundleFile) -> Vec<String> {
    bundle.below(ARCHIVES).map(|it| it.sha256.clone()).collect()
}

/// Publishes the archives as `atoll mirror --from` does, and writes the files for clusters.
///
/// Errors: those of archives and of the registry.
pub(super) fn push_archives(
    bundle: &BundleFile,
    project: &ComposeProject,
    dir: &Path,
    host: &str,
) -> Result<(), Error> {
    let port = port(project);
    let folder = dir.join(EXTRACTED);
    let removed = |e| Error::new(format!("removing {}", folder.display()), e);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(removed)?;
    }
    let members: Vec<_> = bundle.below(ARCHIVES).collect();
    if members.is_empty() {
        return Ok(());
    }
    let set = folder.join("set");
    for member in members {
        let name = member.path.trim_start_matches(ARCHIVES);
        terminal::progress(&format!("extracting {name}"));
        let extracted = bundle.extract(member, &set.join(name));
        extracted.map_err(|e| Error::new(format!("extracting {name}"), e.chain()))?;
    }
    terminal::clear_progress();
    let mirror = |registry: &str, workspace: &Path, more: &[&str]| {
        let doing = "publishing the archives";
        let status = Command::new("/proc/self/exe")
            .arg("mirror")
            .arg("--from")
            .arg(&set)
            .arg(format!("docker://{registry}"))
            .args(more)
            .arg("--dir")
            .arg(workspace)
            .arg("--authfile")
            .arg(folder.join("logins.json"))
            .arg("--ca")
            .arg(dir.join("secrets/registry.crt"))
            .status()
            .map_err(|e| Error::new(doing, e))?;
        if status.success() {
            Ok(())
        } else {
            Err(Error::new(doing, status.to_string()))
        }
    };
    let loopback = format!("{LOOPBACK}:{port}");
    logins(dir, &loopback, &folder.join("logins.json"))?;
    mirror(&loopback, &folder.join("workspace"), &[])?;
    // Clusters know the registry by the host's name, which need not be known here.
    let own = format!("{}:{port}", in_url(host));
    mirror(&own, &dir.join(RESULTS), &["--manifests-only"])?;
    fs::remove_dir_all(&folder).map_err(removed)
}

/// Writes the login of the registry under `address`.
fn logins(dir: &Path, address: &str, target: &Path) -> Result<(), Error> {
    let Login { user, password } = login(dir)?;
    let auth = STANDARD.encode(format!("{user}:{}", password.expose_secret()));
    let text = json!({ "auths": { address: { "auth": auth } } }).to_string();
    crate::file::write_atomic(target, text.as_bytes(), 0o600)
}
