//! A folder in OCI's image layout: what tools save an image as when no registry is at hand.
//!
//! Source: OCI image-spec, image-layout.md.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use model::Error;
use serde::Deserialize;

use crate::{Descriptor, Digest, Hasher, MANIFEST_LIMIT_BYTES, Manifest, Tag};

/// By which an entry of the index is told from others.
const NAME: &str = "org.opencontainers.image.ref.name";

/// An image in such a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The folder with `index.json`.
    pub folder: PathBuf,
    /// Which of its images; unnamed, it has to be the only one.
    pub tag: Option<Tag>,
}

#[derive(Deserialize)]
struct Index {
    manifests: Vec<Descriptor>,
}

impl Layout {
    /// The digest of the manifest or index that is meant.
    ///
    /// Blocking. Errors: NotFound – no such folder or image; Invalid – no layout, or several images and no tag.
    pub(super) fn digest(&self) -> Result<Digest, Error> {
        let path = self.folder.join("index.json");
        let bytes = read(&path, MANIFEST_LIMIT_BYTES as u64)?;
        let index: Index = serde_json::from_slice(&bytes)
            .map_err(|e| Error::invalid("image layout", format!("{}: {e}", path.display())))?;
        let is_meant = |entry: &&Descriptor| {
            let name = entry.annotations.as_ref().and_then(named);
            self.tag
                .as_ref()
                .is_none_or(|tag| name == Some(tag.as_str()))
        };
        let mut meant = index.manifests.into_iter().filter(|entry| is_meant(&entry));
        match (meant.next(), meant.next()) {
            (None, _) => Err(Error::not_found("image", self)),
            (Some(entry), None) => Ok(entry.digest),
            (Some(_), Some(_)) => Err(Error::invalid(
                "image layout",
                format!("{self} holds several images: name one, as in FOLDER:TAG"),
            )),
        }
    }

    /// Blocking. Errors: NotFound; Invalid – it has another digest, or is no manifest.
    pub(super) fn manifest(&self, digest: &Digest) -> Result<Manifest, Error> {
        let bytes = read(&self.path(digest), MANIFEST_LIMIT_BYTES as u64)?;
        if !digest.matches(&bytes) {
            return Err(self.damaged(digest));
        }
        Manifest::parse(bytes, None)
            .map_err(|e| Error::invalid("image", format!("{self}: {digest}: {e}")))
    }

    /// A small blob.
    ///
    /// Blocking. Errors: as [`Self::manifest`]; TooLarge.
    pub(super) fn blob(&self, digest: &Digest, limit: u64) -> Result<Bytes, Error> {
        let bytes = read(&self.path(digest), limit)?;
        if !digest.matches(&bytes) {
            return Err(self.damaged(digest));
        }
        Ok(bytes)
    }

    /// Does `work` with the bytes of a layer; what it makes of bytes that have another digest is dropped.
    ///
    /// Blocking. Errors: as [`Self::manifest`]; those of `work`.
    pub(super) fn with_layer<T>(
        &self,
        digest: &Digest,
        work: impl FnOnce(&mut dyn Read) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let path = self.path(digest);
        let mut layer = Hashed {
            file: File::open(&path).map_err(|e| unreadable(&path, e))?,
            hasher: Hasher::new(digest.algorithm()),
        };
        let made = work(&mut layer);
        // Also after a failure: that the layer is damaged says more than what came of it.
        io::copy(&mut layer, &mut io::sink()).map_err(|e| unreadable(&path, e))?;
        if layer.hasher.finish() != *digest {
            return Err(self.damaged(digest));
        }
        made
    }

    /// Where the bytes of a blob lie.
    pub fn path(&self, digest: &Digest) -> PathBuf {
        let algorithm = digest.algorithm().as_str();
        self.folder.join("blobs").join(algorithm).join(digest.hex())
    }

    fn damaged(&self, digest: &Digest) -> Error {
        Error::invalid("image layout", format!("{self}: {digest} is damaged"))
    }
}

impl std::fmt::Display for Layout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.folder.display())?;
        match &self.tag {
            Some(tag) => write!(f, ":{tag}"),
            None => Ok(()),
        }
    }
}

/// Some tools write the whole reference, others the tag alone.
fn named(annotations: &BTreeMap<String, String>) -> Option<&str> {
    let name = annotations.get(NAME)?;
    let tag = name.rsplit_once(':').map(|(_, tag)| tag);
    Some(tag.filter(|tag| !tag.contains('/')).unwrap_or(name))
}

fn read(path: &Path, limit: u64) -> Result<Bytes, Error> {
    let file = File::open(path).map_err(|e| unreadable(path, e))?;
    let mut bytes = Vec::new();
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| unreadable(path, e))?;
    if bytes.len() as u64 > limit {
        return Err(Error::TooLarge {
            what: "file of an image layout",
            limit,
        });
    }
    Ok(bytes.into())
}

fn unreadable(path: &Path, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound {
        return Error::not_found("file of an image layout", path.display());
    }
    Error::internal(format!("reading {}", path.display()), error)
}

/// A file that is hashed while it is read.
struct Hashed {
    file: File,
    hasher: Hasher,
}

impl Read for Hashed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        Ok(count)
    }
}
