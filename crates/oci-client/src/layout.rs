//! A folder in the OCI image layout, in which tools save images without a registry.
//!
//! The one invariant of writing: a blob gets its name, and an image its entry, only when it is complete.
//!
//! Source: OCI image-spec, image-layout.md.

mod files;
mod index;
mod list;
mod sweep;
mod write;

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::str::FromStr;

use bytes::Bytes;
use model::Error;

use oci::{Algorithm, Digest, Hasher, MANIFEST_LIMIT_BYTES, Manifest};

use files::{read, unreadable};
pub(crate) use index::Index;
pub(crate) use list::{List, Lists};
pub(crate) use write::Part;

/// Algorithms whose blobs have a folder.
const ALGORITHMS: [Algorithm; 2] = [Algorithm::Sha256, Algorithm::Sha512];

/// An image in a layout, written as `FOLDER[:NAME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The folder with `index.json`.
    pub folder: PathBuf,
    /// Name of the image in the index, or the end of it after a `/` or `:`; absent for the only image.
    pub name: Option<String>,
}

impl Layout {
    /// The digest of the image's manifest or index.
    ///
    /// Blocking. Errors: NotFound – no such folder or image; Invalid – no layout, or several images and no tag.
    pub fn digest(&self) -> Result<Digest, Error> {
        let index = Index::read(&self.folder)?;
        let mut matching = index.matching(self.name.as_deref());
        match (matching.next(), matching.next()) {
            (None, _) => Err(Error::not_found("image", self)),
            (Some(entry), None) => Ok(entry.digest.clone()),
            (Some(_), Some(_)) => Err(Error::invalid(
                "image layout",
                format!("{self} holds several images: name one, as in FOLDER:NAME"),
            )),
        }
    }

    /// The names of all named images.
    ///
    /// Blocking. Errors: NotFound – no such folder; Invalid – no layout.
    pub fn names(&self) -> Result<Vec<String>, Error> {
        let index = Index::read(&self.folder)?;
        Ok(index.names().map(str::to_owned).collect())
    }

    /// Blocking. Errors: NotFound; Invalid – it has another digest, or is no manifest.
    pub(crate) fn manifest(&self, digest: &Digest) -> Result<Manifest, Error> {
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
    pub(crate) fn blob(&self, digest: &Digest, limit: u64) -> Result<Bytes, Error> {
        let bytes = read(&self.path(digest), limit)?;
        if !digest.matches(&bytes) {
            return Err(self.damaged(digest));
        }
        Ok(bytes)
    }

    /// Runs `work` on the bytes of a layer; its result for bytes with another digest is dropped.
    ///
    /// Blocking. Errors: as [`Self::manifest`]; those of `work`.
    pub(crate) fn with_layer<T>(
        &self,
        digest: &Digest,
        work: impl FnOnce(&mut dyn Read) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let path = self.path(digest);
        let mut layer = Hashed {
            file: File::open(&path).map_err(|e| unreadable(&path, e))?,
            hasher: Hasher::new(digest.algorithm()),
        };
        let result = work(&mut layer);
        // Also after a failure: a damaged layer explains it better than its consequence.
        io::copy(&mut layer, &mut io::sink()).map_err(|e| unreadable(&path, e))?;
        if layer.hasher.finish() != *digest {
            return Err(self.damaged(digest));
        }
        result
    }

    /// The path of a blob.
    pub fn path(&self, digest: &Digest) -> PathBuf {
        let algorithm = digest.algorithm().as_str();
        self.folder.join("blobs").join(algorithm).join(digest.hex())
    }

    fn damaged(&self, digest: &Digest) -> Error {
        Error::invalid("image layout", format!("{self}: {digest} is damaged"))
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.folder.display())?;
        match &self.name {
            Some(name) => write!(f, ":{name}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Layout {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (folder, name) = match text.split_once(':') {
            Some((folder, name)) => (folder, Some(name.to_owned())),
            None => (text, None),
        };
        let is_name = |it: &String| {
            it.starts_with(|first: char| first == '_' || first.is_ascii_alphanumeric())
        };
        if folder.is_empty() || !name.as_ref().is_none_or(is_name) {
            let reason =
                format!("{text:?}: expected a folder, as in oci://FOLDER or oci://FOLDER:NAME");
            return Err(Error::invalid("image layout", reason));
        }
        let folder = PathBuf::from(folder);
        Ok(Self { folder, name })
    }
}

/// A file, hashed as it is read.
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
