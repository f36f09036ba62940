//! Files of an image layout: small ones whole, and their errors.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use bytes::Bytes;
use model::Error;

pub(super) fn read(path: &Path, limit: u64) -> Result<Bytes, Error> {
    let file = File::open(path).map_err(|e| unreadable(path, e))?;
    let mut bytes = Vec::new();
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| unreadable(path, e))?;
    if bytes.len() as u64 > limit {
        return Err(Error::TooLarge {
            what: "file of an image layout",
            limit,
        });
    }
    Ok(bytes.into())
}

/// Why a file cannot be written.
pub(super) fn failed(path: &Path, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::conflict(format!(
            "the medium is full: {} could not be written; make room and run it again, what is there is kept",
            path.display()
        )),
        _ => Error::internal(format!("writing {}", path.display()), error),
    }
}

pub(super) fn unreadable(path: &Path, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound {
        return Error::not_found("file of an image layout", path.display());
    }
    Error::internal(format!("reading {}", path.display()), error)
}
