//! Which tags lead to a manifest.

use blob_store::{ContentStore as _, StoreError};
use oci::{Algorithm, Digest, Manifest, Repository, Tag};

use crate::storage::Store;

/// Tags that are read at once.
const BATCH: usize = 1000;
/// Tags of a repository that are looked through: beyond, the answer would take too long.
const LOOKED_THROUGH: usize = 100_000;
/// Tools without the referrers API keep referrers under a tag made of the subject's digest. Source: cosign,
/// and distribution-spec, referrers tag schema.
const ENDINGS: [&str; 4] = ["", ".sig", ".att", ".sbom"];

/// The tags of `repository` that point at `manifest`, by whichever digest.
pub(super) async fn at(
    store: &Store,
    repository: &Repository,
    manifest: &Manifest,
) -> Result<Vec<Tag>, StoreError> {
    let long = Digest::of(Algorithm::Sha512, &manifest.bytes);
    let (mut found, mut after) = (Vec::new(), String::new());
    for _ in 0..LOOKED_THROUGH / BATCH {
        let tags = store.tagged(repository, &after, BATCH).await?;
        let is_end = tags.len() < BATCH;
        if let Some((last, _)) = tags.last() {
            after = last.to_string();
        }
        let fitting = tags
            .into_iter()
            .filter(|(_, digest)| *digest == manifest.digest || *digest == long);
        found.extend(fitting.map(|(tag, _)| tag));
        if is_end {
            break;
        }
        // So many rows are read without waiting for anything.
        tokio::task::yield_now().await;
    }
    Ok(found)
}

/// Tags of the referrers tag scheme for `manifest`.
pub(super) async fn fallback(
    store: &Store,
    repository: &Repository,
    manifest: &Manifest,
) -> Result<Vec<Tag>, StoreError> {
    let mut found = Vec::new();
    for ending in ENDINGS {
        let digest = &manifest.digest;
        let tag = format!("{}-{}{ending}", digest.algorithm().as_str(), digest.hex());
        let Ok(tag) = tag.parse() else { continue };
        match store.resolve_tag(repository, &tag).await {
            Ok(_) => found.push(tag),
            Err(StoreError::UnknownManifest(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}
