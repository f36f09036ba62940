//! Manifests and indexes with their original bytes, so that the digest stays valid and unknown members survive.

use std::collections::BTreeMap;

use bytes::Bytes;
use model::Error;
use serde::Deserialize;

use crate::{Descriptor, Digest, media_type, schema1};

/// Largest manifest. Units: bytes. Source: distribution-spec, at least 4 MB have to be accepted.
pub const MANIFEST_LIMIT_BYTES: usize = 4 * 1024 * 1024;

/// The content of a manifest by its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// One image, or an artifact.
    Image {
        /// Its configuration.
        config: Descriptor,
        /// Lowest layer first.
        layers: Vec<Descriptor>,
    },
    /// An index: several manifests, mostly one per platform.
    Index {
        /// The entries.
        manifests: Vec<Descriptor>,
    },
    /// A manifest of Docker's schema 1, used until 2016.
    Schema1 {
        /// Newest layer first, without type and size.
        layers: Vec<Descriptor>,
        /// The signed payload, over which the digest is computed; `None` without signatures.
        payload: Option<Bytes>,
    },
}

/// A manifest with its original bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The bytes as received.
    pub bytes: Bytes,
    /// One of the constants in [`media_type`].
    pub media_type: &'static str,
    /// SHA-256 of [`Manifest::digested`].
    pub digest: Digest,
    /// Its parsed content.
    pub kind: Kind,
    /// The manifest that this one refers to, as a signature does.
    pub subject: Option<Descriptor>,
    /// The artifact type: its `artifactType`, or else the media type of its config.
    pub artifact_type: Option<String>,
    /// Annotations.
    pub annotations: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ManifestBody {
    schema_version: Option<u32>,
    media_type: Option<String>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
    subject: Option<Descriptor>,
    artifact_type: Option<String>,
    annotations: Option<BTreeMap<String, String>>,
}

impl Manifest {
    /// Parses a manifest. Its media type comes from its `mediaType`, else from `content_type`, else from its members.
    ///
    /// Errors: Invalid – not a manifest, of an unknown or contradictory type; TooLarge.
    pub fn parse(bytes: Bytes, content_type: Option<&str>) -> Result<Self, Error> {
        if bytes.len() > MANIFEST_LIMIT_BYTES {
            return Err(Error::TooLarge {
                what: "manifest",
                limit: MANIFEST_LIMIT_BYTES as u64,
            });
        }
        let body: ManifestBody =
            serde_json::from_slice(&bytes).map_err(|e| wrong(e.to_string()))?;
        let content_type = content_type
            .map(|text| text.split(';').next().unwrap_or_default().trim())
            .filter(|text| !text.is_empty());
        match body.schema_version {
            Some(2) => {}
            Some(1) => return Self::schema1(bytes, content_type),
            _ => return Err(wrong("schemaVersion is neither 1 nor 2".to_owned())),
        }
        let media_type = body.agreed_type(content_type)?;
        let kind = body.kind(media_type)?;
        let digest = Digest::sha256(&bytes);
        let of_config = match &kind {
            Kind::Image { config, .. } => Some(config.media_type.clone()),
            Kind::Index { .. } | Kind::Schema1 { .. } => None,
        };
        Ok(Self {
            bytes,
            media_type,
            digest,
            kind,
            subject: body.subject,
            artifact_type: body
                .artifact_type
                .or(of_config)
                .filter(|text| !text.is_empty()),
            annotations: body.annotations,
        })
    }

    fn schema1(bytes: Bytes, content_type: Option<&str>) -> Result<Self, Error> {
        let types = [
            media_type::DOCKER_SCHEMA1_SIGNED,
            media_type::DOCKER_SCHEMA1,
            "application/json",
        ];
        if let Some(sent) = content_type.filter(|sent| !types.contains(sent)) {
            return Err(wrong(format!(
                "its schemaVersion is 1, but it was sent as {sent:?}"
            )));
        }
        let schema1::SignedContent { payload, layers } = schema1::parse(&bytes)?;
        Ok(Self {
            digest: Digest::sha256(payload.as_ref().unwrap_or(&bytes)),
            media_type: match payload {
                Some(_) => media_type::DOCKER_SCHEMA1_SIGNED,
                None => media_type::DOCKER_SCHEMA1,
            },
            kind: Kind::Schema1 { layers, payload },
            bytes,
            subject: None,
            artifact_type: None,
            annotations: None,
        })
    }

    /// Verifies the signatures of a schema 1 manifest; takes some time.
    ///
    /// Errors: Invalid, field `signature`.
    pub fn verify_signatures(&self) -> Result<(), Error> {
        match self.kind {
            Kind::Schema1 { .. } => schema1::verify(&self.bytes),
            Kind::Image { .. } | Kind::Index { .. } => Ok(()),
        }
    }

    /// The bytes of the digest: all bytes, or the signed payload of schema 1.
    pub fn digested(&self) -> &Bytes {
        match &self.kind {
            Kind::Schema1 {
                payload: Some(payload),
                ..
            } => payload,
            _ => &self.bytes,
        }
    }

    /// The descriptor of this manifest.
    pub fn descriptor(&self) -> Descriptor {
        Descriptor {
            media_type: self.media_type.to_owned(),
            digest: self.digest.clone(),
            size: self.bytes.len() as u64,
            platform: None,
            annotations: None,
        }
    }

    /// Blobs that must be in the repository before the manifest.
    pub fn required_blobs(&self) -> impl Iterator<Item = &Digest> {
        self.blobs()
            .filter(|blob| !media_type::is_nondistributable(&blob.media_type))
            .map(|blob| &blob.digest)
    }

    /// All blobs that it references.
    pub fn blobs(&self) -> impl Iterator<Item = &Descriptor> {
        let (config, layers) = match &self.kind {
            Kind::Image { config, layers } => (Some(config), layers.as_slice()),
            Kind::Schema1 { layers, .. } => (None, layers.as_slice()),
            Kind::Index { .. } => (None, [].as_slice()),
        };
        config.into_iter().chain(layers)
    }

    /// Manifests that must be in the repository before this index.
    pub fn required_manifests(&self) -> impl Iterator<Item = &Digest> {
        let manifests = match &self.kind {
            Kind::Image { .. } | Kind::Schema1 { .. } => [].as_slice(),
            Kind::Index { manifests } => manifests.as_slice(),
        };
        manifests.iter().map(|manifest| &manifest.digest)
    }
}

impl ManifestBody {
    fn agreed_type(&self, content_type: Option<&str>) -> Result<&'static str, Error> {
        let own = self.media_type.as_deref().filter(|text| !text.is_empty());
        if let (Some(own), Some(sent)) = (own, content_type)
            && own != sent
        {
            return Err(wrong(format!(
                "its mediaType is {own:?}, but it was sent as {sent:?}"
            )));
        }
        let by_members = if self.manifests.is_some() {
            media_type::OCI_INDEX
        } else {
            media_type::OCI_MANIFEST
        };
        let named = own.or(content_type).unwrap_or(by_members);
        let known = [
            media_type::OCI_MANIFEST,
            media_type::OCI_INDEX,
            media_type::DOCKER_MANIFEST,
            media_type::DOCKER_LIST,
        ];
        let media_type = known
            .into_iter()
            .find(|known| *known == named)
            .ok_or_else(|| wrong(format!("{named:?} is not a supported manifest type")))?;
        // Stores keep only the bytes: without the member, a Docker manifest would be served as an OCI one.
        let is_docker =
            [media_type::DOCKER_MANIFEST, media_type::DOCKER_LIST].contains(&media_type);
        if is_docker && own.is_none() {
            return Err(wrong(format!(
                "a manifest of type {media_type} has to say so in its mediaType"
            )));
        }
        Ok(media_type)
    }

    /// Rejects a body that could be parsed as both kinds: clients would disagree about its content.
    fn kind(&self, media_type: &str) -> Result<Kind, Error> {
        let is_index = [media_type::OCI_INDEX, media_type::DOCKER_LIST].contains(&media_type);
        let has_image = self.config.is_some() || self.layers.is_some();
        match (is_index, &self.manifests, &self.config) {
            (true, Some(manifests), _) if !has_image => Ok(Kind::Index {
                manifests: manifests.clone(),
            }),
            (true, None, _) => Err(wrong("an index needs the member manifests".to_owned())),
            (true, Some(_), _) => Err(wrong("an index must not have config or layers".to_owned())),
            (false, Some(_), _) => Err(wrong(
                "an image manifest must not have manifests".to_owned(),
            )),
            (false, None, None) => Err(wrong(
                "an image manifest needs the member config".to_owned(),
            )),
            (false, None, Some(config)) => Ok(Kind::Image {
                config: config.clone(),
                layers: self.layers.clone().unwrap_or_default(),
            }),
        }
    }
}

fn wrong(reason: String) -> Error {
    Error::invalid("manifest", reason)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::media_type::{DOCKER_LIST, DOCKER_MANIFEST, OCI_INDEX, OCI_MANIFEST};

    fn blob() -> serde_json::Value {
        serde_json::json!({"mediaType": "x", "digest": Digest::sha256(b"x"), "size": 1})
    }

    fn parse(body: &str, content_type: Option<&str>) -> Result<Manifest, Error> {
        Manifest::parse(Bytes::copy_from_slice(body.as_bytes()), content_type)
    }

    #[test]
    fn bytes_are_kept() {
        let body = format!(
            "{{ \"schemaVersion\":2,\n\"unknown\":[1], \"config\":{} }}",
            blob()
        );
        let manifest = parse(&body, None).unwrap();
        assert_eq!(manifest.bytes, body.as_bytes());
        assert_eq!(manifest.digest, Digest::sha256(body.as_bytes()));
        assert_eq!(manifest.media_type, OCI_MANIFEST);
        assert_eq!(manifest.required_blobs().count(), 1);
    }

    #[test]
    fn types_come_from_body_header_or_members() {
        let index = r#"{"schemaVersion":2,"manifests":[]}"#;
        assert_eq!(parse(index, None).unwrap().media_type, OCI_INDEX);
        assert_eq!(parse(index, Some("")).unwrap().media_type, OCI_INDEX);
        let charset = format!("{OCI_INDEX}; charset=utf-8");
        assert_eq!(parse(index, Some(&charset)).unwrap().media_type, OCI_INDEX);
        let list = format!(r#"{{"schemaVersion":2,"mediaType":"{DOCKER_LIST}","manifests":[]}}"#);
        assert_eq!(parse(&list, None).unwrap().media_type, DOCKER_LIST);
    }

    #[test]
    fn nondistributable_layers_may_be_absent() {
        let mut foreign = blob();
        foreign["mediaType"] = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip".into();
        let body = serde_json::json!({"schemaVersion": 2, "config": blob(), "layers": [foreign]});
        assert_eq!(
            parse(&body.to_string(), None)
                .unwrap()
                .required_blobs()
                .count(),
            1
        );
    }

    #[test]
    fn malformed_manifests_are_refused() {
        let (config, both) = (blob(), blob());
        let cases = [
            (String::new(), None),
            ("null".to_owned(), None),
            ("[]".to_owned(), None),
            ("{}".to_owned(), None),
            (r#"{"schemaVersion":1}"#.to_owned(), None),
            (r#"{"schemaVersion":2}"#.to_owned(), None),
            (r#"{"schemaVersion":2,"manifests":{}}"#.to_owned(), None),
            (
                format!(r#"{{"schemaVersion":2,"config":{config},"manifests":[]}}"#),
                None,
            ),
            (
                format!(r#"{{"schemaVersion":2,"config":{config},"manifests":[]}}"#),
                Some(OCI_MANIFEST),
            ),
            (
                format!(r#"{{"schemaVersion":2,"config":{config},"config":{both}}}"#),
                None,
            ),
            (
                format!(r#"{{"schemaVersion":2,"config":{config}}}"#),
                Some("text/plain"),
            ),
            (
                format!(r#"{{"schemaVersion":2,"config":{config}}}"#),
                Some(DOCKER_MANIFEST),
            ),
            (
                format!(r#"{{"schemaVersion":2,"mediaType":"{OCI_MANIFEST}","config":{config}}}"#),
                Some(OCI_INDEX),
            ),
            (
                r#"{"schemaVersion":2,"config":{"digest":"sha256:1","size":1}}"#.to_owned(),
                None,
            ),
            (
                format!(
                    r#"{{"schemaVersion":2,"config":{{"digest":"{}","size":-1}}}}"#,
                    Digest::sha256(b"")
                ),
                None,
            ),
        ];
        for (body, content_type) in cases {
            assert!(
                matches!(parse(&body, content_type), Err(Error::Invalid { .. })),
                "{body}"
            );
        }
        let large = Bytes::from(vec![b' '; MANIFEST_LIMIT_BYTES + 1]);
        assert!(matches!(
            Manifest::parse(large, None),
            Err(Error::TooLarge { .. })
        ));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            Manifest::parse(bytes.into(), None).ok();
        }
    }
}
