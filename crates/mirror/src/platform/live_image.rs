//! Live images of a stream, for the selected architectures.
//!
//! Source: coreos/stream-metadata-go, `stream`.

use model::Error;
use model::image_set::MirrorSelection;
use model::release_payload::OsStream;
use oci::Digest;
use oci::live_image::{ARCHITECTURES, architecture_of};
use serde_json::Value;
use url::Url;

use super::select::wished_architectures;

/// All architectures of a release.
const ALL_ARCHITECTURES: &str = "multi";

/// Architectures of the selected boot images.
#[derive(Debug, Clone)]
pub(super) struct BootArchitectures {
    /// As streams name them.
    names: Vec<String>,
    /// Whether a release may lack some.
    are_all: bool,
}

/// A live image that a release names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LiveImage {
    /// Its stream; empty where the release names none.
    pub(super) stream: String,
    /// Version of the operating system.
    pub(super) version: String,
    /// As streams name it.
    pub(super) architecture: String,
    pub(super) url: Url,
    pub(super) digest: Digest,
}

impl BootArchitectures {
    /// None for a set without boot images.
    pub(super) fn of(mirror: &MirrorSelection) -> Option<Self> {
        let names = match mirror.boot_images.as_ref()?.architectures.as_slice() {
            [] => wished_architectures(&mirror.platform),
            some => some.to_vec(),
        };
        let are_all = names.iter().any(|it| it == ALL_ARCHITECTURES);
        let names = if are_all {
            ARCHITECTURES.map(str::to_owned).into()
        } else {
            names.iter().map(|it| architecture_of(it).into()).collect()
        };
        Some(Self { names, are_all })
    }

    /// The live images of the streams, and the architectures that the default one lacks: others may be for fewer.
    ///
    /// Errors: the message for malformed stream metadata.
    pub(super) fn images(
        &self,
        streams: &[OsStream],
    ) -> Result<(Vec<LiveImage>, Vec<String>), String> {
        let (mut images, mut missing) = (Vec::new(), Vec::new());
        for name in &self.names {
            let of_stream = streams.iter().map(|stream| live_image(stream, name));
            let found: Vec<_> = of_stream.collect::<Result<_, _>>()?;
            if found.first().is_none_or(Option::is_none) {
                missing.push(name.clone());
            }
            images.extend(found.into_iter().flatten());
        }
        if self.are_all && !images.is_empty() {
            missing.clear();
        }
        Ok((images, missing))
    }
}

/// The live image of a stream for an architecture, if it has one.
fn live_image(stream: &OsStream, architecture: &str) -> Result<Option<LiveImage>, String> {
    let metal = &stream.metadata["architectures"][architecture]["artifacts"]["metal"];
    let disk = &metal["formats"]["iso"]["disk"];
    if disk.is_null() {
        return Ok(None);
    }
    let text = |value: &Value, member: &str| match value[member].as_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(format!("the live image for {architecture} has no {member}")),
    };
    let location = text(disk, "location")?;
    let url = location.parse().ok();
    let is_web = |url: &Url| ["https", "http"].contains(&url.scheme());
    Ok(Some(LiveImage {
        stream: stream.name.clone(),
        version: text(metal, "release")?,
        architecture: architecture.to_owned(),
        url: url
            .filter(is_web)
            .ok_or_else(|| format!("{location:?} is no address of a web server"))?,
        digest: format!("sha256:{}", text(disk, "sha256")?)
            .parse()
            .map_err(|e: Error| e.to_string())?,
    }))
}

#[cfg(test)]
pub(super) mod tests {
    use model::image_set::BootImageSelection;
    use serde_json::json;

    use super::*;

    /// The live image of an architecture in a stream.
    pub(in crate::platform) fn disk(architecture: &str, version: &str) -> Value {
        let url = format!("https://h.example/{version}/live-{architecture}.iso?token=secret");
        let sha256 = Digest::sha256(url.as_bytes());
        let disk = json!({"location": url, "sha256": sha256.hex(), "signature": "x"});
        let metal = json!({"release": version, "formats": {"iso": {"disk": disk}}});
        json!({"artifacts": {"metal": metal}})
    }

    /// A stream with these architectures.
    pub(in crate::platform) fn stream(name: &str, architectures: &Value) -> OsStream {
        OsStream {
            name: name.to_owned(),
            metadata: json!({ "architectures": architectures }),
        }
    }

    #[test]
    fn malformed_streams_are_refused() {
        let set = MirrorSelection {
            boot_images: Some(BootImageSelection::default()),
            ..MirrorSelection::default()
        };
        let boot = BootArchitectures::of(&set).unwrap();
        let good = disk("x86_64", "1");
        let path = "/artifacts/metal/formats/iso/disk";
        for (place, value, expected) in [
            (
                format!("{path}/location"),
                json!("ftp://h/a.iso"),
                "\"ftp://h/a.iso\" is no address",
            ),
            (format!("{path}/location"), json!(5), "has no location"),
            (format!("{path}/sha256"), json!("12"), "digest"),
            (format!("{path}/sha256"), Value::Null, "has no sha256"),
            (
                "/artifacts/metal/release".to_owned(),
                Value::Null,
                "has no release",
            ),
        ] {
            let mut wrong = good.clone();
            *wrong.pointer_mut(&place).unwrap() = value;
            let wrong = stream("", &json!({"x86_64": wrong}));
            for streams in [&[wrong.clone()][..], &[stream("rhel-9", &json!({})), wrong]] {
                let reason = boot.images(streams).unwrap_err();
                assert!(reason.contains(expected), "{place}: {reason}");
            }
        }
    }
}
