//! Stores of release signatures.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use reqwest::Url;
use tokio::fs::File;
use tokio::io::AsyncReadExt as _;

use super::config_map::{Signatures, file_name};
use model::Error;
use net::web::{Web, shown};
use oci::Digest;

/// Signature stores of the public platform. Source: the peer.
const PUBLIC: [&str; 2] = [
    "https://storage.googleapis.com/openshift-release/official/signatures/openshift/release",
    "https://mirror.openshift.com/pub/openshift-v4/signatures/openshift/release",
];
/// Units: bytes. Largest signature; usual ones take a few thousand.
const LIMIT_BYTES: u64 = 1 << 20;
/// The role of a store in messages.
pub(super) const ROLE: &str = "a store of release signatures";

/// A store with a file `sha256=HEX/signature-NUMBER` for each signature of the image with that digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignatureStore {
    /// A folder on a web server.
    Web(Url),
    /// A local folder. It may have `ConfigMap`s instead, in the files that mirroring tools write.
    Folder(PathBuf),
}

impl SignatureStore {
    /// The stores of the public platform.
    pub fn public() -> Vec<Self> {
        let address = |text: &str| text.parse().expect("public stores have addresses");
        PUBLIC.map(|text| Self::Web(address(text))).into()
    }

    /// Parses a store: an `http`, `https` or `file` URL, or the absolute path of a folder.
    ///
    /// Errors: Invalid – neither.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = || {
            let reason = "expected an http or https URL, or the absolute path of a folder";
            Error::invalid("signature store", reason)
        };
        if text.starts_with('/') {
            return Ok(Self::Folder(text.into()));
        }
        let url: Url = text.parse().map_err(|_| wrong())?;
        match url.scheme() {
            "http" | "https" => Ok(Self::Web(url)),
            "file" => url.to_file_path().map(Self::Folder).map_err(|()| wrong()),
            _ => Err(wrong()),
        }
    }

    /// The signature with a number, from 1 on.
    ///
    /// Errors: NotFound – no such signature; TooLarge; Unavailable – the store cannot be read; Invalid – it refuses.
    pub(super) async fn signature(
        &self,
        digest: &Digest,
        number: usize,
        web: &Web,
    ) -> Result<Bytes, Error> {
        match self {
            Self::Web(store) => {
                let url = address(store, digest, number)?;
                web.get(&url, "*/*", LIMIT_BYTES).await
            }
            Self::Folder(folder) => {
                let path = folder.join(names(digest, number).join("/"));
                match read(&path).await {
                    Err(missing @ Error::NotFound { .. }) => {
                        of_config_map(folder, digest, number).await?.ok_or(missing)
                    }
                    other => other,
                }
            }
        }
    }
}

/// Without credentials, for messages.
impl fmt::Display for SignatureStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Web(url) => f.write_str(&shown(url)),
            Self::Folder(folder) => write!(f, "{}", folder.display()),
        }
    }
}

/// The folder and the file of a signature.
fn names(digest: &Digest, number: usize) -> [String; 2] {
    [
        format!("{}={}", digest.algorithm().as_str(), digest.hex()),
        format!("signature-{number}"),
    ]
}

fn address(store: &Url, digest: &Digest, number: usize) -> Result<Url, Error> {
    let mut url = store.clone();
    let wrong = |()| {
        let reason = format!("{} cannot have files", shown(store));
        Error::invalid("signature store", reason)
    };
    let mut path = url.path_segments_mut().map_err(wrong)?;
    path.pop_if_empty().extend(names(digest, number));
    drop(path);
    Ok(url)
}

/// The signature with a number in the `ConfigMap` of an image; `None` without one.
async fn of_config_map(
    folder: &Path,
    digest: &Digest,
    number: usize,
) -> Result<Option<Bytes>, Error> {
    let config_map = match read(&folder.join(file_name(digest))).await {
        Ok(config_map) => config_map,
        Err(Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    // The file's name has a part of the digest only.
    let own = Signatures::parse(&config_map).filter(|it| it.digest == *digest);
    Ok(own.and_then(|it| it.signatures.into_iter().nth(number.saturating_sub(1))))
}

async fn read(path: &Path) -> Result<Bytes, Error> {
    let named = path.display();
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => Error::not_found("file", named.to_string()),
        _ => Error::unavailable(ROLE, format!("{named}: {error}")),
    };
    let file = File::open(path).await.map_err(failed)?;
    let mut bytes = Vec::new();
    let mut limited = file.take(LIMIT_BYTES + 1);
    limited.read_to_end(&mut bytes).await.map_err(failed)?;
    if bytes.len() as u64 > LIMIT_BYTES {
        return Err(Error::TooLarge {
            what: "a signature",
            limit: LIMIT_BYTES,
        });
    }
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_lie_below_their_store() {
        let digest = Digest::sha256(b"");
        for store in ["http://a.example/s", "http://a.example/s/"] {
            let url = address(&store.parse().unwrap(), &digest, 2).unwrap();
            let expected = format!("http://a.example/s/sha256={}/signature-2", digest.hex());
            assert_eq!(url.as_str(), expected);
        }
    }

    #[test]
    fn stores_are_folders_here_or_on_web_servers() {
        let folder = || SignatureStore::Folder("/srv/signatures".into());
        assert_eq!(SignatureStore::parse("/srv/signatures").unwrap(), folder());
        assert_eq!(
            SignatureStore::parse("file:///srv/signatures").unwrap(),
            folder()
        );
        let web = SignatureStore::parse("https://me:secret@a.example/s").unwrap();
        assert_eq!(web.to_string(), "https://a.example/s");
        for wrong in [
            "",
            "signatures",
            "ftp://a.example/s",
            "file://a.example/s",
            "https://",
        ] {
            let refused = SignatureStore::parse(wrong).unwrap_err().to_string();
            assert!(refused.contains("absolute path"), "{wrong}: {refused}");
        }
        assert_eq!(SignatureStore::public().len(), 2);
    }
}
