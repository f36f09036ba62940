//! Cache keys: digests of the source, to detect stale caches.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use ring::digest::{Context, SHA256};

use crate::{FolderWalk, walk};

/// Size of a digest. Units: bytes.
const DIGEST: usize = 32;
/// Read buffer. Units: bytes.
const PIECE: usize = 256 << 10;
/// Age below which modification times are racy: a file may change again within one tick of the file system's clock,
/// some of which count whole seconds, or by another machine's clock. Units: seconds.
const RACY: i64 = 3;

/// Digest of the source of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheKey([u8; DIGEST]);

/// Digest of the file metadata in a folder: names, sizes, times. Equal metadata means equal content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FolderStat {
    digest: [u8; DIGEST],
    /// Latest modification or change time. Units: seconds since 1970.
    newest: i64,
}

/// Key of a folder with its file metadata: while that is unchanged, the files need not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyMemo {
    stat: [u8; DIGEST],
    key: CacheKey,
}

/// Hexadecimal.
impl fmt::Display for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        digits(&self.0, f)
    }
}

/// Hexadecimal digest of the metadata.
impl fmt::Display for FolderStat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        digits(&self.digest, f)
    }
}

fn digits(digest: &[u8; DIGEST], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    digest.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl CacheKey {
    /// Key of a source with an identity of its own, such as an image digest.
    pub fn of_text(text: &str) -> Self {
        let mut context = Context::new(&SHA256);
        context.update(text.as_bytes());
        Self(finish(context))
    }

    /// Key of the catalog files in `folder`: names and contents.
    ///
    /// Errors: a file cannot be read.
    pub fn of_folder(folder: &Path) -> io::Result<Self> {
        let mut context = Context::new(&SHA256);
        let mut piece = vec![0; PIECE];
        let walk = walk(folder);
        add_problems(&mut context, &walk);
        for path in walk.files {
            let mut file = File::open(folder.join(&path))?;
            add_name(&mut context, &path);
            let mut length: u64 = 0;
            loop {
                let count = file.read(&mut piece)?;
                if count == 0 {
                    break;
                }
                length += count as u64;
                context.update(&piece[..count]);
            }
            context.update(&length.to_le_bytes());
        }
        Ok(Self(finish(context)))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn take(bytes: &mut &[u8]) -> Self {
        Self(take(bytes))
    }
}

impl FolderStat {
    /// Metadata of the catalog files in `folder`.
    ///
    /// Errors: a file's metadata cannot be read.
    pub fn of_folder(folder: &Path) -> io::Result<Self> {
        let mut context = Context::new(&SHA256);
        let mut newest = i64::MIN;
        let walk = walk(folder);
        add_problems(&mut context, &walk);
        for path in walk.files {
            let of = fs::metadata(folder.join(&path))?;
            newest = newest.max(of.mtime()).max(of.ctime());
            add_name(&mut context, &path);
            for number in [of.mtime(), of.mtime_nsec(), of.ctime(), of.ctime_nsec()] {
                context.update(&number.to_le_bytes());
            }
            for number in [of.size(), of.ino(), of.dev()] {
                context.update(&number.to_le_bytes());
            }
        }
        let digest = finish(context);
        Ok(Self { digest, newest })
    }

    /// Whether a file may change after `now` without new metadata. Units: seconds since 1970.
    pub(super) fn is_racy(&self, now: i64) -> bool {
        self.newest >= now.saturating_sub(RACY)
    }
}

impl KeyMemo {
    pub(super) fn new(stat: &FolderStat, key: CacheKey) -> Self {
        let stat = stat.digest;
        Self { stat, key }
    }

    /// The key, if the metadata is unchanged.
    pub(super) fn key(&self, stat: &FolderStat) -> Option<CacheKey> {
        (self.stat == stat.digest).then_some(self.key)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let both = [&self.stat[..], self.key.bytes()].concat();
        let checksum = crc32fast::hash(&both).to_le_bytes();
        [&both[..], &checksum].concat()
    }

    /// `None` for invalid bytes.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (both, checksum) = bytes.split_at_checked(2 * DIGEST)?;
        let mut rest = both;
        let is_whole = crc32fast::hash(both).to_le_bytes() == checksum;
        is_whole.then(|| Self {
            stat: take(&mut rest),
            key: CacheKey::take(&mut rest),
        })
    }
}

/// Walk errors change the key: such a catalog is invalid.
fn add_problems(context: &mut Context, walk: &FolderWalk) {
    let origins = walk.problems.0.iter().flat_map(|it| &it.origin);
    for origin in origins {
        context.update(b"!");
        add_name(context, &origin.file);
    }
}

fn add_name(context: &mut Context, path: &Path) {
    let name = path.as_os_str().as_encoded_bytes();
    context.update(&(name.len() as u64).to_le_bytes());
    context.update(name);
}

fn finish(context: Context) -> [u8; DIGEST] {
    let digest = context.finish();
    digest
        .as_ref()
        .try_into()
        .expect("SHA-256 is as long as that")
}

fn take(bytes: &mut &[u8]) -> [u8; DIGEST] {
    let (own, rest) = bytes.split_at(DIGEST);
    *bytes = rest;
    own.try_into().expect("it was split off at this width")
}
