//! Caches that every store has: manifests, small blobs, and blobs that clients checked for.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use moka::sync::Cache;

use oci::{Digest, Kind, Manifest, Repository};

/// Units: bytes. Cached manifests.
const MANIFESTS_BYTES: u64 = 8 << 20;
/// Units: bytes. Cached blobs, mostly configs.
const BLOBS_BYTES: u64 = 4 << 20;
/// Units: bytes. Overhead of a cached blob.
const BLOB_OVERHEAD: usize = 256;
/// Grace period between a client's check for a blob and the manifest of its push.
const WANTED: Duration = Duration::from_hours(1);
/// Remembered checks for blobs.
const WANTED_LIMIT: u64 = 50_000;

/// Cache of manifests by their SHA-256.
#[derive(Debug, Clone)]
pub(super) struct ManifestCache(Cache<Digest, Arc<Manifest>>);

impl Default for ManifestCache {
    fn default() -> Self {
        let cache = Cache::builder()
            .max_capacity(MANIFESTS_BYTES)
            .weigher(|_, manifest: &Arc<Manifest>| {
                // The parsed form takes about as much memory as the text.
                u32::try_from(manifest.bytes.len() * 2).unwrap_or(u32::MAX)
            })
            .build();
        Self(cache)
    }
}

impl ManifestCache {
    pub(super) fn get(&self, canonical: &Digest) -> Option<Arc<Manifest>> {
        self.0.get(canonical)
    }

    /// Caches a manifest, except of schema 1: its signatures may differ between repositories.
    pub(super) fn insert(&self, manifest: Arc<Manifest>) {
        if !matches!(manifest.kind, Kind::Schema1 { .. }) {
            self.0.insert(manifest.digest.clone(), manifest);
        }
    }

    pub(super) fn forget(&self, canonical: &Digest) {
        self.0.invalidate(canonical);
    }
}

/// Cache of small blobs by their SHA-256.
#[derive(Debug, Clone)]
pub(super) struct BlobCache(Cache<Digest, Bytes>);

impl Default for BlobCache {
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

impl BlobCache {
    /// Units: bytes. Largest blob that is cached.
    pub(super) const LIMIT: u64 = 16 << 10;

    pub(super) fn get(&self, canonical: &Digest) -> Option<Bytes> {
        self.0.get(canonical)
    }

    /// Caches a blob if it matches its digest: cached content is not verified again.
    pub(super) fn insert(&self, canonical: &Digest, bytes: &Bytes) {
        if Digest::sha256(bytes) == *canonical {
            self.0.insert(canonical.clone(), bytes.clone());
        }
    }
}

/// Blobs that clients checked for recently and may rely on without an upload.
#[derive(Debug)]
pub(super) struct CheckedBlobs(Cache<(Repository, Digest), ()>);

impl Default for CheckedBlobs {
    fn default() -> Self {
        let cache = Cache::builder()
            .max_capacity(WANTED_LIMIT)
            .time_to_live(WANTED)
            .build();
        Self(cache)
    }
}

impl CheckedBlobs {
    pub(super) fn insert(&self, repository: &Repository, digest: &Digest) {
        self.0.insert((repository.clone(), digest.clone()), ());
    }

    pub(super) fn contains(&self, repository: &Repository, digest: &Digest) -> bool {
        self.0.contains_key(&(repository.clone(), digest.clone()))
    }
}
