//! Members of a set besides images.

use std::fs;
use std::io;
use std::path::PathBuf;

use bytes::Bytes;
use model::Error;
use oci::{Algorithm, Digest, Hasher};

use crate::archive::member::MemberKind;
use crate::archive::read::HashingReader;

/// A file or a folder besides images, for catalogs, charts and signatures. Folders above it are created.
#[derive(Debug, Clone)]
pub struct Extra {
    pub(super) path: String,
    pub(super) kind: MemberKind,
    pub(super) size: u64,
    pub(super) digest: Option<Digest>,
}

impl Extra {
    /// A file with that content.
    pub fn inline(path: impl Into<String>, content: impl Into<Bytes>) -> Self {
        let content = content.into();
        Self {
            path: path.into(),
            size: content.len() as u64,
            digest: Some(Digest::sha256(&content)),
            kind: MemberKind::Inline(content),
        }
    }

    /// A file of this machine, which must not change until the archive is written.
    ///
    /// Blocking: it is read. Errors: Internal – it cannot be read.
    pub fn local(path: impl Into<String>, file: PathBuf) -> Result<Self, Error> {
        let hashed = || {
            let mut reader =
                HashingReader::new(fs::File::open(&file)?, Hasher::new(Algorithm::Sha256));
            let size = io::copy(&mut reader, &mut io::sink())?;
            Ok((size, reader.finish()))
        };
        let failed = |e: io::Error| Error::internal(format!("reading {}", file.display()), e);
        let (size, digest) = hashed().map_err(failed)?;
        Ok(Self {
            path: path.into(),
            kind: MemberKind::Local(file),
            size,
            digest: Some(digest),
        })
    }

    /// That of its content, where it is known already.
    pub(crate) fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// A file that is fetched as blobs are, and shares its bytes with those of the same digest.
    pub fn blob(path: impl Into<String>, digest: Digest, size: u64) -> Self {
        Self {
            path: path.into(),
            kind: MemberKind::Blob(digest.clone()),
            size,
            digest: Some(digest),
        }
    }
}
