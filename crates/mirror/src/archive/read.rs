//! Pieces of files: their places and bytes.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use model::Error;
use model::mirror_metadata::MirrorMetadata;
use oci::{Digest, Hasher, MANIFEST_LIMIT_BYTES, Manifest};
use oci_client::client::BlobSource;
use tokio::runtime::Handle;

use super::file::{ArchiveFile, ArchiveReader, LocalArchive, RecentRead, WebArchive, unreadable};
use super::name::METADATA;

/// Largest metadata: some 200 000 images. Units: bytes.
pub(crate) const METADATA_LIMIT_BYTES: u64 = 256 << 20;

/// Place of content in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePlace {
    pub file: ArchiveFile,
    /// Units: bytes.
    pub offset: u64,
    /// Units: bytes.
    pub size: u64,
}

impl FilePlace {
    /// The whole file.
    ///
    /// Errors: NotFound; Internal – its metadata cannot be read.
    pub(crate) fn of_file(path: &Path) -> Result<Self, Error> {
        let local = LocalArchive::whole(path)?;
        let size = local.size;
        Ok(Self {
            file: ArchiveFile::Local(local),
            offset: 0,
            size,
        })
    }

    /// The place of an archive's blob, in a task of the runtime.
    pub(crate) fn of_source(source: &BlobSource) -> Option<Self> {
        let (file, offset, size) = match source {
            BlobSource::Part { path, offset, size } => {
                let local = LocalArchive {
                    path: Arc::clone(path),
                    file: Arc::clone(path),
                    start: *offset,
                    size: *size,
                };
                (ArchiveFile::Local(local), 0, *size)
            }
            BlobSource::WebPart(part) => {
                let (file, runtime) = (part.file.clone(), Handle::current());
                let file = WebArchive::new(file, "", &runtime, &RecentRead::default());
                (ArchiveFile::Web(file), part.offset, part.size)
            }
            _ => return None,
        };
        Some(Self { file, offset, size })
    }

    /// The content, to be read from front to back.
    ///
    /// Blocking. Errors: NotFound; Internal – the file cannot be read; those of its web server.
    pub fn open(&self) -> Result<ArchiveReader, Error> {
        self.file.open(self.offset, self.size)
    }

    /// The content, to be sent.
    pub(crate) fn source(&self) -> BlobSource {
        self.file.source(self.offset, self.size)
    }

    /// Compares the content of the member `path` with its digest.
    ///
    /// Blocking. Errors: Invalid – it has another one; Internal – the file cannot be read.
    pub(crate) fn check(&self, path: &str, digest: &Digest) -> Result<(), Error> {
        let mut content = HashingReader::new(self.open()?, Hasher::new(digest.algorithm()));
        io::copy(&mut content, &mut io::sink()).map_err(|e| unreadable(&self.file, e))?;
        if content.finish() == *digest {
            return Ok(());
        }
        Err(self.damaged(path))
    }

    /// The manifest of that digest.
    ///
    /// Blocking. Errors: Invalid – it is damaged; others as [`Self::read`].
    pub(crate) fn manifest(&self, digest: &Digest) -> Result<Manifest, Error> {
        match Manifest::parse(self.read(MANIFEST_LIMIT_BYTES as u64)?, None) {
            Ok(manifest) if manifest.digest == *digest => Ok(manifest),
            _ => Err(self.damaged(&format!("manifest {digest}"))),
        }
    }

    pub(super) fn damaged(&self, what: &str) -> Error {
        Error::invalid(self.file.to_string(), format!("{what} is damaged"))
    }

    /// The whole content.
    ///
    /// Blocking. Errors: Internal – the file cannot be read; Invalid – it ends before; TooLarge – more than `limit` bytes.
    pub fn read(&self, limit: u64) -> Result<Bytes, Error> {
        if self.size > limit {
            return Err(Error::TooLarge {
                what: "member of the archive",
                limit,
            });
        }
        let mut bytes = Vec::new();
        self.open()?
            .read_to_end(&mut bytes)
            .map_err(|e| unreadable(&self.file, e))?;
        if (bytes.len() as u64) < self.size {
            return Err(truncated(&self.file));
        }
        Ok(bytes.into())
    }
}

/// The metadata in those bytes: the peer leaves the end of an older one after it.
///
/// Errors: Invalid.
pub(crate) fn metadata_of(bytes: &[u8]) -> Result<MirrorMetadata, Error> {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter();
    match values.next() {
        Some(Ok(metadata)) => Ok(metadata),
        Some(Err(error)) => Err(Error::invalid(METADATA, error.to_string())),
        None => Err(Error::invalid(METADATA, "it is empty")),
    }
}

pub(super) fn truncated(file: &ArchiveFile) -> Error {
    Error::invalid(file.to_string(), "its end is missing: copy the file again")
}

/// Hashes bytes as they are read.
#[derive(Debug)]
pub(super) struct HashingReader<R> {
    inner: R,
    hasher: Hasher,
}

impl<R: Read> HashingReader<R> {
    pub(super) fn new(inner: R, hasher: Hasher) -> Self {
        Self { inner, hasher }
    }

    /// The digest of all that was read.
    pub(super) fn finish(self) -> Digest {
        self.hasher.finish()
    }

    /// The hasher after all that was read.
    pub(super) fn into_hasher(self) -> Hasher {
        self.hasher
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        Ok(count)
    }
}
