//! Queries of the index's tables, in read and in write transactions.

use std::io;
use std::ops::Bound;

use redb::ReadableTable;

use super::rows::{DANGLING, ManifestRow, damaged, digest, key};
use crate::{Result, StoreError};
use oci::{Digest, Repository, Tag};

pub(super) const DOING: &str = "using the index of the storage folder";

pub(super) type RowBytes = [u8];

/// A blob that a repository has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndexedBlob {
    /// Its SHA-256.
    pub(super) canonical: Digest,
    /// Units: bytes.
    pub(super) size: u64,
}

pub(super) fn is_needed(
    needs: &impl ReadableTable<(&'static str, &'static RowBytes, &'static RowBytes), ()>,
    repository: &Repository,
    digest: &Digest,
) -> Result<bool> {
    let (name, digest) = (repository.as_str(), key(digest));
    let range = (name, &*digest, [].as_slice())..;
    let first = needs.range(range).map_err(failed)?.next();
    let first = first.transpose().map_err(failed)?;
    Ok(first.is_some_and(|(place, _)| {
        let (its_name, its_digest, _) = place.value();
        its_name == name && its_digest == &*digest
    }))
}

pub(super) fn manifest_in(
    manifests: &impl ReadableTable<(&'static str, &'static RowBytes), &'static RowBytes>,
    repository: &Repository,
    digest: &Digest,
) -> Result<Option<ManifestRow>> {
    let linked = linked_manifest(manifests, repository, digest)?;
    Ok(linked.filter(|row| row.size != DANGLING))
}

/// A manifest, also with a dangling link.
pub(super) fn linked_manifest(
    manifests: &impl ReadableTable<(&'static str, &'static RowBytes), &'static RowBytes>,
    repository: &Repository,
    digest: &Digest,
) -> Result<Option<ManifestRow>> {
    let name = repository.as_str();
    let asked = key(digest);
    let row = |key: &RowBytes| -> Result<Option<ManifestRow>> {
        let row = manifests.get((name, key)).map_err(failed)?;
        row.map(|row| ManifestRow::decode(row.value())).transpose()
    };
    let Some(found) = row(&asked)? else {
        return Ok(None);
    };
    // An alias counts only while its canonical row exists.
    let canonical = key(&found.canonical);
    if canonical == asked {
        return Ok(Some(found));
    }
    row(&canonical)
}

pub(super) fn blob_in(
    blobs: &impl ReadableTable<(&'static str, &'static RowBytes), (u64, &'static RowBytes)>,
    repository: &Repository,
    asked: &Digest,
) -> Result<Option<IndexedBlob>> {
    let linked = linked_blob(blobs, repository, asked)?;
    Ok(linked.filter(|blob| blob.size != DANGLING))
}

/// A blob, also with a dangling link.
pub(super) fn linked_blob(
    blobs: &impl ReadableTable<(&'static str, &'static RowBytes), (u64, &'static RowBytes)>,
    repository: &Repository,
    asked: &Digest,
) -> Result<Option<IndexedBlob>> {
    let name = repository.as_str();
    let Some(row) = blobs.get((name, &*key(asked))).map_err(failed)? else {
        return Ok(None);
    };
    let (size, of_other_name) = row.value();
    if of_other_name.is_empty() {
        let canonical = asked.clone();
        return Ok(Some(IndexedBlob { canonical, size }));
    }
    let Some(row) = blobs.get((name, of_other_name)).map_err(failed)? else {
        return Ok(None);
    };
    let (canonical, size) = (digest(of_other_name)?, row.value().0);
    Ok(Some(IndexedBlob { canonical, size }))
}

pub(super) fn tags_in(
    tags: &impl ReadableTable<(&'static str, &'static str), &'static RowBytes>,
    repository: &Repository,
    after: &str,
    limit: usize,
) -> Result<Vec<(Tag, Digest)>> {
    let name = repository.as_str();
    let range = (Bound::Excluded((name, after)), Bound::Unbounded);
    let mut found = Vec::new();
    for row in tags
        .range::<(&str, &str)>(range)
        .map_err(failed)?
        .take(limit)
    {
        let (place, at) = row.map_err(failed)?;
        let (its_name, tag) = place.value();
        if its_name != name {
            break;
        }
        found.push((tag.parse().map_err(damaged)?, digest(at.value())?));
    }
    Ok(found)
}

pub(super) fn failed(error: impl Into<redb::Error>) -> StoreError {
    let error = match error.into() {
        redb::Error::Io(error) => error,
        error => io::Error::other(error),
    };
    StoreError::io(DOING)(error)
}
