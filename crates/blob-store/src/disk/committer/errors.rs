//! Errors of commits.

use std::io;

use crate::StoreError;

pub(super) const DOING: &str = "changing the storage folder";

pub(in crate::disk) fn ended() -> StoreError {
    StoreError::io(DOING)(io::Error::other("the store is closed"))
}

/// The disk has room for deletions only.
pub(in crate::disk) fn full() -> StoreError {
    let why = "the disk has only its reserve left, which is for deletions";
    StoreError::io(DOING)(io::Error::new(io::ErrorKind::StorageFull, why))
}

/// A copy of an error, one for each change of a failed batch.
pub(super) fn copy_of(error: &StoreError) -> StoreError {
    match error {
        StoreError::Io { doing, source } => StoreError::Io {
            doing,
            source: io::Error::new(source.kind(), source.to_string()),
        },
        StoreError::ReadOnly(why) => StoreError::ReadOnly(why.clone()),
        error => StoreError::io(DOING)(io::Error::other(error.to_string())),
    }
}
