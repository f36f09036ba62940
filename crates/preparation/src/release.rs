//! Metadata of release images.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::release_payload::{COMPONENTS, ComponentImages, ImageReferences};

use crate::failure::PreparationFailure;

/// Version and images of a release.
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
    /// Images with installers, by tag: `installer`, `baremetal-installer`.
    pub installers: BTreeMap<String, String>,
    /// Images that hosts run; none in releases before 4.12.
    pub components: ComponentImages,
}

impl ReleaseInfo {
    /// The release of `DUMMY_IGNITION`, the test mode without registries: made-up images beside the release image, so that
    /// a pull secret for it covers them.
    pub(crate) fn dummy(release_image: &str) -> Self {
        let folder = release_image
            .rfind('/')
            .map_or("", |slash| &release_image[..=slash]);
        let [agent, installer, controller] =
            COMPONENTS.map(|component| format!("{folder}{}:dummy", component.name));
        Self {
            release_image: release_image.to_owned(),
            components: ComponentImages {
                agent,
                installer,
                controller,
            },
            ..Self::default()
        }
    }
}

/// Cache of release metadata by digest-pinned reference, and so immutable.
#[derive(Debug, Default)]
pub(crate) struct ReleaseCache(Mutex<BTreeMap<String, ReleaseInfo>>);

impl ReleaseCache {
    pub(crate) fn get(&self, image: &str) -> Option<ReleaseInfo> {
        self.lock().get(image).cloned()
    }

    pub(crate) fn put(&self, image: &str, info: &ReleaseInfo) {
        let mut known = self.lock();
        if known.len() >= CACHE_CAPACITY {
            known.pop_first();
        }
        known.insert(image.to_owned(), info.clone());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, ReleaseInfo>> {
        // The map is consistent after a panic: each change is one call.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Capacity of the cache: more releases than a site installs at a time.
const CACHE_CAPACITY: usize = 64;

/// Reads the image stream of a release.
pub(crate) fn parse(json: &[u8], release_image: String) -> Result<ReleaseInfo, PreparationFailure> {
    let broken = |why: &str| {
        PreparationFailure::new(format!(
            "release image {release_image} has an invalid image-references file: {why}"
        ))
    };
    let references = ImageReferences::parse(json).map_err(|reason| broken(&reason))?;
    let required = |name: &str| {
        let image = references.image(name).map(str::to_owned);
        image.ok_or_else(|| broken(&format!("{name} is missing")))
    };
    let (mco_image, must_gather_image) = (
        required("machine-config-operator")?,
        required("must-gather")?,
    );
    let components = references.components();
    let ImageReferences { version, images } = references;
    let installers: BTreeMap<String, String> = images
        .into_iter()
        .filter(|(name, _)| matches!(name.as_str(), "installer" | "baremetal-installer"))
        .collect();
    if installers.is_empty() {
        return Err(broken("installer and baremetal-installer are missing"));
    }
    Ok(ReleaseInfo {
        release_image,
        version,
        mco_image,
        must_gather_image,
        installers,
        components,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = r#"{"kind":"ImageStream","metadata":{"name":"4.18.7"},"spec":{"tags":[
        {"name":"machine-config-operator","from":{"kind":"DockerImage","name":"r/mco@sha256:1"}},
        {"name":"must-gather","from":{"kind":"DockerImage","name":"r/gather@sha256:2"}},
        {"name":"baremetal-installer","from":{"kind":"DockerImage","name":"r/installer@sha256:3"}},
        {"name":"agent-installer-node-agent","from":{"kind":"DockerImage","name":"r/agent@sha256:5"}},
        {"name":"other","from":{"kind":"DockerImage","name":"r/other@sha256:4"}}]}}"#;

    #[test]
    fn image_references_are_parsed() {
        let info = parse(STREAM.as_bytes(), "r/release@sha256:0".to_owned()).unwrap();
        assert_eq!(info.version, "4.18.7");
        assert_eq!(info.mco_image, "r/mco@sha256:1");
        assert_eq!(info.must_gather_image, "r/gather@sha256:2");
        assert_eq!(info.installers.len(), 1);
        assert_eq!(info.components.references(), ["r/agent@sha256:5", "", ""]);
    }

    #[test]
    fn a_release_that_is_not_read_has_all_components() {
        let info = ReleaseInfo::dummy("r:5000/ns/release:4.18");
        assert_eq!(info.components.missing().count(), 0);
        let agent = "r:5000/ns/agent-installer-node-agent:dummy";
        assert_eq!(info.components.agent, agent);
    }

    #[test]
    fn errors_name_the_missing_image() {
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
