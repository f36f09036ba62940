//! Reader of a bundle: the head at once, then all bytes, then single members.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::read::GzDecoder;
use mirror::archive::{SIGNATURE_BYTES, Verifier};
use model::Error;
use oci::Digest;
use oci_client::client::BlobSource;
use sha2::{Digest as _, Sha256};

use crate::framing::{self, BLOCK, BLOCK_BYTES, END, END_BYTES};
use crate::images::blob_path;
use crate::manifest::{
    BundleManifest, BundleMember, BundledImage, Encoding, MANIFEST, MANIFEST_LIMIT_BYTES,
    SIGNATURE, SUMS,
};
use crate::writer::{head_size, suffix, sums, sums_size};

/// Units: bytes.
const BUFFER_BYTES: usize = 1 << 20;
const MANIFEST_MODE: u32 = 0o644;

/// A bundle whose head was read.
#[derive(Debug, Clone)]
pub struct BundleFile {
    path: Arc<Path>,
    file: Arc<File>,
    manifest: Arc<BundleManifest>,
    /// Units: bytes.
    head_size: u64,
    is_signed: bool,
}

impl BundleFile {
    /// Reads the head: manifest, signature and checksums. A signature is verified with `key`, and required then.
    ///
    /// Blocking. Errors: Invalid – no bundle, damaged, truncated, not signed by `key`; Internal – it cannot be read.
    pub fn open(path: &Path, key: Option<&Verifier>) -> Result<Self, Error> {
        let unreadable = |e| Error::internal(format!("reading {}", path.display()), e);
        let file = File::open(path).map_err(unreadable)?;
        let length = file.metadata().map_err(unreadable)?.len();
        let mut head = HeadReader {
            section: FileSection::new(Arc::new(file), 0, length),
            path,
        };
        let size = head.manifest_size()?;
        let text = head.member(MANIFEST, size)?;
        let after_manifest = head.section.at;
        let signature = head.member(SIGNATURE, SIGNATURE_BYTES as u64).ok();
        if signature.is_none() {
            head.section.at = after_manifest;
        }
        let sums_found = head.member(SUMS, sums_size(signature.is_some()))?;
        if sums_found != sums(&text, signature.as_deref()).as_bytes() {
            return Err(head.wrong("the manifest is damaged: its checksum is another"));
        }
        match (key, &signature) {
            (None, _) => {}
            (Some(_), None) => return Err(head.wrong("it is not signed")),
            (Some(key), Some(signature)) if key.accepts(&text, signature) => {}
            (Some(_), Some(_)) => {
                return Err(
                    head.wrong("its signature is not of this key, or the manifest was changed")
                );
            }
        }
        let manifest = BundleManifest::parse(&text)?;
        let bundle = Self {
            path: path.into(),
            file: Arc::clone(&head.section.file),
            head_size: head_size(size, signature.is_some()),
            manifest: Arc::new(manifest),
            is_signed: signature.is_some(),
        };
        bundle.check_places()?;
        if length != bundle.manifest.size {
            let whole = bundle.manifest.size;
            let reason = if length < whole {
                format!("it is truncated: {length} of {whole} bytes")
            } else {
                format!("it has {} bytes behind its end", length - whole)
            };
            return Err(head.wrong(&reason));
        }
        Ok(bundle)
    }

    /// The manifest.
    pub fn manifest(&self) -> &BundleManifest {
        &self.manifest
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it has a signature, which [`Self::open`] verified if it got a key.
    pub fn is_signed(&self) -> bool {
        self.is_signed
    }

    /// Compares every byte behind the head with the manifest. `progress` gets the number of bytes read.
    ///
    /// Blocking. Errors: Invalid – a member, or a byte between members, differs; Internal – it cannot be read.
    pub fn verify(&self, progress: &mut dyn FnMut(u64)) -> Result<(), Error> {
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut at = self.head_size;
        for member in &self.manifest.members {
            let before = framing::before_stored(at, member)?;
            let damaged = || self.wrong(&format!("{} is damaged", member.path));
            if !self.has_bytes(at, &before)? {
                return Err(damaged());
            }
            let mut section = self.section(member);
            let mut sha256 = Sha256::new();
            loop {
                let count = section.read(&mut buffer).map_err(|e| self.unreadable(e))?;
                if count == 0 {
                    break;
                }
                sha256.update(&buffer[..count]);
                progress(section.at);
            }
            if hex::encode(sha256.finalize()) != member.sha256 {
                return Err(damaged());
            }
            let end = member.offset + member.size;
            if !self.has_bytes(end, &vec![0; framing::after(member.size)])? {
                return Err(damaged());
            }
            at = end.next_multiple_of(BLOCK);
        }
        if !self.has_bytes(at, &[0; END_BYTES])? {
            return Err(self.wrong("its end is damaged"));
        }
        Ok(())
    }

    /// The member of this path, compressed or not.
    pub fn member(&self, path: &str) -> Option<&BundleMember> {
        let is_named = |member: &&BundleMember| {
            member.path.strip_suffix(suffix(member.encoding)) == Some(path)
        };
        self.manifest.members.iter().find(is_named)
    }

    /// The members below a folder, which is given with its slash.
    pub fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = &'a BundleMember> {
        let members = self.manifest.members.iter();
        members.filter(move |member| member.path.starts_with(folder))
    }

    /// The content of a small member.
    ///
    /// Blocking. Errors: NotFound; TooLarge; Invalid – it changed after the verification; Internal – it cannot be read.
    pub fn bytes(&self, path: &str, limit: u64) -> Result<Vec<u8>, Error> {
        let member = self.member(path);
        let member = member.ok_or_else(|| Error::not_found("member of the bundle", path))?;
        if member.content_size > limit {
            let what = "member of the bundle";
            return Err(Error::TooLarge { what, limit });
        }
        let mut bytes = Vec::new();
        self.copy(member, &mut bytes)?;
        Ok(bytes)
    }

    /// Writes a member to `target` by an atomic replace.
    ///
    /// Blocking. Errors: Invalid – it changed after the verification; Internal – no space, or it cannot be read.
    pub fn extract(&self, member: &BundleMember, target: &Path) -> Result<(), Error> {
        let failed = |e| Error::internal(format!("writing {}", target.display()), e);
        durable::create_parent(target).map_err(failed)?;
        let mut part = target.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        fs::remove_file(&part)
            .or_else(ignore_missing)
            .map_err(failed)?;
        let mut options = OpenOptions::new();
        let options = options.create_new(true).read(true).write(true).mode(0o600);
        let mut file = options.open(&part).map_err(failed)?;
        let copied = match member.encoding {
            Encoding::Plain => self.share(member, &mut file),
            Encoding::Gzip => self.copy(member, &mut file),
        };
        let finished = copied.and_then(|()| {
            let finish = || -> io::Result<()> {
                file.set_permissions(Permissions::from_mode(member.mode & 0o777))?;
                file.sync_all()?;
                fs::rename(&part, target)?;
                durable::sync_parent(target)
            };
            finish().map_err(failed)
        });
        finished.inspect_err(|_| drop(fs::remove_file(&part)))
    }

    /// Writes the layout of `images` to the new folder `target`.
    ///
    /// Blocking. Errors: as [`Self::extract`]; NotFound – a blob is not in the bundle.
    pub fn extract_layout(&self, images: &[&BundledImage], target: &Path) -> Result<(), Error> {
        for digest in images.iter().flat_map(|image| &image.content) {
            let path = blob_path(digest);
            let file = target.join(&path);
            if !file.exists() {
                let member = self.member(&path);
                let member = member.ok_or_else(|| Error::not_found("blob", digest))?;
                self.extract(member, &file)?;
            }
        }
        let write = || -> io::Result<()> {
            durable::create_folder(target)?;
            fs::write(target.join("oci-layout"), crate::images::LAYOUT)?;
            fs::write(target.join("index.json"), crate::images::index(images))
        };
        write().map_err(|e| Error::internal(format!("writing {}", target.display()), e))
    }

    /// The place of a blob, to be sent from there; none for compressed members.
    pub fn blob(&self, digest: &Digest) -> Option<BlobSource> {
        self.source(self.member(&blob_path(digest))?)
    }

    /// The place of a member, to be sent from there; none for compressed ones.
    pub fn source(&self, member: &BundleMember) -> Option<BlobSource> {
        (member.encoding == Encoding::Plain).then(|| BlobSource::Part {
            path: Arc::clone(&self.path),
            offset: member.offset,
            size: member.size,
        })
    }

    /// Copies the content of a member, in the kernel where the file systems can share or copy its blocks.
    fn share(&self, member: &BundleMember, target: &mut File) -> Result<(), Error> {
        let (mut from, mut to, mut left) = (member.offset, 0, member.size);
        while left > 0 {
            let length = usize::try_from(left).unwrap_or(usize::MAX).min(1 << 30);
            let copied = rustix::fs::copy_file_range(
                &*self.file,
                Some(&mut from),
                &*target,
                Some(&mut to),
                length,
            );
            match copied {
                Ok(count) if count > 0 => left -= count as u64,
                // Between file systems that cannot, or of old kernels.
                _ => return self.copy(member, target),
            }
        }
        // The bytes as written, which may have changed after the verification.
        let mut sha256 = Sha256::new();
        let mut section = FileSection {
            file: Arc::new(target.try_clone().map_err(|e| self.unreadable(e))?),
            at: 0,
            end: member.size,
        };
        io::copy(
            &mut BufReader::with_capacity(BUFFER_BYTES, &mut section),
            &mut HashWriter(&mut sha256),
        )
        .map_err(|e| self.unreadable(e))?;
        self.compare(member, sha256)
    }

    /// Copies the content of a member.
    fn copy(&self, member: &BundleMember, target: &mut dyn io::Write) -> Result<(), Error> {
        let mut hashed = HashedSection {
            section: self.section(member),
            sha256: Sha256::new(),
        };
        let copied = match member.encoding {
            Encoding::Plain => copy_all(&mut hashed, target),
            Encoding::Gzip => {
                let input = BufReader::with_capacity(BUFFER_BYTES, &mut hashed);
                // Bounded: the manifest states the length.
                copy_all(
                    &mut GzDecoder::new(input).take(member.content_size + 1),
                    target,
                )
            }
        };
        let copied = copied.map_err(|e| {
            Error::internal(
                format!("extracting {} of {}", member.path, self.path.display()),
                e,
            )
        })?;
        let rest = io::copy(&mut hashed, &mut io::sink());
        rest.map_err(|e| self.unreadable(e))?;
        self.compare(member, hashed.sha256)?;
        if copied == member.content_size {
            return Ok(());
        }
        Err(self.wrong(&format!("{} has another length", member.path)))
    }

    fn compare(&self, member: &BundleMember, sha256: Sha256) -> Result<(), Error> {
        if hex::encode(sha256.finalize()) == member.sha256 {
            return Ok(());
        }
        Err(self.wrong(&format!("{} changed after the verification", member.path)))
    }

    /// Whether members are where the format has them.
    fn check_places(&self) -> Result<(), Error> {
        let mut at = self.head_size;
        for member in &self.manifest.members {
            let before = framing::before_stored(at, member)?.len() as u64;
            let end = member.offset.checked_add(member.size);
            let end = end.and_then(|end| end.checked_next_multiple_of(BLOCK));
            match end {
                Some(end) if member.offset == at + before => at = end,
                _ => return Err(self.wrong(&format!("{} is in an unexpected place", member.path))),
            }
        }
        if self.manifest.size == at + END {
            return Ok(());
        }
        Err(self.wrong("the manifest has a wrong length"))
    }

    fn has_bytes(&self, at: u64, expected: &[u8]) -> Result<bool, Error> {
        let mut found = vec![0; expected.len()];
        match self.file.read_exact_at(&mut found, at) {
            Ok(()) => Ok(found == expected),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(e) => Err(self.unreadable(e)),
        }
    }

    fn section(&self, member: &BundleMember) -> FileSection {
        FileSection {
            file: Arc::clone(&self.file),
            at: member.offset,
            end: member.offset + member.size,
        }
    }

    fn wrong(&self, reason: &str) -> Error {
        wrong(&self.path, reason)
    }

    fn unreadable(&self, error: io::Error) -> Error {
        Error::internal(format!("reading {}", self.path.display()), error)
    }
}

fn wrong(path: &Path, reason: &str) -> Error {
    Error::invalid(path.display().to_string(), reason)
}

fn ignore_missing(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    }
}

/// Copies with large writes.
fn copy_all(from: &mut dyn Read, to: &mut dyn io::Write) -> io::Result<u64> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut copied = 0;
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            return Ok(copied);
        }
        to.write_all(&buffer[..count])?;
        copied += count as u64;
    }
}

/// A range of a file.
struct FileSection {
    file: Arc<File>,
    at: u64,
    end: u64,
}

impl FileSection {
    fn new(file: Arc<File>, at: u64, end: u64) -> Self {
        Self { file, at, end }
    }
}

impl Read for FileSection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let length = buffer.len().min(left);
        let count = self.file.read_at(&mut buffer[..length], self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// A range of a file, hashed as it is read.
struct HashedSection {
    section: FileSection,
    sha256: Sha256,
}

impl Read for HashedSection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.section.read(buffer)?;
        self.sha256.update(&buffer[..count]);
        Ok(count)
    }
}

/// Hashes the bytes that are written.
struct HashWriter<'a>(&'a mut Sha256);

impl io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The members of the head.
struct HeadReader<'a> {
    section: FileSection,
    path: &'a Path,
}

impl HeadReader<'_> {
    /// The length of the manifest, by the first header.
    fn manifest_size(&mut self) -> Result<u64, Error> {
        let foreign = || self.wrong("no file of `atoll bundle`, or its first bytes are damaged");
        let mut block = [0; BLOCK_BYTES];
        let read = self.section.file.read_exact_at(&mut block, 0);
        read.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => foreign(),
            _ => Error::internal(format!("reading {}", self.path.display()), error),
        })?;
        let header = tar::Header::from_byte_slice(&block);
        let size = header.size().map_err(|_| foreign())?;
        if framing::header(MANIFEST, MANIFEST_MODE, size)? != block {
            return Err(foreign());
        }
        if size > MANIFEST_LIMIT_BYTES {
            let limit = MANIFEST_LIMIT_BYTES;
            return Err(self.wrong(&format!("its manifest is larger than {limit} bytes")));
        }
        Ok(size)
    }

    /// The next member, which must have this name and length.
    fn member(&mut self, path: &str, size: u64) -> Result<Vec<u8>, Error> {
        let expected = framing::header(path, MANIFEST_MODE, size)?;
        if self.take(expected.len())? != expected {
            return Err(self.wrong(&format!("the header of {path} is damaged")));
        }
        let bytes = self.take(usize::try_from(size).unwrap_or(usize::MAX))?;
        let padding = framing::after(size);
        if self.take(padding)? != vec![0; padding] {
            return Err(self.wrong(&format!("the end of {path} is damaged")));
        }
        Ok(bytes)
    }

    fn take(&mut self, length: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; length];
        match self.section.read_exact(&mut bytes) {
            Ok(()) => Ok(bytes),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                Err(self.wrong("it is truncated: its head is incomplete"))
            }
            Err(e) => Err(Error::internal(
                format!("reading {}", self.path.display()),
                e,
            )),
        }
    }

    fn wrong(&self, reason: &str) -> Error {
        wrong(self.path, reason)
    }
}
