//! Examination of content: whether its bytes still have their digest.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::SystemTime;

use super::layout::FolderLayout;
use super::{scan, staged};
use crate::{Result, StoreError};
use oci::{Algorithm, Digest};

const DOING: &str = "quarantining damaged content";

/// Damaged or missing content.
#[derive(Debug)]
pub(super) struct DamagedContent {
    pub(super) canonical: Digest,
    /// The examined file; `None` when there was none.
    pub(super) stamp: Option<FileStamp>,
    pub(super) why: String,
}

/// Identity of a file, which changes when the file is replaced.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    inode: u64,
    size: u64,
    modified: Option<SystemTime>,
}

impl FileStamp {
    fn of(found: &Metadata) -> Self {
        Self {
            inode: found.ino(),
            size: found.len(),
            modified: found.modified().ok(),
        }
    }

    pub(super) fn at(path: &Path) -> io::Result<Option<Self>> {
        match fs::metadata(path) {
            Ok(found) => Ok(Some(Self::of(&found))),
            Err(error) if staged::is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Verifies content; `None` when it is intact. Blocks.
///
/// Errors: Io – it cannot be opened, or `is_wanted` returned false.
pub(super) fn examine(
    layout: &FolderLayout,
    canonical: &Digest,
    is_wanted: impl Fn() -> bool,
) -> Result<Option<DamagedContent>> {
    let condemned = |stamp, why| {
        let canonical = canonical.clone();
        Ok(Some(DamagedContent {
            canonical,
            stamp,
            why,
        }))
    };
    let looked = File::open(layout.data(canonical)).and_then(|file| {
        let stamp = FileStamp::of(&file.metadata()?);
        Ok((file, stamp))
    });
    let (file, stamp) = match looked {
        Ok(looked) => looked,
        Err(error) if staged::is_absent(&error) => {
            return condemned(None, "the bytes are not there".to_owned());
        }
        Err(error) => return Err(StoreError::io(DOING)(error)),
    };
    match scan::hash(&file, Algorithm::Sha256, &is_wanted) {
        Ok(actual) if actual == *canonical => Ok(None),
        Ok(actual) => condemned(Some(stamp), format!("the bytes have the digest {actual}")),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {
            Err(StoreError::io(DOING)(error))
        }
        Err(error) => condemned(Some(stamp), format!("the bytes cannot be read: {error}")),
    }
}
