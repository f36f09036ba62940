//! What every store remembers for a while.

use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;

use crate::{Digest, Kind, Manifest, Repository};

/// Units: bytes. Manifests that are asked for again and again.
const MANIFESTS_BYTES: u64 = 8 << 20;
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
