//! Lists of images to be deleted, in the peer's form.

use model::Error;
use model::mirror_metadata::ImageType;
use oci::{Reference, Transport};
use serde::{Deserialize, Serialize};

use crate::names;
use crate::publish::MirrorTarget;
use crate::results::yaml;

const API_VERSION: &str = "mirror.openshift.io/v2alpha1";
const KIND: &str = "DeleteImageList";

/// Images to be deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct List {
    pub items: Vec<DeletionItem>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListDocument {
    kind: String,
    api_version: String,
    items: Vec<ListEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListEntry {
    image_name: String,
    image_reference: String,
    #[serde(rename = "type")]
    kind: ImageType,
}

impl List {
    /// As the peer writes it.
    ///
    /// Errors: Internal.
    pub fn to_yaml(&self) -> Result<String, Error> {
        let items = self.items.iter().map(|item| ListEntry {
            image_name: format!("{}{}", Transport::Docker, item.source),
            image_reference: format!("{}{}", Transport::Docker, item.image),
            kind: item.kind,
        });
        let document = ListDocument {
            kind: KIND.to_owned(),
            api_version: API_VERSION.to_owned(),
            items: items.collect(),
        };
        yaml::text(&document)
    }

    /// Reads a list for a target.
    ///
    /// Errors: Invalid – no such list, or one with images outside of the target: nothing of it is deleted.
    pub fn from_yaml(text: &str, target: &MirrorTarget) -> Result<Self, Error> {
        let wrong = |reason: String| Error::invalid("list of images to delete", reason);
        let document: ListDocument =
            serde_yaml::from_str(text).map_err(|e| wrong(e.to_string()))?;
        if document.kind != KIND {
            return Err(wrong(format!(
                "its kind is {:?}, expected {KIND}",
                document.kind
            )));
        }
        let mut list = Self::default();
        for entry in document.items {
            let parsed =
                |name: &str| names::reference(name).map_err(|e| wrong(format!("{name}: {e}")));
            let image = parsed(&entry.image_reference)?;
            if !is_below(&image, target) {
                let MirrorTarget {
                    registry,
                    namespace,
                    ..
                } = target;
                return Err(wrong(format!(
                    "{image} is not below {registry}/{namespace}"
                )));
            }
            list.items.push(DeletionItem {
                source: parsed(&entry.image_name)?,
                image,
                kind: entry.kind,
            });
        }
        Ok(list)
    }

    pub(super) fn sort(&mut self) {
        self.items.sort_by_cached_key(|item| item.image.to_string());
        self.items.dedup_by(|one, other| one.image == other.image);
    }
}

fn is_below(image: &Reference, target: &MirrorTarget) -> bool {
    let name = image.repository.as_str();
    let below = match target.namespace.as_str() {
        "" => Some(name),
        namespace => name
            .strip_prefix(namespace)
            .and_then(|rest| rest.strip_prefix('/')),
    };
    image.registry == target.registry && below.is_some()
}

/// An image to be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletionItem {
    /// Its reference at the source.
    pub source: Reference,
    /// Its reference in the target.
    pub image: Reference,
    pub kind: ImageType,
}

#[cfg(test)]
mod tests {
    use oci_client::{Client, ClientOptions};

    use super::*;

    fn target(namespace: &str) -> MirrorTarget {
        MirrorTarget {
            client: Client::new(ClientOptions::default()).unwrap(),
            registry: oci::Registry::Host("localhost:5000".into()),
            namespace: namespace.into(),
            max_components: 0,
        }
    }

    // Of the peer's own tests.
    const PEERS: &str = "apiVersion: mirror.openshift.io/v2alpha1
kind: DeleteImageList
items:
  - imageName: quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:c32a883a6ca7b2e7a58b9dd99a5e8d056bdbbc9d79d8486b2e4c7e07c3dc4512
    imageReference: docker://localhost:5000/myregistry/openshift/release:4.15.12-x86_64-agent-installer-api-server
    type: ocpReleaseContent
";

    #[test]
    fn lists_of_the_peer_are_read_and_ours_have_its_form() {
        let list = List::from_yaml(PEERS, &target("myregistry")).unwrap();
        assert_eq!(list.items[0].kind, ImageType::OcpReleaseContent);
        let own = list.to_yaml().unwrap();
        assert_eq!(List::from_yaml(&own, &target("myregistry")).unwrap(), list);
        insta::assert_snapshot!(own, @"
        kind: DeleteImageList
        apiVersion: mirror.openshift.io/v2alpha1
        items:
        - imageName: docker://quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:c32a883a6ca7b2e7a58b9dd99a5e8d056bdbbc9d79d8486b2e4c7e07c3dc4512
          imageReference: docker://localhost:5000/myregistry/openshift/release:4.15.12-x86_64-agent-installer-api-server
          type: ocpReleaseContent
        ");
    }

    #[test]
    fn images_outside_of_the_target_are_refused() {
        for other in ["my", "myregistry/openshift/release"] {
            let refused = List::from_yaml(PEERS, &target(other)).unwrap_err();
            assert!(refused.to_string().contains("is not below"), "{refused}");
        }
        assert!(List::from_yaml("kind: Other\napiVersion: x\nitems: []", &target("")).is_err());
    }
}
