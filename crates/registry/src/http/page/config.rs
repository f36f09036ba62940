//! The configuration of an image. Bounded, and untrusted.

use std::collections::BTreeMap;

use blob_store::{ContentStore as _, StoreError};
use futures_util::TryStreamExt as _;
use model::time::Timestamp;
use oci::{Kind, Manifest, Repository, media_type};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::storage::Store;

/// Units: bytes. Larger configurations are not read: those of real images have some ten thousand.
const LIMIT_BYTES: u64 = 4 << 20;

/// An image's configuration. Source: image-spec, config.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Config {
    created: Option<String>,
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    os: String,
    #[serde(default)]
    variant: String,
    pub(super) author: Option<String>,
    #[serde(rename = "config")]
    run: Option<Run>,
    history: Option<Vec<Step>>,
}

/// How containers are started.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Run {
    pub(super) entrypoint: Option<Vec<String>>,
    pub(super) cmd: Option<Vec<String>>,
    env: Option<Vec<String>>,
    pub(super) user: Option<String>,
    pub(super) working_dir: Option<String>,
    pub(super) labels: Option<BTreeMap<String, String>>,
    exposed_ports: Option<BTreeMap<String, Box<RawValue>>>,
    volumes: Option<BTreeMap<String, Box<RawValue>>>,
}

/// One step of the build.
#[derive(Debug, Deserialize)]
struct Step {
    #[serde(default)]
    created_by: String,
    #[serde(default)]
    empty_layer: bool,
}

impl Config {
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes).map_err(|e| format!("it cannot be read: {e}"))
    }

    pub(super) fn created(&self) -> Option<Timestamp> {
        self.created.as_deref()?.parse().ok()
    }

    /// `os/architecture[/variant]`.
    pub(super) fn platform(&self) -> Option<String> {
        platform([&self.os, &self.architecture, &self.variant])
    }

    pub(super) fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    /// The commands that made the layers, lowest first; None when their number does not fit.
    pub(super) fn commands(&self, layers: usize) -> Vec<&str> {
        let steps = self.history.iter().flatten();
        let found: Vec<_> = steps
            .filter(|step| !step.empty_layer)
            .map(|step| step.created_by.as_str())
            .collect();
        if found.len() == layers {
            found
        } else {
            Vec::new()
        }
    }
}

impl Run {
    /// Names without values, which may be secrets.
    pub(super) fn variables(&self) -> Vec<&str> {
        let pairs = self.env.iter().flatten();
        pairs
            .map(|pair| pair.split_once('=').map_or(pair.as_str(), |(name, _)| name))
            .collect()
    }

    pub(super) fn ports(&self) -> Vec<&str> {
        let ports = self.exposed_ports.iter().flatten();
        ports.map(|(port, _)| port.as_str()).collect()
    }

    pub(super) fn volumes(&self) -> Vec<&str> {
        let volumes = self.volumes.iter().flatten();
        volumes.map(|(volume, _)| volume.as_str()).collect()
    }
}

/// The configuration of an image, or the reason why it cannot be read; None for other artifacts.
///
/// Errors: the store's.
pub(super) async fn read(
    store: &Store,
    name: &Repository,
    manifest: &Manifest,
) -> Result<Option<Result<Config, String>>, StoreError> {
    let Kind::Image { config, .. } = &manifest.kind else {
        return Ok(None);
    };
    if !media_type::is_image_config(&config.media_type) {
        return Ok(None);
    }
    let size = match store.blob_size(name, &config.digest).await {
        Ok(size) => size,
        Err(StoreError::UnknownBlob(_)) => return Ok(Some(Err("it is not here".to_owned()))),
        Err(error) => return Err(error),
    };
    if size > LIMIT_BYTES {
        let limit = service::page::bytes(LIMIT_BYTES);
        return Ok(Some(Err(format!("it has more than {limit}"))));
    }
    let pieces = store.open_blob(name, &config.digest, 0, size).await?;
    let pieces: Vec<_> = pieces
        .try_collect()
        .await
        .map_err(|source| StoreError::Io {
            doing: "reading a configuration",
            source,
        })?;
    // Megabytes take longer than other requests should wait.
    let parsed = tokio::task::spawn_blocking(move || Config::parse(&pieces.concat())).await?;
    Ok(Some(parsed))
}

/// The parts with slashes between them. Attestations say `unknown`.
pub(super) fn platform(parts: [&str; 3]) -> Option<String> {
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let is_known = !parts.is_empty() && parts.iter().any(|part| *part != "unknown");
    is_known.then(|| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_configuration_says() {
        let text = r#"{"created": "2026-01-02T03:04:05.123Z", "architecture": "arm64", "os": "linux", "variant": "v8",
            "config": {"Entrypoint": ["/bin/x", "-a"], "Env": ["PATH=/bin", "TOKEN=secret", "BARE"],
                "Labels": {"a": "b"}, "ExposedPorts": {"80/tcp": {}}, "Volumes": null, "Unknown": [1]},
            "history": [{"created_by": "ADD"}, {"created_by": "ENV", "empty_layer": true}, {"created_by": "RUN"}],
            "rootfs": {"type": "layers", "diff_ids": []}}"#;
        let config = Config::parse(text.as_bytes()).unwrap();
        assert_eq!(config.platform().as_deref(), Some("linux/arm64/v8"));
        assert_eq!(config.created().unwrap().timestamp(), 1_767_323_045);
        assert_eq!(config.commands(2), ["ADD", "RUN"]);
        assert_eq!(config.commands(3), [""; 0]);
        let run = config.run().unwrap();
        assert_eq!(run.variables(), ["PATH", "TOKEN", "BARE"]);
        assert_eq!((run.ports(), run.volumes()), (vec!["80/tcp"], vec![]));
    }

    #[test]
    fn what_says_nothing() {
        let empty = Config::parse(b"{}").unwrap();
        assert_eq!((empty.platform(), empty.created()), (None, None));
        let deep = "[".repeat(100_000);
        for broken in ["", "[]", "{\"history\": 1}", &deep] {
            assert!(Config::parse(broken.as_bytes()).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            Config::parse(&bytes).ok();
        }
    }
}
