//! What a release image says about itself.

use std::collections::BTreeMap;
use std::sync::Mutex;

use model::cluster::Cluster;
use serde::Deserialize;

use super::context::Failure;

/// The images of a release that an installation names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReleaseInfo {
    /// The release image itself, pinned by digest.
    pub release_image: String,
    /// Full version, `4.18.7`.
    pub version: String,
    /// Machine config operator, for `mco_image`.
    pub mco_image: String,
    /// must-gather of the platform, for the key `ocp` of `must_gather_image`.
    pub must_gather_image: String,
    /// Images that hold installer programs, by tag: `installer`, `baremetal-installer`.
    pub installers: BTreeMap<String, String>,
}

impl ReleaseInfo {
    /// What stands in for a release that is never read.
    pub(super) fn made_up(cluster: &Cluster) -> Self {
        Self {
            release_image: cluster.ocp_release_image.clone(),
            version: cluster.openshift_version.clone(),
            ..Self::default()
        }
    }
}

/// Release images read so far, by their digest-pinned reference.
#[derive(Debug, Default)]
pub(super) struct Cache(pub(super) Mutex<BTreeMap<String, ReleaseInfo>>);

/// `release-manifests/image-references`: an image stream.
#[derive(Deserialize)]
struct ImageReferences {
    kind: String,
    metadata: Metadata,
    spec: Spec,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Deserialize)]
struct Spec {
    tags: Vec<Tag>,
}

#[derive(Deserialize)]
struct Tag {
    name: String,
    from: From,
}

#[derive(Deserialize)]
struct From {
    kind: String,
    name: String,
}

/// Reads the image stream of a release.
fn parse(json: &[u8], release_image: String) -> Result<ReleaseInfo, Failure> {
    let broken = |why: &str| {
        Failure::new(format!(
            "release image {release_image} holds an image-references file that cannot be used: {why}"
        ))
    };
    let stream: ImageReferences =
        serde_json::from_slice(json).map_err(|error| broken(&error.to_string()))?;
    if stream.kind != "ImageStream" {
        return Err(broken(&format!("its kind is {}", stream.kind)));
    }
    let mut images: BTreeMap<String, String> = stream
        .spec
        .tags
        .into_iter()
        .filter(|tag| tag.from.kind == "DockerImage")
        .map(|tag| (tag.name, tag.from.name))
        .collect();
    let mut required = |name: &str| {
        images
            .remove(name)
            .ok_or_else(|| broken(&format!("it names no {name}")))
    };
    let mco_image = required("machine-config-operator")?;
    let must_gather_image = required("must-gather")?;
    images.retain(|name, _| matches!(name.as_str(), "installer" | "baremetal-installer"));
    if images.is_empty() {
        return Err(broken("it names neither installer nor baremetal-installer"));
    }
    Ok(ReleaseInfo {
        version: stream.metadata.name,
        mco_image,
        must_gather_image,
        installers: images,
        release_image,
    })
}
