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

/// Metadata of streams, as JSON texts.
#[derive(Debug, Clone, Deserialize)]
pub struct BootImageStreams {
    /// The default stream.
    pub stream: Option<String>,
    /// All streams by name; from 5.0 on.
    pub streams: Option<String>,
}

impl BootImageStreams {
    /// The metadata of the default stream; without one, that of [`PREFERRED_STREAM`], or else of the first by name.
    ///
    /// Errors: the message for malformed metadata.
    pub fn default_stream(&self) -> Result<Value, String> {
        if let Some(stream) = &self.stream {
            return serde_json::from_str(stream).map_err(|e| format!("stream: {e}"));
        }
        let streams = self.streams.as_deref();
        let streams = streams.ok_or("it has neither stream nor streams")?;
        let streams = serde_json::from_str(streams);
        let mut streams: BTreeMap<String, Value> = streams.map_err(|e| format!("streams: {e}"))?;
        let preferred = streams.remove(PREFERRED_STREAM);
        let chosen = preferred.or_else(|| streams.pop_first().map(|(_, first)| first));
        chosen.ok_or_else(|| "its streams are empty".to_owned())
    }
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

    #[test]
    fn the_default_stream_is_found_in_both_forms() {
        let both = r#"{"rhel-10": {"stream": 10}, "rhel-9": {"stream": 9}}"#;
        let others = r#"{"scos-11": {"stream": 11}, "rhel-10": {"stream": 10}}"#;
        for (stream, streams, expected) in [
            (Some(r#"{"stream": 1}"#), None, Ok(1)),
            (Some(r#"{"stream": 1}"#), Some(both), Ok(1)),
            (None, Some(both), Ok(9)),
            (None, Some(others), Ok(10)),
            (None, Some(r#"{"c9s": {"stream": 7}}"#), Ok(7)),
            (None, None, Err("neither stream nor streams")),
            (None, Some("{}"), Err("streams are empty")),
            (None, Some("[]"), Err("streams: ")),
            (Some("{"), Some(both), Err("stream: ")),
        ] {
            let data = serde_json::json!({ "stream": stream, "streams": streams });
            let data: BootImageStreams = serde_json::from_value(data).unwrap();
            match (data.default_stream(), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found["stream"], expected),
                (Err(reason), Err(expected)) => assert!(reason.contains(expected), "{reason}"),
                (found, _) => panic!("{found:?} instead of {expected:?}"),
            }
        }
    }
}
