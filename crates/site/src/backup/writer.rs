//! Writer of a backup file: a tar with checksums, renamed to its final name when it is complete.

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Read, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use service::{Error, ResultExt as _};
use sha2::{Digest as _, Sha256};

use super::index::{BackupIndex, BackupMember, HEADING, Heading, INDEX, INDEX_SUM};

/// Mode of the file, which contains secrets.
const MODE: u32 = 0o600;
/// Units: bytes. For few large writes.
const BUFFER: usize = 1 << 20;

/// A backup in progress; removed without [`BackupWriter::finish`].
pub(super) struct BackupWriter {
    tar: tar::Builder<BufWriter<File>>,
    part: PartialFile,
    target: PathBuf,
    index: BackupIndex,
}

/// The file under its temporary name.
struct PartialFile(PathBuf);

impl Drop for PartialFile {
    fn drop(&mut self) {
        fs::remove_file(&self.0).ok();
    }
}

/// Owner and permissions of a member.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner {
    mode: u32,
    uid: u32,
    gid: u32,
}

impl Owner {
    /// For members that are not read from a file.
    pub(super) const PRIVATE: Self = Self {
        mode: MODE,
        uid: 0,
        gid: 0,
    };
}

impl From<&Metadata> for Owner {
    fn from(metadata: &Metadata) -> Self {
        Self {
            mode: metadata.mode() & 0o777,
            uid: metadata.uid(),
            gid: metadata.gid(),
        }
    }
}

impl BackupWriter {
    /// Creates the backup `target` under a temporary name.
    ///
    /// Errors: it exists already; its folder cannot be written.
    pub(super) fn create(target: &Path, heading: Heading) -> Result<Self, Error> {
        let doing = || format!("writing {}", target.display());
        if target.exists() {
            return Err(Error::new(
                doing(),
                "the file exists already: remove it, or choose another name",
            ));
        }
        let part = temporary(target, "part");
        let file = private(&part).doing(doing)?;
        let mut writer = Self {
            tar: tar::Builder::new(BufWriter::with_capacity(BUFFER, file)),
            part: PartialFile(part),
            target: target.to_owned(),
            index: BackupIndex {
                heading,
                members: Vec::new(),
            },
        };
        let heading = json(&writer.index.heading)?;
        writer.append(HEADING, &heading)?;
        Ok(writer)
    }

    /// Adds the first `size` bytes of `content` as member `path`.
    ///
    /// Errors: fewer bytes; no space.
    pub(super) fn add(
        &mut self,
        path: &str,
        owner: Owner,
        size: u64,
        content: impl Read,
    ) -> Result<(), Error> {
        let doing = || format!("saving {path}");
        let mut hashed = HashingReader {
            inner: content.take(size),
            sha256: Sha256::new(),
            size: 0,
        };
        self.tar
            .append_data(&mut header(owner, size), path, &mut hashed)
            .doing(doing)?;
        if hashed.size != size {
            return Err(Error::new(
                doing(),
                "the file became shorter while it was read: retry",
            ));
        }
        self.index.members.push(BackupMember {
            path: path.to_owned(),
            size,
            sha256: hex::encode(hashed.sha256.finalize()),
            mode: owner.mode,
            uid: owner.uid,
            gid: owner.gid,
            is_dangling: false,
        });
        Ok(())
    }

    /// Adds an open file.
    ///
    /// Errors: as [`BackupWriter::add`].
    pub(super) fn add_file(&mut self, path: &str, file: &File) -> Result<(), Error> {
        let metadata = file.metadata().doing(|| format!("saving {path}"))?;
        self.add(path, Owner::from(&metadata), metadata.len(), file)
    }

    /// Number of members.
    pub(super) fn members(&self) -> usize {
        self.index.members.len()
    }

    /// Completes the file, renames it and returns its length. Members in `dangling` are not restored.
    ///
    /// Errors: no space.
    pub(super) fn finish(mut self, dangling: &BTreeSet<String>) -> Result<u64, Error> {
        for member in &mut self.index.members {
            member.is_dangling = dangling.contains(&member.path);
        }
        let index = json(&self.index)?;
        let sum = format!("{}  {INDEX}\n", hex::encode(Sha256::digest(&index)));
        self.append(INDEX, &index)?;
        self.append(INDEX_SUM, sum.as_bytes())?;
        let finished = self
            .tar
            .into_inner()
            .and_then(|buffer| Ok(buffer.into_inner()?))
            .and_then(|file| {
                // Sync before the rename: a power failure must not leave the name on a partial file. The folder last, which
                // makes the rename durable.
                file.sync_all()?;
                fs::rename(&self.part.0, &self.target)?;
                let folder = self
                    .target
                    .parent()
                    .filter(|folder| *folder != Path::new(""));
                File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
                Ok(file.metadata()?.len())
            });
        finished.doing(|| format!("writing {}", self.target.display()))
    }

    fn append(&mut self, path: &str, content: &[u8]) -> Result<(), Error> {
        let mut header = header(Owner::PRIVATE, content.len() as u64);
        self.tar
            .append_data(&mut header, path, content)
            .doing(|| format!("saving {path}"))
    }
}

/// Creates a file that only this user can read.
///
/// Errors: the folder cannot be written.
pub(super) fn private(path: &Path) -> io::Result<File> {
    // Left by a killed run.
    fs::remove_file(path).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })?;
    OpenOptions::new()
        .create_new(true)
        .read(true)
        .write(true)
        .mode(MODE)
        .open(path)
}

/// Temporary name beside `target`.
pub(super) fn temporary(target: &Path, extension: &str) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    name.into()
}

fn header(owner: Owner, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(owner.mode);
    header.set_uid(owner.uid.into());
    header.set_gid(owner.gid.into());
    header
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec_pretty(value).doing("writing the index")
}

/// Hashes and counts the bytes that are read.
pub(super) struct HashingReader<R> {
    pub(super) inner: R,
    pub(super) sha256: Sha256,
    pub(super) size: u64,
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.sha256.update(&buffer[..count]);
        self.size += count as u64;
        Ok(count)
    }
}

impl std::fmt::Debug for BackupWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BackupWriter")
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

/// Flushes and rewinds a file, so that it can be added.
///
/// Errors: those of the file.
pub(super) fn rewound(mut file: File) -> io::Result<File> {
    use std::io::Seek as _;
    file.flush()?;
    file.rewind()?;
    Ok(file)
}
