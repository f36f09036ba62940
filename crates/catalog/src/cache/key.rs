//! What a cache was built from, so that a stale one is noticed.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use ring::digest::{Context, SHA256};

use crate::{FolderWalk, walk};

/// Units: bytes. Of a digest.
const DIGEST: usize = 32;
/// Units: bytes. What is read of a file at once.
const PIECE: usize = 256 << 10;
/// Units: seconds. A file that was changed so shortly before it was looked at may have been changed again without
/// another time: some file systems count in whole seconds, and by another machine's clock.
const RACY: i64 = 3;

/// The digest of everything that a cache is built from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheKey([u8; DIGEST]);

/// What the file system says of a folder: names, lengths and times of its files. Where it is the same, so is the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FolderStat {
    digest: [u8; DIGEST],
    /// Units: seconds since 1970. The latest of the times.
    newest: i64,
}

/// The key of a folder as it was when it looked so: while it does, its files need not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyMemo {
    look: [u8; DIGEST],
    key: CacheKey,
}

/// In hexadecimal digits.
impl fmt::Display for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        digits(&self.0, f)
    }
}

/// Other digits when the folder looks otherwise.
impl fmt::Display for FolderStat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        digits(&self.digest, f)
    }
}

fn digits(digest: &[u8; DIGEST], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    digest.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl CacheKey {
    /// Of something that has a digest already, for instance of an image.
    pub fn of_text(text: &str) -> Self {
        let mut context = Context::new(&SHA256);
        context.update(text.as_bytes());
        Self(finish(context))
    }

    /// Of the files in `folder` that hold documents: their names and contents.
    ///
    /// Errors: a file that cannot be read.
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
    /// At the files in `folder` that hold documents.
    ///
    /// Errors: a file that cannot be looked at.
    pub fn at(folder: &Path) -> io::Result<Self> {
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

    /// Whether a file may change after `now`, in seconds since 1970, and the folder look as before.
    pub(super) fn is_racy(&self, now: i64) -> bool {
        self.newest >= now.saturating_sub(RACY)
    }
}

impl KeyMemo {
    pub(super) fn new(look: &FolderStat, key: CacheKey) -> Self {
        let look = look.digest;
        Self { look, key }
    }

    /// The key, if the folder looks as it did.
    pub(super) fn key(&self, look: &FolderStat) -> Option<CacheKey> {
        (self.look == look.digest).then_some(self.key)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let both = [&self.look[..], self.key.bytes()].concat();
        let checksum = crc32fast::hash(&both).to_le_bytes();
        [&both[..], &checksum].concat()
    }

    /// Nothing when the bytes are no memo.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (both, checksum) = bytes.split_at_checked(2 * DIGEST)?;
        let mut rest = both;
        let is_whole = crc32fast::hash(both).to_le_bytes() == checksum;
        is_whole.then(|| Self {
            look: take(&mut rest),
            key: CacheKey::take(&mut rest),
        })
    }
}

/// With something that is no file a catalog is another one: it cannot be served.
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
