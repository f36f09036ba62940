//! Metadata of a release image that is stored beside the record of its cluster.

use ::preparation::ReleaseInfo;
use model::release_payload::ComponentImages;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Images of the release; empty before it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct KnownRelease {
    /// Machine config operator.
    pub(crate) machine_config_operator: String,
    /// must-gather of the platform.
    pub(crate) must_gather: String,
    /// Images that hosts run.
    pub(crate) components: ComponentImages,
}

impl From<&ReleaseInfo> for KnownRelease {
    fn from(info: &ReleaseInfo) -> Self {
        Self {
            machine_config_operator: info.mco_image.clone(),
            must_gather: info.must_gather_image.clone(),
            components: info.components.clone(),
        }
    }
}

impl KnownRelease {
    /// The stored metadata; empty if it is unreadable, until the next preparation reads the release again.
    pub(crate) fn stored(json: Option<Value>) -> Self {
        json.and_then(|json| serde_json::from_value(json).ok())
            .unwrap_or_default()
    }

    /// Whether `image` is one of its images.
    pub(crate) fn holds(&self, image: &str) -> bool {
        let mut images = self.components.known();
        !image.is_empty()
            && (self.machine_config_operator == image
                || self.must_gather == image
                || images.any(|one| one == image))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn older_metadata_is_read() {
        let older = json!({ "machine_config_operator": "r/mco", "must_gather": "r/gather" });
        let release = KnownRelease::stored(Some(older));
        assert!(release.holds("r/mco") && release.holds("r/gather"));
        assert!(!release.holds("") && !release.holds("r/else"));
        assert_eq!(KnownRelease::stored(None), KnownRelease::default());
        assert_eq!(
            KnownRelease::stored(Some(json!([]))),
            KnownRelease::default()
        );
    }
}
