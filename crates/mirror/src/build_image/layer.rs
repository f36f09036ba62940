//! Layers that are made: the same content always makes the same one.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use model::Error;
use oci::{Algorithm, Descriptor, Digest, Hasher};
use oci_client::client::BlobSource;

use crate::folder::NamedFile;

/// A layer that was made.
#[derive(Debug, Clone)]
pub(crate) struct BuiltLayer {
    path: PathBuf,
    pub(super) digest: Digest,
    /// Digest of the uncompressed layer.
    pub(super) diff_id: Digest,
    size: u64,
}

/// Writer of a layer.
pub(crate) type Tar = tar::Builder<HashingWriter<GzEncoder<HashingWriter<BufWriter<NamedFile>>>>>;

impl BuiltLayer {
    /// Writes the members of `add` into the new file `path`.
    ///
    /// Errors: those of `add`; Internal – the file cannot be written.
    pub(crate) async fn write(
        path: PathBuf,
        add: impl FnOnce(&mut Tar) -> Result<(), Error> + Send + 'static,
    ) -> Result<Self, Error> {
        let failed = |e: io::Error| Error::internal("writing a layer", e);
        let work = move || {
            let file = NamedFile::create(&path).map_err(failed)?;
            let file = HashingWriter::new(BufWriter::new(file));
            let plain = HashingWriter::new(GzEncoder::new(file, Compression::default()));
            let mut tar = tar::Builder::new(plain);
            add(&mut tar)?;
            let finish = || {
                let plain = tar.into_inner()?;
                let mut file = plain.inner.finish()?;
                file.flush()?;
                Ok((file.hasher.finish(), plain.hasher.finish(), file.count))
            };
            let (digest, diff_id, size) = finish().map_err(failed)?;
            Ok(Self {
                path,
                digest,
                diff_id,
                size,
            })
        };
        let written = tokio::task::spawn_blocking(work).await;
        written.map_err(|e| Error::internal("writing a layer", e))?
    }

    pub(super) fn descriptor(&self, media_type: &str) -> Descriptor {
        Descriptor {
            media_type: media_type.to_owned(),
            digest: self.digest.clone(),
            size: self.size,
            platform: None,
            annotations: None,
        }
    }

    pub(super) fn source(&self) -> BlobSource {
        BlobSource::File(self.path.clone())
    }
}

/// A folder; of root, and of no time.
///
/// Errors: those of the file.
pub(crate) fn add_folder(tar: &mut Tar, path: &str) -> io::Result<()> {
    let mut header = header(tar::EntryType::Directory, 0o755, 0);
    tar.append_data(&mut header, format!("{path}/"), io::empty())
}

/// A file of so many bytes; of root, and of no time.
///
/// Errors: those of the file.
pub(crate) fn add_file(
    tar: &mut Tar,
    path: &str,
    size: u64,
    content: impl io::Read,
) -> io::Result<()> {
    let mut header = header(tar::EntryType::Regular, 0o644, size);
    tar.append_data(&mut header, path, content)
}

fn header(kind: tar::EntryType, mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}

/// Hashes and counts bytes as they are written.
pub(crate) struct HashingWriter<W> {
    inner: W,
    hasher: Hasher,
    count: u64,
}

impl<W> HashingWriter<W> {
    fn new(inner: W) -> Self {
        Self {
            inner,
            hasher: Hasher::new(Algorithm::Sha256),
            count: 0,
        }
    }
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(buffer)?;
        self.hasher.update(&buffer[..count]);
        self.count += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
