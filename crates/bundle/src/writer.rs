//! Writer of a bundle, in one pass: content streams through, and the manifest goes into the place reserved for it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::TryStreamExt as _;
use mirror::archive::{SIGNATURE_BYTES, Signer};
use model::Error;
use oci::{Digest, Hasher};
use oci_client::client::BlobSource;
use sha2::{Digest as _, Sha256};

use crate::framing::{self, BLOCK, END, END_BYTES};
use crate::manifest::{
    BundleManifest, BundleMember, Encoding, MANIFEST, MANIFEST_LIMIT_BYTES, SIGNATURE, SUMS,
};

/// Units: bytes. For few large writes.
const BUFFER_BYTES: usize = 1 << 20;
/// Ratio and time were measured with the service images: level 6 of 9 takes them to 31 %.
const LEVEL: u32 = 6;
const MANIFEST_MODE: u32 = 0o644;
/// Units: bytes. Of a checksum in hexadecimal.
const HEX_BYTES: usize = 64;

/// Content of a member.
#[derive(Debug, Clone)]
pub struct PlannedContent {
    /// Relative path with slashes, without the suffix of its compression.
    pub path: String,
    /// Permission bits.
    pub mode: u32,
    /// Compression.
    pub encoding: Encoding,
    /// The bytes, without compression.
    pub source: BlobSource,
    /// Digest of the bytes, if it is known before they are read.
    pub digest: Option<Digest>,
}

impl PlannedContent {
    /// A file with this content.
    pub fn text(path: impl Into<String>, text: impl Into<Vec<u8>>) -> Self {
        let bytes: Vec<u8> = text.into();
        Self {
            path: path.into(),
            mode: MANIFEST_MODE,
            encoding: Encoding::Plain,
            source: BlobSource::Bytes(bytes.into()),
            digest: None,
        }
    }

    /// The file at `from`.
    pub fn file(path: impl Into<String>, from: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            mode: MANIFEST_MODE,
            encoding: Encoding::Plain,
            source: BlobSource::File(from.into()),
            digest: None,
        }
    }
}

/// Writes the bundle `target` by an atomic replace; returns its manifest. `manifest` has no members yet, and `progress` gets
/// the number of bytes read.
///
/// Errors: those of the sources; Invalid – content that differs from its digest or length, unsafe names; Internal – no space.
pub async fn write(
    target: &Path,
    manifest: BundleManifest,
    contents: &[PlannedContent],
    signer: Option<&Signer>,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<BundleManifest, Error> {
    let mut writer = BundleWriter::create(target, manifest, contents, signer.is_some())?;
    let mut read = 0;
    for content in contents {
        read += writer
            .add(content, &mut |count| progress(read + count))
            .await?;
    }
    writer.finish(signer)
}

/// Length of the manifest as reserved: with the longest numbers.
fn reserved(manifest: &BundleManifest, contents: &[PlannedContent]) -> Result<u64, Error> {
    let mut longest = manifest.clone();
    longest.size = u64::MAX;
    longest.members = contents
        .iter()
        .map(|content| BundleMember {
            path: format!("{}{}", content.path, suffix(content.encoding)),
            offset: u64::MAX,
            size: u64::MAX,
            sha256: "0".repeat(HEX_BYTES),
            mode: content.mode,
            encoding: content.encoding,
            content_size: u64::MAX,
        })
        .collect();
    let length = json(&longest)?.len() as u64;
    let paths: BTreeSet<&str> = longest.members.iter().map(|member| &*member.path).collect();
    if paths.len() < longest.members.len() {
        return Err(Error::invalid("bundle", "two members have one name"));
    }
    if length > MANIFEST_LIMIT_BYTES {
        let what = "manifest of a bundle";
        let limit = MANIFEST_LIMIT_BYTES;
        return Err(Error::TooLarge { what, limit });
    }
    Ok(length)
}

/// Suffix of the path of a member.
pub(crate) fn suffix(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::Plain => "",
        Encoding::Gzip => ".gz",
    }
}

/// Length of the head. Units: bytes.
pub(crate) fn head_size(manifest_size: u64, is_signed: bool) -> u64 {
    let padded = |size: u64| BLOCK + size.next_multiple_of(BLOCK);
    let signature = if is_signed {
        padded(SIGNATURE_BYTES as u64)
    } else {
        0
    };
    padded(manifest_size) + signature + padded(sums_size(is_signed))
}

/// Length of the checksums of the head. Units: bytes.
pub(crate) fn sums_size(is_signed: bool) -> u64 {
    let line = |name: &str| (HEX_BYTES + 2 + name.len() + 1) as u64;
    line(MANIFEST) + if is_signed { line(SIGNATURE) } else { 0 }
}

/// The checksums of the head, in the format of `sha256sum`.
pub(crate) fn sums(manifest: &[u8], signature: Option<&[u8]>) -> String {
    let line = |bytes: &[u8], name| format!("{}  {name}\n", hex::encode(Sha256::digest(bytes)));
    let mut text = line(manifest, MANIFEST);
    text.extend(signature.map(|signature| line(signature, SIGNATURE)));
    text
}

/// A bundle in progress; removed without [`BundleWriter::finish`].
struct BundleWriter {
    file: BufWriter<File>,
    part: PartialBundle,
    target: PathBuf,
    manifest: BundleManifest,
    manifest_size: u64,
    /// End of the file so far. Units: bytes.
    at: u64,
}

/// The file under its temporary name.
struct PartialBundle(PathBuf);

impl Drop for PartialBundle {
    fn drop(&mut self) {
        fs::remove_file(&self.0).ok();
    }
}

impl BundleWriter {
    fn create(
        target: &Path,
        manifest: BundleManifest,
        contents: &[PlannedContent],
        is_signed: bool,
    ) -> Result<Self, Error> {
        let manifest_size = reserved(&manifest, contents)?;
        let at = head_size(manifest_size, is_signed);
        let mut part = target.as_os_str().to_owned();
        part.push(".part");
        let part = PartialBundle(part.into());
        let open = || -> io::Result<File> {
            durable::create_parent(target)?;
            let mut file = File::create(&part.0)?;
            file.seek(SeekFrom::Start(at))?;
            Ok(file)
        };
        let file = open().map_err(|e| failed(target, e))?;
        Ok(Self {
            file: BufWriter::with_capacity(BUFFER_BYTES, file),
            part,
            target: target.to_owned(),
            manifest,
            manifest_size,
            at,
        })
    }

    /// Adds a member; returns the length of its content.
    async fn add(
        &mut self,
        content: &PlannedContent,
        progress: &mut (dyn FnMut(u64) + Send),
    ) -> Result<u64, Error> {
        let content_size = content.source.size().await?;
        let path = format!("{}{}", content.path, suffix(content.encoding));
        let target = self.target.clone();
        let failed = |e| failed(&target, e);
        // The length of compressed content is known at its end: its header is written then.
        let mut before = match content.encoding {
            Encoding::Plain => framing::before(self.at, &path, content.mode, content_size)?,
            Encoding::Gzip => framing::header(&path, content.mode, 0)?,
        };
        self.file.write_all(&before).map_err(failed)?;
        let offset = self.at + before.len() as u64;
        let member = MemberWriter::new(content.encoding, &mut self.file);
        let (size, sha256) = copy(content, content_size, member, &target, progress).await?;
        self.file
            .write_all(&vec![0; framing::after(size)])
            .map_err(failed)?;
        if content.encoding == Encoding::Gzip {
            before = framing::header(&path, content.mode, size)?;
            self.file.seek(SeekFrom::Start(self.at)).map_err(failed)?;
            self.file.write_all(&before).map_err(failed)?;
        }
        self.at = offset + size.next_multiple_of(BLOCK);
        self.file.seek(SeekFrom::Start(self.at)).map_err(failed)?;
        self.manifest.members.push(BundleMember {
            path,
            offset,
            size,
            sha256,
            mode: content.mode & 0o777,
            encoding: content.encoding,
            content_size,
        });
        Ok(content_size)
    }

    fn finish(mut self, signer: Option<&Signer>) -> Result<BundleManifest, Error> {
        self.manifest.size = self.at + END;
        let mut text = json(&self.manifest)?;
        // Spaces are allowed at the end of a JSON text.
        text.resize(
            usize::try_from(self.manifest_size).unwrap_or_default(),
            b' ',
        );
        let signature = signer.map(|signer| signer.sign(&text));
        let sums = sums(&text, signature.as_deref());
        let mut head = Vec::new();
        let mut member = |path: &str, bytes: &[u8]| -> Result<(), Error> {
            head.extend(framing::header(path, MANIFEST_MODE, bytes.len() as u64)?);
            head.extend(bytes);
            head.resize(head.len() + framing::after(bytes.len() as u64), 0);
            Ok(())
        };
        member(MANIFEST, &text)?;
        if let Some(signature) = &signature {
            member(SIGNATURE, signature)?;
        }
        member(SUMS, sums.as_bytes())?;
        let target = self.target.clone();
        let finished = (|| -> io::Result<()> {
            self.file.write_all(&[0; END_BYTES])?;
            self.file.seek(SeekFrom::Start(0))?;
            self.file.write_all(&head)?;
            self.file.flush()?;
            // Before the rename: after a power failure the name must not lead to a partial file.
            self.file.get_ref().sync_all()?;
            fs::rename(&self.part.0, &self.target)?;
            durable::sync_parent(&self.target)
        })();
        finished.map_err(|e| failed(&target, e))?;
        Ok(self.manifest)
    }
}

/// Stored bytes of a member, hashed and counted.
struct StoredBytes<'a> {
    file: &'a mut BufWriter<File>,
    sha256: Sha256,
    size: u64,
}

impl Write for StoredBytes<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.sha256.update(&bytes[..count]);
        self.size += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A member in progress.
enum MemberWriter<'a> {
    Plain(StoredBytes<'a>),
    Gzip(Box<GzEncoder<StoredBytes<'a>>>),
}

impl<'a> MemberWriter<'a> {
    fn new(encoding: Encoding, file: &'a mut BufWriter<File>) -> Self {
        let stored = StoredBytes {
            file,
            sha256: Sha256::new(),
            size: 0,
        };
        match encoding {
            Encoding::Plain => Self::Plain(stored),
            Encoding::Gzip => Self::Gzip(Box::new(GzEncoder::new(stored, Compression::new(LEVEL)))),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(stored) => stored.write_all(bytes),
            Self::Gzip(encoder) => encoder.write_all(bytes),
        }
    }

    /// Length and checksum of the stored bytes.
    fn finish(self) -> io::Result<(u64, String)> {
        let stored = match self {
            Self::Plain(stored) => stored,
            Self::Gzip(encoder) => encoder.finish()?,
        };
        Ok((stored.size, hex::encode(stored.sha256.finalize())))
    }
}

/// Writes content, and compares it with its length and digest; returns length and checksum of the stored bytes.
async fn copy(
    content: &PlannedContent,
    size: u64,
    mut member: MemberWriter<'_>,
    target: &Path,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<(u64, String), Error> {
    let wrong = |reason: &str| {
        let path = &content.path;
        Error::conflict(format!("{path} of the bundle: {reason}"))
    };
    let algorithm = content.digest.as_ref().map(Digest::algorithm);
    let algorithm = algorithm.unwrap_or(oci::Algorithm::Sha256);
    let mut hasher = content.digest.is_some().then(|| Hasher::new(algorithm));
    let chunks = content.source.chunks_after(Hasher::new(algorithm), 0).await;
    let mut chunks = chunks.map_err(|e| wrong(&e.chain()))?;
    let mut read = 0;
    while let Some(chunk) = chunks.try_next().await.map_err(|e| wrong(&e.chain()))? {
        read += chunk.len() as u64;
        if read > size {
            break;
        }
        if let Some(hasher) = &mut hasher {
            hasher.update(&chunk);
        }
        member.write(&chunk).map_err(|e| failed(target, e))?;
        progress(read);
    }
    if read != size {
        return Err(wrong("its length changed while it was read: retry"));
    }
    if hasher.map(Hasher::finish) != content.digest {
        return Err(wrong(
            "its bytes have another digest: the source is damaged",
        ));
    }
    member.finish().map_err(|e| failed(target, e))
}

fn json(value: &impl serde::Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(value).map_err(|e| Error::internal("writing the manifest", e))
}

fn failed(target: &Path, error: io::Error) -> Error {
    Error::internal(format!("writing {}", target.display()), error)
}
