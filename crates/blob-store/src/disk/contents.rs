//! Content without regard to repositories.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use super::download::Pieces;
use super::inner::DiskInner;
use super::scan;
use super::staged;
use crate::{Result, StoreError, StoredContent};
use oci::{Algorithm, Digest};

const DOING: &str = "listing content";

/// Content in the folder, and missing content that repositories link to; up to `limit` after `after`, sorted.
pub(super) fn list(
    inner: &DiskInner,
    after: Option<&Digest>,
    limit: usize,
) -> Result<Vec<StoredContent>> {
    let failed = || StoreError::io(DOING);
    let folder = inner.layout().blobs().join(Algorithm::Sha256.as_str());
    let first = after.map_or(0, first_byte);
    let mut found = Vec::new();
    for prefix in first..=u8::MAX {
        let names = scan::folders(&folder.join(format!("{prefix:02x}"))).map_err(failed())?;
        let in_folder = names
            .iter()
            .filter_map(|hex| format!("sha256:{hex}").parse::<Digest>().ok());
        let mut digests: BTreeSet<Digest> = in_folder.collect();
        digests.extend(inner.shared.index.snapshot()?.used(prefix)?);
        for digest in digests {
            if found.len() >= limit {
                return Ok(found);
            }
            if after.is_some_and(|after| digest <= *after) {
                continue;
            }
            match fs::metadata(inner.layout().data(&digest)) {
                Ok(data) => found.push(StoredContent {
                    digest,
                    size: Some(data.len()),
                }),
                Err(error) if staged::is_absent(&error) => {
                    // An empty folder that nothing links to is no content.
                    if inner.shared.index.snapshot()?.is_used(&digest)? {
                        found.push(StoredContent { digest, size: None });
                    }
                }
                Err(error) => return Err(failed()(error)),
            }
        }
    }
    Ok(found)
}

/// The unverified bytes of content. Blocks.
pub(super) fn open(inner: &Arc<DiskInner>, digest: &Digest) -> Result<Pieces> {
    let canonical = inner.canonical(digest)?;
    let canonical = canonical.ok_or_else(|| StoreError::UnknownBlob(digest.clone()))?;
    let opened = inner.content(&canonical, None).and_then(|file| {
        let size = file.metadata()?.len();
        Pieces::open(file, 0, size, None)
    });
    opened.map_err(|error| {
        if staged::is_absent(&error) {
            StoreError::UnknownBlob(canonical)
        } else {
            StoreError::io("reading content")(error)
        }
    })
}

fn first_byte(digest: &Digest) -> u8 {
    u8::from_str_radix(&digest.hex()[..2], 16).expect("a digest is hexadecimal")
}
