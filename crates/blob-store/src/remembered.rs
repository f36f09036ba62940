//! What every store remembers for a while.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use moka::sync::Cache;

use oci::{Digest, Kind, Manifest, Repository};

/// Units: bytes. Manifests that are asked for again and again.
const MANIFESTS_BYTES: u64 = 8 << 20;
/// Units: bytes. Blobs that are asked for again and again, which is what configs are.
const BLOBS_BYTES: u64 = 4 << 20;
/// Units: bytes. What a blob costs beside its content.
const BLOB_OVERHEAD: usize = 256;
/// How long the manifest of a push may follow the question for its blobs.
const WANTED: Duration = Duration::from_hours(1);
/// Questions that are remembered.
const WANTED_LIMIT: u64 = 50_000;

/// Manifests by their SHA-256.
#[derive(Debug, Clone)]
pub(super) struct Manifests(Cache<Digest, Arc<Manifest>>);

impl Default for Manifests {
    fn default() -> Self {
        let cache = Cache::builder()
            .max_capacity(MANIFESTS_BYTES)
            .weigher(|_, manifest: &Arc<Manifest>| {
                // What it is parsed into takes about as much as its text.
                u32::try_from(manifest.bytes.len() * 2).unwrap_or(u32::MAX)
            })
            .build();
        Self(cache)
    }
}

impl Manifests {
    pub(super) fn get(&self, canonical: &Digest) -> Option<Arc<Manifest>> {
        self.0.get(canonical)
    }

    /// Remembers a manifest, unless what is signed may have other signatures in another repository.
    pub(super) fn insert(&self, manifest: Arc<Manifest>) {
        if !matches!(manifest.kind, Kind::Schema1 { .. }) {
            self.0.insert(manifest.digest.clone(), manifest);
        }
    }

    pub(super) fn forget(&self, canonical: &Digest) {
        self.0.invalidate(canonical);
    }
}

/// Small blobs by their SHA-256.
#[derive(Debug, Clone)]
pub(super) struct Blobs(Cache<Digest, Bytes>);

impl Default for Blobs {
    fn default() -> Self {
        let cache = Cache::builder()
            .max_capacity(BLOBS_BYTES)
            .weigher(|_, bytes: &Bytes| {
                u32::try_from(bytes.len() + BLOB_OVERHEAD).unwrap_or(u32::MAX)
            })
            .build();
        Self(cache)
    }
}

impl Blobs {
    /// Units: bytes. Larger ones are not remembered.
    pub(super) const LIMIT: u64 = 16 << 10;

    pub(super) fn get(&self, canonical: &Digest) -> Option<Bytes> {
        self.0.get(canonical)
    }

    /// Remembers what was read, if it is right: nobody looks at it again.
    pub(super) fn insert(&self, canonical: &Digest, bytes: &Bytes) {
        if Digest::sha256(bytes) == *canonical {
            self.0.insert(canonical.clone(), bytes.clone());
        }
    }
}

/// Blobs that somebody was told of a short while ago, and relies on.
#[derive(Debug)]
pub(super) struct Wanted(Cache<(Repository, Digest), ()>);

impl Default for Wanted {
    fn default() -> Self {
        let cache = Cache::builder()
            .max_capacity(WANTED_LIMIT)
            .time_to_live(WANTED)
            .build();
        Self(cache)
    }
}

impl Wanted {
    pub(super) fn insert(&self, repository: &Repository, digest: &Digest) {
        self.0.insert((repository.clone(), digest.clone()), ());
    }

    pub(super) fn contains(&self, repository: &Repository, digest: &Digest) -> bool {
        self.0.contains_key(&(repository.clone(), digest.clone()))
    }
}
