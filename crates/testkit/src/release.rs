//! A platform release in a registry: release image, installer image and the images that hosts check for.
//!
//! The layout is that of real releases: the payload's last layer holds `release-manifests/`, its image-references
//! name every component by digest.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use model::Error;
use model::release_payload::{BOOT_IMAGES, COMPONENTS, ComponentImages};
use oci::{Algorithm, Hasher};
use oci_client::Client;
use serde_json::{Value, json};

use self::image::{LayerEntry, LayerFile};

mod image;
mod userland;

pub use userland::Userland;

/// The published images, pinned by digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Full version of the release.
    pub version: String,
    /// The release image.
    pub release: String,
    /// Holds the installer program.
    pub installer: String,
    /// Machine config operator.
    pub mco: String,
    /// must-gather.
    pub must_gather: String,
    /// Images that hosts run.
    pub components: ComponentImages,
}

/// Content of the installer image of a release.
#[derive(Debug, Clone)]
pub struct InstallerProgram {
    /// Path of the program on this machine.
    pub program: PathBuf,
    /// The libraries beside it.
    pub userland: Userland,
}

impl InstallerProgram {
    /// The program at `path`, with the libraries that it needs here.
    ///
    /// Errors: `Internal` when the program or a library cannot be read.
    pub fn of(path: &Path) -> Result<Self, Error> {
        Ok(Self {
            program: path.to_owned(),
            userland: Userland::of(path)?,
        })
    }
}

/// Content of a release that differs between tests.
#[derive(Debug, Clone)]
pub struct ReleaseContent {
    /// The installer image's.
    pub installer: InstallerProgram,
    /// The live image in `machine-os-images`; without one, the release has no such image.
    pub live_image: Option<PathBuf>,
}

/// Publishes a release of `version` below `namespace` of `registry` (`host:port`). The installer image holds the
/// program at `installer_binary` and the libraries that it needs. The same release may be published again.
///
/// Errors: those of the client, and `Internal` when the program or a library cannot be read.
pub async fn publish(
    client: &Client,
    registry: &str,
    namespace: &str,
    installer_binary: &Path,
    version: &str,
) -> Result<Published, Error> {
    let installer = InstallerProgram::of(installer_binary)?;
    publish_with(client, registry, namespace, &installer, version).await
}

/// [`publish`] with another installer image.
pub async fn publish_with(
    client: &Client,
    registry: &str,
    namespace: &str,
    installer: &InstallerProgram,
    version: &str,
) -> Result<Published, Error> {
    let content = ReleaseContent {
        installer: installer.clone(),
        live_image: None,
    };
    publish_content(client, registry, namespace, &content, version).await
}

/// [`publish`] with another content.
pub async fn publish_content(
    client: &Client,
    registry: &str,
    namespace: &str,
    content: &ReleaseContent,
    version: &str,
) -> Result<Published, Error> {
    let installer = &content.installer;
    let push = async |name: &str, layers: &[LayerFile]| {
        let image = format!("{registry}/{namespace}/{name}:{version}");
        image::push(client, &image, layers, json!({})).await
    };
    let component = async |name: &str, program: &str| {
        let text = format!("#!/bin/sh\necho {name} of {version}\n");
        let layer = LayerFile::of(vec![LayerEntry::program(program, text.as_bytes())])?;
        push(name, &[base()?, layer]).await
    };
    let mco = component("machine-config-operator", "usr/bin/machine-config-operator").await?;
    let must_gather = component("must-gather", "usr/bin/gather").await?;
    let [agent, host_installer, controller] = COMPONENTS.map(|one| one.name);
    let components = ComponentImages {
        agent: component(agent, "usr/bin/agent").await?,
        installer: component(host_installer, "usr/bin/installer").await?,
        controller: component(controller, "usr/bin/assisted-installer-controller").await?,
    };

    let program = LayerFile::of(vec![
        LayerEntry::file_of("usr/bin/openshift-install", &installer.program),
        LayerEntry::link("usr/bin/openshift-baremetal-install", "openshift-install"),
    ])?;
    let layers = [base()?, installer.userland.layer()?, program];
    let installer = push("installer", &layers).await?;

    let live_images = match &content.live_image {
        Some(path) => {
            let sum = sha256(path).map_err(|e| Error::internal("reading a live image", e))?;
            let layer = LayerFile::of(vec![
                LayerEntry::file_of("coreos/coreos-x86_64.iso", path),
                LayerEntry::file("coreos/coreos-x86_64.iso.sha256", sum.as_bytes()),
            ])?;
            Some(push("machine-os-images", &[base()?, layer]).await?)
        }
        None => None,
    };
    let mut images: Vec<(&str, &str)> = vec![
        ("baremetal-installer", &installer),
        ("installer", &installer),
        ("machine-config-operator", &mco),
        ("must-gather", &must_gather),
    ];
    let names = COMPONENTS.iter().map(|one| one.name);
    images.extend(names.zip(components.references()));
    let live_images = live_images.iter();
    images.extend(live_images.map(|image| ("machine-os-images", image.as_str())));
    images.sort_unstable();
    // As mirroring tools tag payloads.
    let release = format!("{registry}/{namespace}/release:{version}-x86_64");
    let release = publish_payload(client, &release, version, &images).await?;
    Ok(Published {
        version: version.to_owned(),
        release,
        installer,
        mco,
        must_gather,
        components,
    })
}

/// Publishes the image `release` of `version`, a payload that names `images` by component. Returns it by digest.
///
/// Errors: those of the client.
pub async fn publish_payload(
    client: &Client,
    release: &str,
    version: &str,
    images: &[(&str, &str)],
) -> Result<String, Error> {
    let stream = stream(&format!("418.94.{version}")).to_string();
    let boot_images = json!({ "releaseVersion": version, "stream": stream });
    publish_payload_with(client, release, version, images, &boot_images).await
}

/// Metadata of a stream whose operating system has this version.
pub fn stream(version: &str) -> Value {
    let metal = json!({ "release": version, "formats": {} });
    json!({ "architectures": { "x86_64": { "artifacts": { "metal": metal } } } })
}

/// [`publish_payload`] with other data in the ConfigMap of its boot images.
///
/// Errors: those of the client.
pub async fn publish_payload_with(
    client: &Client,
    release: &str,
    version: &str,
    images: &[(&str, &str)],
    boot_images: &Value,
) -> Result<String, Error> {
    let labels =
        json!({ "io.openshift.release": version, "io.openshift.release.base-image-digest": "" });
    let layers = [
        base()?,
        payload(version, &image_references(version, images), boot_images)?,
    ];
    image::push(client, release, &layers, labels).await
}

/// Publishes an operator catalog: one file in the folder that its label names.
///
/// Errors: as [`publish`].
pub async fn publish_catalog(client: &Client, image: &str, file: &str) -> Result<String, Error> {
    let labels = json!({ "operators.operatorframework.io.index.configs.v1": "/configs" });
    let catalog = LayerEntry::file("configs/catalog.yaml", file.as_bytes());
    let layers = [base()?, LayerFile::of(vec![catalog])?];
    image::push(client, image, &layers, labels).await
}

/// SHA-256 of a file, in hexadecimal.
fn sha256(path: &Path) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let mut hasher = Hasher::new(Algorithm::Sha256);
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish().hex().to_owned()),
            read => hasher.update(&buffer[..read]),
        }
    }
}

/// Base layer of every image.
fn base() -> Result<LayerFile, Error> {
    let text = b"NAME=\"Atoll test image\"\nID=atoll\n";
    LayerFile::of(vec![LayerEntry::file("etc/os-release", text)])
}

fn payload(version: &str, references: &Value, boot_images: &Value) -> Result<LayerFile, Error> {
    let metadata = json!({
        "kind": "cincinnati-metadata-v0",
        "version": version,
        "previous": [],
        "metadata": {},
    });
    let os_image = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: machine-config-osimageurl\n  \
         namespace: openshift-machine-config-operator\ndata:\n  releaseVersion: {version}\n"
    );
    let metadata_of = json!({
        "name": "coreos-bootimages", "namespace": "openshift-machine-config-operator",
    });
    // JSON is YAML, too.
    let boot_images = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata_of, "data": boot_images,
    });
    LayerFile::of(vec![
        LayerEntry::file(BOOT_IMAGES, boot_images.to_string().as_bytes()),
        LayerEntry::file(
            "release-manifests/image-references",
            references.to_string().as_bytes(),
        ),
        LayerEntry::file(
            "release-manifests/release-metadata",
            metadata.to_string().as_bytes(),
        ),
        LayerEntry::file(
            "release-manifests/0000_80_machine-config_05_osimageurl.yaml",
            os_image.as_bytes(),
        ),
    ])
}

fn image_references(version: &str, images: &[(&str, &str)]) -> Value {
    let tags: Vec<Value> = images
        .iter()
        .map(|(name, image)| json!({ "name": name, "from": { "kind": "DockerImage", "name": image } }))
        .collect();
    json!({
        "kind": "ImageStream",
        "apiVersion": "image.openshift.io/v1",
        "metadata": { "name": version },
        "spec": { "lookupPolicy": { "local": false }, "tags": tags },
    })
}
