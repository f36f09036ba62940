//! Index queries by content: its holders, and the manifests that need it.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::compare::IndexedLinks;
use super::index::{BLOBS, IndexSnapshot, MANIFESTS, NEEDS, UNUSED, USES};
use super::queries::{RowBytes, failed, linked_blob, linked_manifest};
use super::rows::{DANGLING, ManifestRow, damaged, digest, key};
use super::tables::bounds;
use crate::{Result, StoredContent};
use oci::{Algorithm, Digest, Repository};

impl IndexSnapshot {
    /// The repositories that have content, as a blob or as a manifest.
    pub(super) fn holders(&self, canonical: &Digest) -> Result<Vec<Repository>> {
        let uses = self.0.open_table(USES).map_err(failed)?;
        let canonical = key(canonical);
        let mut found: Vec<Repository> = Vec::new();
        for row in uses.range((&*canonical, "", 0)..).map_err(failed)? {
            let (place, _) = row.map_err(failed)?;
            let (content, name, _) = place.value();
            if content != &*canonical {
                break;
            }
            if found.last().is_none_or(|last| last.as_str() != name) {
                found.push(name.parse().map_err(damaged)?);
            }
        }
        Ok(found)
    }

    /// SHA-256 digests with the first byte `prefix` that any repository has.
    pub(super) fn used(&self, prefix: u8) -> Result<BTreeSet<Digest>> {
        let uses = self.0.open_table(USES).map_err(failed)?;
        let first = [0, prefix];
        let mut found = BTreeSet::new();
        for row in uses.range((first.as_slice(), "", 0)..).map_err(failed)? {
            let (place, _) = row.map_err(failed)?;
            let (content, ..) = place.value();
            if !content.starts_with(&first) {
                break;
            }
            found.insert(digest(content)?);
        }
        Ok(found)
    }

    /// The manifests of a repository that need a blob or a manifest under any of its digests; sorted.
    pub(super) fn needed_by(&self, repository: &Repository, asked: &Digest) -> Result<Vec<Digest>> {
        let needs = self.0.open_table(NEEDS).map_err(failed)?;
        let name = repository.as_str();
        let mut found = BTreeSet::new();
        for needed in self.names(repository, asked)? {
            let needed = key(&needed);
            let range = (name, &*needed, [].as_slice())..;
            for row in needs.range(range).map_err(failed)? {
                let (place, ()) = row
                    .map(|(place, value)| (place, value.value()))
                    .map_err(failed)?;
                let (its_name, its_digest, manifest) = place.value();
                if its_name != name || its_digest != &*needed {
                    break;
                }
                found.insert(digest(manifest)?);
            }
        }
        Ok(found.into_iter().collect())
    }

    /// The links to blobs of a repository, under each of their digests.
    pub(super) fn known_blobs(&self, repository: &Repository) -> Result<IndexedLinks> {
        let blobs = self.0.open_table(BLOBS).map_err(failed)?;
        let (name, next) = bounds(repository);
        let (first, next): (&RowBytes, &str) = (&[], &next);
        let mut known = IndexedLinks::new();
        for row in blobs.range((name, first)..(next, first)).map_err(failed)? {
            let (place, value) = row.map_err(failed)?;
            known.insert(digest(place.value().1)?, value.value().0 == DANGLING);
        }
        Ok(known)
    }

    /// The links to manifests of a repository, under each of their digests.
    pub(super) fn known_manifests(&self, repository: &Repository) -> Result<IndexedLinks> {
        let manifests = self.0.open_table(MANIFESTS).map_err(failed)?;
        let (name, next) = bounds(repository);
        let (first, next): (&RowBytes, &str) = (&[], &next);
        let mut known = IndexedLinks::new();
        for row in manifests
            .range((name, first)..(next, first))
            .map_err(failed)?
        {
            let (place, value) = row.map_err(failed)?;
            let row = ManifestRow::decode(value.value())?;
            known.insert(digest(place.value().1)?, row.size == DANGLING);
        }
        Ok(known)
    }

    /// A manifest of a repository, also with a dangling link.
    pub(super) fn manifest_link(
        &self,
        repository: &Repository,
        digest: &Digest,
    ) -> Result<Option<ManifestRow>> {
        let manifests = self.0.open_table(MANIFESTS).map_err(failed)?;
        linked_manifest(&manifests, repository, digest)
    }

    /// When content was found without a link, 0 after the removal of its last link here; `None` when unknown. Units:
    /// nanoseconds since 1970.
    pub(super) fn unused_since(&self, canonical: &Digest) -> Result<Option<u64>> {
        let unused = self.0.open_table(UNUSED).map_err(failed)?;
        let since = unused.get(&*key(canonical)).map_err(failed)?;
        Ok(since.map(|since| since.value()))
    }

    /// Every digest under which a repository has content.
    fn names(&self, repository: &Repository, asked: &Digest) -> Result<BTreeSet<Digest>> {
        let blobs = self.0.open_table(BLOBS).map_err(failed)?;
        let manifests = self.0.open_table(MANIFESTS).map_err(failed)?;
        let canonical = match linked_blob(&blobs, repository, asked)? {
            Some(blob) => Some(blob.canonical),
            None => linked_manifest(&manifests, repository, asked)?.map(|row| row.canonical),
        };
        let canonical = canonical.unwrap_or_else(|| asked.clone());
        let mut found = BTreeSet::from([asked.clone(), canonical.clone()]);
        let (name, next) = bounds(repository);
        // Only SHA-512 digests are aliases, and they sort last.
        let (first, last): ((_, &RowBytes), (_, &RowBytes)) = ((name, &[1]), (&*next, &[]));
        let wanted = key(&canonical);
        for row in blobs.range(first..last).map_err(failed)? {
            let (place, value) = row.map_err(failed)?;
            if value.value().1 == &*wanted {
                found.insert(digest(place.value().1)?);
            }
        }
        for row in manifests.range(first..last).map_err(failed)? {
            let (place, value) = row.map_err(failed)?;
            if ManifestRow::decode(value.value())?.canonical == canonical {
                found.insert(digest(place.value().1)?);
            }
        }
        Ok(found)
    }

    /// Up to `limit` manifests of a repository after `after`, by their SHA-256.
    pub(super) fn manifests(
        &self,
        repository: &Repository,
        after: Option<&Digest>,
        limit: usize,
    ) -> Result<Vec<StoredContent>> {
        let manifests = self.0.open_table(MANIFESTS).map_err(failed)?;
        let (name, next) = bounds(repository);
        let (after, next) = (after.map(key).unwrap_or_default(), (&*next, [].as_slice()));
        let range = (Bound::Excluded((name, &*after)), Bound::Excluded(next));
        let mut found = Vec::new();
        for row in manifests
            .range::<(&str, &RowBytes)>(range)
            .map_err(failed)?
        {
            let (place, value) = row.map_err(failed)?;
            let digest = digest(place.value().1)?;
            let row = ManifestRow::decode(value.value())?;
            if found.len() >= limit || digest.algorithm() != Algorithm::Sha256 {
                break;
            }
            let size = Some(row.size).filter(|size| *size != DANGLING);
            found.push(StoredContent { digest, size });
        }
        Ok(found)
    }

    /// Up to `limit` blobs of a repository after `after`, by their SHA-256.
    pub(super) fn blobs_after(
        &self,
        repository: &Repository,
        after: Option<&Digest>,
        limit: usize,
    ) -> Result<Vec<StoredContent>> {
        let blobs = self.0.open_table(BLOBS).map_err(failed)?;
        let (name, next) = bounds(repository);
        let (after, next) = (after.map(key).unwrap_or_default(), (&*next, [].as_slice()));
        let range = (Bound::Excluded((name, &*after)), Bound::Excluded(next));
        let mut found = Vec::new();
        for row in blobs.range::<(&str, &RowBytes)>(range).map_err(failed)? {
            let (place, value) = row.map_err(failed)?;
            let digest = digest(place.value().1)?;
            if found.len() >= limit || digest.algorithm() != Algorithm::Sha256 {
                break;
            }
            let size = Some(value.value().0).filter(|size| *size != DANGLING);
            found.push(StoredContent { digest, size });
        }
        Ok(found)
    }
}
