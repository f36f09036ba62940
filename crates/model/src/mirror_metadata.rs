//! Metadata of mirror runs, in archives, folders and registries.
//!
//! Source: oc-mirror, `Metadata` of `mirror.openshift.io/v1alpha2`. It refuses metadata with unknown members.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::image_set::{IncludePackage, MirrorSelection};
use crate::wire::{null_as_default, wire_enum};

/// The `apiVersion` of metadata.
pub const API_VERSION: &str = "mirror.openshift.io/v1alpha2";
/// The `kind` of metadata.
pub const KIND: &str = "Metadata";

/// Past mirrors of an image set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MirrorMetadata {
    pub kind: String,
    pub api_version: String,
    /// Id of the set, over all its runs.
    pub uid: Uuid,
    /// Whether the set is mirrored once, without history.
    pub single_use: bool,
    /// The last run.
    pub past_mirror: PastMirror,
    /// All images that are still needed, also those of the last run.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub past_associations: Vec<Association>,
}

/// A run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PastMirror {
    /// Units: seconds since 1970.
    pub timestamp: i64,
    /// 1 for the first.
    pub sequence: u64,
    /// The image set.
    pub mirror: MirrorSelection,
    /// Catalogs of the run, with the start versions of later runs.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub operators: Vec<CatalogStart>,
    /// Release channels of the run, with the start versions of later runs.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub platforms: Vec<ChannelStart>,
    /// The images of this run.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub associations: Vec<Association>,
}

/// A catalog of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CatalogStart {
    /// Its name in the target.
    pub catalog: String,
    /// The source by digest; empty where the configuration has the digest.
    pub image_pin: String,
    /// Packages with their channels, each with its lowest mirrored version. None for a whole catalog.
    #[serde(
        serialize_with = "crate::wire::null_when_empty",
        deserialize_with = "null_as_default"
    )]
    pub packages: Vec<IncludePackage>,
}

/// A release channel of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ChannelStart {
    pub channel: String,
    /// The lowest mirrored version.
    pub min_version: String,
}

/// A mirrored image.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Association {
    /// The source by digest; the manifest of an index has its digest only.
    pub name: String,
    /// The repository, without a host; after a direct copy, the whole reference in the target.
    pub path: String,
    /// Its digest.
    pub id: String,
    /// The tag; empty for the manifests of an index.
    pub tag_symlink: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: ImageType,
    /// Of an index: the digests of its manifests.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub manifest_digests: Vec<String>,
    /// Of an image: the digests of its layers, and that of its configuration at the end.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub layer_digests: Vec<String>,
}

wire_enum! {
    /// Values of an association's `type`, and of entries in deletion lists, the only ones with `helmImage`.
    pub enum ImageType {
        Generic = "generic",
        OcpRelease = "ocpRelease",
        OcpReleaseContent = "ocpReleaseContent",
        CincinnatiGraph = "cincinnatiGraph",
        OperatorCatalog = "operatorCatalog",
        OperatorBundle = "operatorBundle",
        OperatorRelatedImage = "operatorRelatedImage",
        HelmImage = "helmImage",
    }
}

impl MirrorMetadata {
    /// The metadata of a set's first run.
    pub fn new(uid: Uuid, single_use: bool) -> Self {
        Self {
            kind: KIND.to_owned(),
            api_version: API_VERSION.to_owned(),
            uid,
            single_use,
            past_mirror: PastMirror::default(),
            past_associations: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image_set::{ImageSelection, IncludeBundle, IncludeChannel, OperatorSelection};

    fn sample() -> MirrorMetadata {
        let channel = IncludeChannel {
            name: "stable".into(),
            versions: IncludeBundle {
                min_version: "1.9.0".into(),
                ..IncludeBundle::default()
            },
        };
        let package = IncludePackage {
            name: "op".into(),
            channels: vec![channel],
            ..IncludePackage::default()
        };
        let mut metadata = MirrorMetadata::new(Uuid::nil(), false);
        metadata.past_mirror = PastMirror {
            timestamp: 1_795_241_937,
            sequence: 1,
            mirror: MirrorSelection {
                operators: vec![OperatorSelection {
                    catalog: "r:5000/acme/index:v1".into(),
                    full: true,
                    ..OperatorSelection::default()
                }],
                additional_images: vec![ImageSelection {
                    name: "r:5000/misc/tool:1.0".into(),
                    target_repo: "elsewhere".into(),
                    ..ImageSelection::default()
                }],
                ..MirrorSelection::default()
            },
            operators: vec![CatalogStart {
                catalog: "r:5000/acme/index:v1".into(),
                image_pin: "r:5000/acme/index@sha256:00".into(),
                packages: vec![package],
            }],
            platforms: Vec::new(),
            associations: vec![Association {
                name: "r:5000/misc/tool@sha256:01".into(),
                path: "misc/tool".into(),
                id: "sha256:01".into(),
                tag_symlink: "1.0".into(),
                kind: ImageType::Generic,
                manifest_digests: Vec::new(),
                layer_digests: vec!["sha256:02".into()],
            }],
        };
        metadata
    }

    #[test]
    fn metadata_has_the_form_of_oc_mirror() {
        insta::assert_snapshot!(serde_json::to_string(&sample()).unwrap(), @r#"{"kind":"Metadata","apiVersion":"mirror.openshift.io/v1alpha2","uid":"00000000-0000-0000-0000-000000000000","singleUse":false,"pastMirror":{"timestamp":1795241937,"sequence":1,"mirror":{"platform":{},"operators":[{"packages":null,"catalog":"r:5000/acme/index:v1","full":true}],"additionalImages":[{"name":"r:5000/misc/tool:1.0"}],"helm":{}},"operators":[{"catalog":"r:5000/acme/index:v1","imagePin":"r:5000/acme/index@sha256:00","packages":[{"name":"op","channels":[{"name":"stable","minVersion":"1.9.0"}]}]}],"associations":[{"name":"r:5000/misc/tool@sha256:01","path":"misc/tool","id":"sha256:01","tagSymlink":"1.0","type":"generic","layerDigests":["sha256:02"]}]}}"#);
    }

    #[test]
    fn metadata_round_trips() {
        let text = serde_json::to_string(&sample()).unwrap();
        let mut expected = sample();
        // Of a later version of the configuration, and not for the peer's eyes.
        expected.past_mirror.mirror.additional_images[0]
            .target_repo
            .clear();
        assert_eq!(
            serde_json::from_str::<MirrorMetadata>(&text).unwrap(),
            expected
        );
    }
}
