//! Signatures of an image, and the ConfigMap that holds them in a cluster.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use oci::Digest;

/// Hexadecimal digits of the digest in a file's name. Source: the peer.
const NAME_DIGITS: usize = 16;
/// Namespace and label of signatures in clusters.
const NAMESPACE: &str = "openshift-config-managed";
const LABEL: &str = "release.openshift.io/verification-signatures";

/// The signatures of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signatures {
    pub digest: Digest,
    pub signatures: Vec<Bytes>,
}

/// The file of the `ConfigMap` with the signatures of an image.
pub(super) fn file_name(digest: &Digest) -> String {
    let hex = digest.hex();
    let hex = hex.get(..NAME_DIGITS).unwrap_or(hex);
    format!("signature-{}-{hex}.json", digest.algorithm().as_str())
}

impl Signatures {
    /// The file of the `ConfigMap`.
    pub fn file_name(&self) -> String {
        file_name(&self.digest)
    }

    /// The signatures as a ConfigMap of a cluster, in JSON.
    pub fn config_map(&self) -> Bytes {
        let name = self.name();
        let numbered = self.signatures.iter().zip(1..);
        let data: Map<String, Value> = numbered
            .map(|(signature, number)| {
                let text = STANDARD.encode(signature);
                (format!("{name}-{number}"), json!(text))
            })
            .collect();
        let config_map = json!({
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "labels": { LABEL: "" },
            },
            "binaryData": data,
        });
        config_map.to_string().into()
    }

    /// Parses a ConfigMap; `None` without signatures of an image.
    pub fn parse(config_map: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct ConfigMap {
            binary_data: BTreeMap<String, String>,
        }
        let ConfigMap { binary_data } = serde_json::from_slice(config_map).ok()?;
        let (mut digest, mut signatures) = (None, BTreeMap::new());
        for (key, text) in binary_data {
            let mut parts = key.splitn(3, '-');
            let (algorithm, hex, number) = (parts.next()?, parts.next()?, parts.next()?);
            digest = Some(format!("{algorithm}:{hex}").parse().ok()?);
            signatures.insert(number.parse::<usize>().ok()?, STANDARD.decode(text).ok()?);
        }
        let signatures = signatures.into_values().map(Bytes::from);
        Some(Self {
            digest: digest?,
            signatures: signatures.collect(),
        })
    }

    fn name(&self) -> String {
        format!("{}-{}", self.digest.algorithm().as_str(), self.digest.hex())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn signatures_are_stored_as_config_maps() {
        let signatures = Signatures {
            digest: Digest::sha256(b"release"),
            signatures: vec![Bytes::from_static(b"one"), Bytes::from_static(b"two")],
        };
        let hex = signatures.digest.hex();
        let expected = format!("signature-sha256-{}.json", &hex[..16]);
        assert_eq!(signatures.file_name(), expected);
        let config_map: Value = serde_json::from_slice(&signatures.config_map()).unwrap();
        let expected = json!({
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {
                "name": format!("sha256-{hex}"),
                "namespace": "openshift-config-managed",
                "labels": {"release.openshift.io/verification-signatures": ""},
            },
            "binaryData": {format!("sha256-{hex}-1"): "b25l", format!("sha256-{hex}-2"): "dHdv"},
        });
        assert_eq!(config_map, expected);
        assert_eq!(
            Signatures::parse(&signatures.config_map()),
            Some(signatures)
        );
    }

    proptest! {
        #[test]
        fn anything_is_read_without_panic(text in ".{0,200}", key in "[a-z0-9-]{0,100}", value in "[A-Za-z0-9=]{0,20}") {
            let _ = Signatures::parse(text.as_bytes());
            let config_map = json!({"binaryData": {key: value}});
            let _ = Signatures::parse(config_map.to_string().as_bytes());
        }
    }
}
