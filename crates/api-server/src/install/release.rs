//! What a release image says about itself.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::cluster::Cluster;
use secrecy::SecretString;
use serde::Deserialize;

use super::context::{Context, Failure};
use super::registry::{Images, Scratch, Taken};

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

/// Release images read so far, by their digest-pinned reference: what they say never changes.
#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<BTreeMap<String, ReleaseInfo>>);

impl Cache {
    fn get(&self, image: &str) -> Option<ReleaseInfo> {
        self.lock().get(image).cloned()
    }

    fn put(&self, image: &str, info: &ReleaseInfo) {
        let mut known = self.lock();
        if known.len() >= REMEMBERED {
            known.pop_first();
        }
        known.insert(image.to_owned(), info.clone());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, ReleaseInfo>> {
        // Nothing that holds the lock can leave the map half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a release image lists its images.
const IMAGE_REFERENCES: &str = "release-manifests/image-references";
/// Releases that are remembered; more than a site installs at a time.
const REMEMBERED: usize = 64;

/// What the release image `image` says, read from where its mirrors have it.
///
/// Errors: the reason with registry and image, when no place answers or what it answers cannot be used.
pub(super) async fn read(
    ctx: &Context,
    image: &str,
    pull_secret: &SecretString,
) -> Result<ReleaseInfo, Failure> {
    if let Some(known) = ctx.releases().get(image) {
        return Ok(known);
    }
    let images = Images::new(ctx, pull_secret)?;
    let scratch = Scratch::make(&ctx.work_folders()).await?;
    let path = scratch.0.join("image-references");
    let candidates = images.candidates(image);
    let limit = Some(ctx.options().release_timeout);
    let taken = images
        .take(&candidates, &[IMAGE_REFERENCES], &path, limit)
        .await
        .map_err(|why| Failure::new(format!("the release image cannot be read: {why}")))?;
    let json = super::blocking(move || {
        std::fs::read(path)
            .map_err(|error| Failure::new(format!("the release image cannot be read: {error}")))
    })
    .await?;
    let info = parse(&json, pinned(image, &taken))?;
    if image.contains('@') {
        ctx.releases().put(image, &info);
    }
    Ok(info)
}

/// `image` with the digest that it was found to have.
fn pinned(image: &str, taken: &Taken) -> String {
    match (image.split_once('@'), &taken.image.digest) {
        (None, Some(digest)) => {
            // A colon behind the last slash starts a tag, one before it a port.
            let name = image.rfind('/').map_or(0, |slash| slash + 1);
            let end = image[name..]
                .find(':')
                .map_or(image.len(), |colon| name + colon);
            format!("{}@{digest}", &image[..end])
        }
        _ => image.to_owned(),
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = r#"{"kind":"ImageStream","metadata":{"name":"4.18.7"},"spec":{"tags":[
        {"name":"machine-config-operator","from":{"kind":"DockerImage","name":"r/mco@sha256:1"}},
        {"name":"must-gather","from":{"kind":"DockerImage","name":"r/gather@sha256:2"}},
        {"name":"baremetal-installer","from":{"kind":"DockerImage","name":"r/installer@sha256:3"}},
        {"name":"other","from":{"kind":"DockerImage","name":"r/other@sha256:4"}}]}}"#;

    #[test]
    fn the_images_are_read() {
        let info = parse(STREAM.as_bytes(), "r/release@sha256:0".to_owned()).unwrap();
        assert_eq!(info.version, "4.18.7");
        assert_eq!(info.mco_image, "r/mco@sha256:1");
        assert_eq!(info.must_gather_image, "r/gather@sha256:2");
        assert_eq!(info.installers.len(), 1);
    }

    #[test]
    fn what_is_missing_is_named() {
        for (text, expected) in [
            (STREAM.replace("must-gather", "x"), "must-gather"),
            (STREAM.replace("baremetal-installer", "x"), "installer"),
            (STREAM.replace("ImageStream", "List"), "List"),
            ("{".to_owned(), "image-references"),
        ] {
            let failure = parse(text.as_bytes(), "r/release@sha256:0".to_owned()).unwrap_err();
            assert!(failure.reason.contains(expected), "{failure}");
            assert!(failure.reason.contains("r/release@sha256:0"), "{failure}");
        }
    }
}
