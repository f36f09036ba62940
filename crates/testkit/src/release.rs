//! A platform release in a registry: release image, installer image and the images that hosts check for.
//!
//! The layout is that of real releases: the payload's last layer holds `release-manifests/`, its image-references
//! name every component by digest.

use std::path::{Path, PathBuf};

use model::Error;
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
    /// The agent that hosts run, for `AGENT_DOCKER_IMAGE`.
    pub agent: String,
    /// Writes disks on hosts, for `INSTALLER_IMAGE`.
    pub host_installer: String,
    /// Follows the installation from inside the cluster, for `CONTROLLER_IMAGE`.
    pub controller: String,
}

/// Content of the installer image of a release.
#[derive(Debug, Clone)]
pub struct InstallerProgram {
    /// Path of the program on this machine.
    pub program: PathBuf,
    /// The libraries beside it.
    pub userland: Userland,
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
    let installer = InstallerProgram {
        program: installer_binary.to_owned(),
        userland: Userland::of(installer_binary)?,
    };
    publish_with(client, registry, namespace, &installer, version).await
}

/// [`publish`] with another content of the installer image.
pub async fn publish_with(
    client: &Client,
    registry: &str,
    namespace: &str,
    installer: &InstallerProgram,
    version: &str,
) -> Result<Published, Error> {
    let push = async |name: &str, layers: &[LayerFile], labels: Value| {
        let image = format!("{registry}/{namespace}/{name}:{version}");
        image::push(client, &image, layers, labels).await
    };
    let component = async |name: &str, program: &str| {
        let text = format!("#!/bin/sh\necho {name} of {version}\n");
        let layer = LayerFile::of(vec![LayerEntry::program(program, text.as_bytes())])?;
        push(name, &[base()?, layer], json!({})).await
    };
    let mco = component("machine-config-operator", "usr/bin/machine-config-operator").await?;
    let must_gather = component("must-gather", "usr/bin/gather").await?;
    let agent = component("agent", "usr/bin/agent").await?;
    let host_installer = component("host-installer", "usr/bin/installer").await?;
    let controller = component("controller", "usr/bin/assisted-installer-controller").await?;

    let program = LayerFile::of(vec![
        LayerEntry::file_of("usr/bin/openshift-install", &installer.program),
        LayerEntry::link("usr/bin/openshift-baremetal-install", "openshift-install"),
    ])?;
    let layers = [base()?, installer.userland.layer()?, program];
    let installer = push("installer", &layers, json!({})).await?;

    let references = image_references(
        version,
        &[
            ("baremetal-installer", &installer),
            ("installer", &installer),
            ("machine-config-operator", &mco),
            ("must-gather", &must_gather),
        ],
    );
    let labels =
        json!({ "io.openshift.release": version, "io.openshift.release.base-image-digest": "" });
    let release = push(
        "release",
        &[base()?, payload(version, &references)?],
        labels,
    )
    .await?;
    Ok(Published {
        version: version.to_owned(),
        release,
        installer,
        mco,
        must_gather,
        agent,
        host_installer,
        controller,
    })
}

/// Base layer of every image.
fn base() -> Result<LayerFile, Error> {
    let text = b"NAME=\"Atoll test image\"\nID=atoll\n";
    LayerFile::of(vec![LayerEntry::file("etc/os-release", text)])
}

fn payload(version: &str, references: &Value) -> Result<LayerFile, Error> {
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
    LayerFile::of(vec![
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

fn image_references(version: &str, images: &[(&str, &String)]) -> Value {
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
