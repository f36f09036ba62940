//! Release payloads: their files, and the images that they name.
//!
//! Source: openshift/oc, `pkg/cli/admin/release`; the images that hosts run: openshift/installer,
//! `data/data/agent/files/usr/local/bin/get-container-images.sh`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Path of the images of the components, as an ImageStream.
pub const IMAGE_REFERENCES: &str = "release-manifests/image-references";

/// Path of the metadata of disk images and live images, as a ConfigMap.
pub const BOOT_IMAGES: &str = "release-manifests/0000_50_installer_coreos-bootimages.yaml";

/// Stream of boot images in releases without a default one: that of the default in earlier releases.
const PREFERRED_STREAM: &str = "rhel-9";
/// Streams of a release at most; releases have one or two.
const MAX_STREAMS: usize = 16;
/// Longest name of a stream. Units: bytes.
const MAX_STREAM_NAME: usize = 63;

/// Content of [`IMAGE_REFERENCES`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageReferences {
    /// Full version of the release; empty if the file has none.
    pub version: String,
    /// Names and images of the components, in the order of the file.
    pub images: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct ImageStream {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    metadata: StreamMetadata,
    #[serde(default)]
    spec: StreamSpec,
}

#[derive(Default, Deserialize)]
struct StreamMetadata {
    #[serde(default)]
    name: String,
}

#[derive(Default, Deserialize)]
struct StreamSpec {
    #[serde(default)]
    tags: Vec<StreamTag>,
}

#[derive(Deserialize)]
struct StreamTag {
    name: String,
    from: TagSource,
}

#[derive(Deserialize)]
struct TagSource {
    #[serde(default)]
    kind: String,
    name: String,
}

impl ImageReferences {
    /// Reads the file.
    ///
    /// Errors: why it is malformed; it names no images.
    pub fn parse(json: &[u8]) -> Result<Self, String> {
        let stream: ImageStream = serde_json::from_slice(json).map_err(|e| e.to_string())?;
        if !matches!(stream.kind.as_str(), "" | "ImageStream") {
            return Err(format!("its kind is {}, not ImageStream", stream.kind));
        }
        let tags = stream.spec.tags.into_iter();
        let tags = tags.filter(|tag| matches!(tag.from.kind.as_str(), "" | "DockerImage"));
        let images: Vec<_> = tags.map(|tag| (tag.name, tag.from.name)).collect();
        if images.is_empty() {
            return Err("it names no images".to_owned());
        }
        Ok(Self {
            version: stream.metadata.name,
            images,
        })
    }

    /// The image of a component.
    pub fn image(&self, component: &str) -> Option<&str> {
        let mut images = self.images.iter();
        let found = images.find(|(name, _)| name == component);
        found.map(|(_, image)| image.as_str())
    }

    /// The images that hosts run to install a cluster.
    pub fn components(&self) -> ComponentImages {
        let [agent, installer, controller] =
            COMPONENTS.map(|one| self.image(one.name).unwrap_or_default().to_owned());
        ComponentImages {
            agent,
            installer,
            controller,
        }
    }
}

/// Content of [`BOOT_IMAGES`].
#[derive(Debug, Clone, Deserialize)]
pub struct BootImageManifest {
    /// Its data.
    pub data: BootImageStreams,
}

/// Metadata of streams, as JSON texts. Source: openshift/installer, `hack/build-coreos-manifest.go`.
#[derive(Debug, Clone, Deserialize)]
pub struct BootImageStreams {
    /// The default stream.
    pub stream: Option<String>,
    /// All streams by name, the default one included; from 4.22 on.
    pub streams: Option<String>,
}

/// An operating system that a release offers to its hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct OsStream {
    /// Its name, as in `osImageStream` of an install-config; empty in releases that name none.
    pub name: String,
    /// Metadata of its images.
    pub metadata: Value,
}

impl BootImageStreams {
    /// All streams, the default one first: `stream`, or else that of [`PREFERRED_STREAM`] or the first by name.
    ///
    /// Errors: the message for malformed metadata.
    pub fn all(&self) -> Result<Vec<OsStream>, String> {
        let streams = self.streams.as_deref().map(serde_json::from_str);
        let streams = streams.transpose().map_err(|e| format!("streams: {e}"))?;
        let mut streams: BTreeMap<String, Value> = streams.unwrap_or_default();
        if streams.len() > MAX_STREAMS {
            return Err(format!("streams: there are more than {MAX_STREAMS}"));
        }
        if let Some(name) = streams.keys().find(|name| !is_stream_name(name)) {
            let shown: String = name.chars().take(MAX_STREAM_NAME).collect();
            return Err(format!("streams: {shown:?} is no name of a stream"));
        }
        let default = if let Some(text) = &self.stream {
            let metadata = serde_json::from_str(text).map_err(|e| format!("stream: {e}"))?;
            let name = streams.iter().find(|(_, other)| **other == metadata);
            let name = name.map(|(name, _)| name.clone()).unwrap_or_default();
            streams.remove(&name);
            OsStream { name, metadata }
        } else {
            let preferred = streams.remove_entry(PREFERRED_STREAM);
            let (name, metadata) = preferred
                .or_else(|| streams.pop_first())
                .ok_or("it has neither stream nor streams")?;
            OsStream { name, metadata }
        };
        let others = streams.into_iter();
        let others = others.map(|(name, metadata)| OsStream { name, metadata });
        Ok(std::iter::once(default).chain(others).collect())
    }
}

/// The installer names the only stream of OKD by an empty text.
fn is_stream_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    name.len() <= MAX_STREAM_NAME && name.chars().all(is_part)
}

/// Images that hosts run to install a cluster: those that the operator sets, else those of the release. Empty where one
/// is unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ComponentImages {
    /// The discovery agent.
    pub agent: String,
    /// Writes the disks of hosts.
    pub installer: String,
    /// Follows the installation from inside the new cluster, which pulls it, too.
    pub controller: String,
}

/// A component: where its image comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Component {
    /// Setting of the operator.
    pub setting: &'static str,
    /// Name in the payload of a release.
    pub name: &'static str,
}

/// All components, in the order of the members of [`ComponentImages`].
pub const COMPONENTS: [Component; 3] = [
    Component {
        setting: "AGENT_DOCKER_IMAGE",
        name: "agent-installer-node-agent",
    },
    Component {
        setting: "INSTALLER_IMAGE",
        name: "agent-installer-orchestrator",
    },
    // The whole controller, despite its name.
    Component {
        setting: "CONTROLLER_IMAGE",
        name: "agent-installer-csr-approver",
    },
];

impl ComponentImages {
    /// The references, in the order of [`COMPONENTS`].
    pub fn references(&self) -> [&str; 3] {
        [&self.agent, &self.installer, &self.controller]
    }

    /// The known references.
    pub fn known(&self) -> impl Iterator<Item = &str> {
        let all = self.references().into_iter();
        all.filter(|reference| !reference.is_empty())
    }

    /// The components without image.
    pub fn missing(&self) -> impl Iterator<Item = &'static Component> {
        let all = COMPONENTS.iter().zip(self.references());
        all.filter(|(_, reference)| reference.is_empty())
            .map(|(component, _)| component)
    }

    /// These images, and `others` where one is unknown.
    #[must_use]
    pub fn or(&self, others: &Self) -> Self {
        let either = |own: &String, other: &String| {
            let chosen = if own.is_empty() { other } else { own };
            chosen.clone()
        };
        Self {
            agent: either(&self.agent, &others.agent),
            installer: either(&self.installer, &others.installer),
            controller: either(&self.controller, &others.controller),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(tags: &str) -> Result<ImageReferences, String> {
        let text = format!(
            r#"{{"kind":"ImageStream","metadata":{{"name":"4.18.7"}},"spec":{{"tags":{tags}}}}}"#
        );
        ImageReferences::parse(text.as_bytes())
    }

    #[test]
    fn images_are_found_by_component() {
        let read = parsed(
            r#"[{"name":"cli","from":{"kind":"DockerImage","name":"r/cli@sha256:1"}},
                {"name":"alias","from":{"kind":"ImageStreamTag","name":"cli:latest"}},
                {"name":"agent-installer-node-agent","from":{"name":"r/agent"}}]"#,
        );
        let read = read.unwrap();
        assert_eq!((read.version.as_str(), read.images.len()), ("4.18.7", 2));
        assert_eq!(read.image("cli"), Some("r/cli@sha256:1"));
        assert_eq!(read.image("alias"), None);
        assert_eq!(read.components().references(), ["r/agent", "", ""]);
    }

    #[test]
    fn malformed_references_are_refused() {
        for (text, expected) in [
            ("{", "EOF"),
            ("[]", "it names no images"),
            ("{}", "it names no images"),
            (r#"{"kind":"List"}"#, "List"),
            (r#"{"spec":{"tags":[{"name":"cli"}]}}"#, "from"),
        ] {
            let reason = ImageReferences::parse(text.as_bytes()).unwrap_err();
            assert!(reason.contains(expected), "{text}: {reason}");
        }
    }

    #[test]
    fn set_images_win_over_those_of_the_release() {
        let release = ComponentImages {
            agent: "r/a".to_owned(),
            controller: "r/c".to_owned(),
            ..ComponentImages::default()
        };
        assert_eq!(release.known().count(), 2);
        let missing: Vec<_> = release.missing().map(|one| one.setting).collect();
        assert_eq!(missing, ["INSTALLER_IMAGE"]);

        let set = ComponentImages {
            agent: "own/a".to_owned(),
            installer: "own/i".to_owned(),
            ..ComponentImages::default()
        };
        assert_eq!(set.or(&release).references(), ["own/a", "own/i", "r/c"]);
    }

    fn streams(stream: Option<&str>, streams: Option<&str>) -> Result<Vec<OsStream>, String> {
        let data = serde_json::json!({ "stream": stream, "streams": streams });
        serde_json::from_value::<BootImageStreams>(data)
            .unwrap()
            .all()
    }

    #[test]
    fn the_default_stream_is_the_first_in_both_forms() {
        let both = r#"{"rhel-10": {"of": 10}, "rhel-9": {"of": 9}}"#;
        let others = r#"{"scos-11": {"of": 11}, "rhel-10": {"of": 10}}"#;
        for (stream, all, expected) in [
            (Some(r#"{"of": 1}"#), None, " 1"),
            (Some(r#"{"of": 1}"#), Some(both), " 1, rhel-10 10, rhel-9 9"),
            (Some(r#"{ "of":9 }"#), Some(both), "rhel-9 9, rhel-10 10"),
            (Some(r#"{"of": 10}"#), Some(both), "rhel-10 10, rhel-9 9"),
            (Some(r#"{"of": 1}"#), Some(r#"{"": {"of": 1}}"#), " 1"),
            (None, Some(both), "rhel-9 9, rhel-10 10"),
            (None, Some(others), "rhel-10 10, scos-11 11"),
            (None, Some(r#"{"c9s": {"of": 7}}"#), "c9s 7"),
        ] {
            let found = streams(stream, all).unwrap();
            let found: Vec<_> = found
                .iter()
                .map(|it| format!("{} {}", it.name, it.metadata["of"]))
                .collect();
            assert_eq!(found.join(", "), expected, "{stream:?} {all:?}");
        }
    }

    #[test]
    fn malformed_streams_are_refused() {
        let many: Vec<_> = (0..=MAX_STREAMS)
            .map(|it| format!(r#""a{it}":{{}}"#))
            .collect();
        let many = format!("{{{}}}", many.join(","));
        let long = format!(r#"{{"{}":{{}}}}"#, "a".repeat(MAX_STREAM_NAME + 1));
        let good = Some(r#"{"of": 1}"#);
        for (stream, all, expected) in [
            (None, None, "neither stream nor streams"),
            (None, Some("{}"), "neither stream nor streams"),
            (None, Some("[]"), "streams: "),
            (good, Some(r#"{"rhel-9": {"of""#), "streams: EOF"),
            (Some("{"), None, "stream: "),
            (good, Some(r#"{"a/b":{}}"#), "\"a/b\" is no name"),
            (good, Some(long.as_str()), "is no name"),
            (good, Some(many.as_str()), "more than 16"),
        ] {
            let reason = streams(stream, all).unwrap_err();
            assert!(reason.contains(expected), "{reason}");
        }
    }
}
