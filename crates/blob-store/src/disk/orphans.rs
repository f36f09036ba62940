//! Orphaned manifests: the manifests of a deleted index, and referrers of a deleted manifest. Clients push them by
//! digest, so nothing else distinguishes them from untagged manifests that are in use.

use std::ops::Bound;

use redb::ReadableTable as _;

use super::index::{IndexSnapshot, ORPHANS};
use super::queries::{RowBytes, failed};
use super::rows::{ManifestRow, damaged, digest, key};
use super::tables::{Tables, bounds};
use crate::Result;
use oci::{Digest, Repository};

/// A manifest that may be garbage.
#[derive(Debug, Clone)]
pub(super) struct OrphanedManifest {
    pub(super) repository: Repository,
    pub(super) canonical: Digest,
    /// When its index or subject was deleted. Units: nanoseconds since 1970.
    pub(super) at: u64,
}

impl Tables<'_> {
    /// Records the manifests of an index, and the referrers of a manifest, as orphans before its removal.
    pub(super) fn record_orphans(
        &mut self,
        repository: &Repository,
        canonical: &Digest,
        at: u64,
    ) -> Result<()> {
        let name = repository.as_str();
        for orphan in self.children_and_referrers(repository, canonical)? {
            self.orphans.insert((name, &*orphan), at).map_err(failed)?;
        }
        Ok(())
    }

    /// Removes a manifest from the orphans.
    pub(super) fn forget_orphan(
        &mut self,
        repository: &Repository,
        canonical: &Digest,
    ) -> Result<()> {
        let place = (repository.as_str(), &*key(canonical));
        self.orphans.remove(place).map(drop).map_err(failed)
    }

    /// The canonical digests of the manifests in an index, and of the referrers of a manifest.
    fn children_and_referrers(
        &self,
        repository: &Repository,
        canonical: &Digest,
    ) -> Result<Vec<Vec<u8>>> {
        let (name, next) = bounds(repository);
        let (own, first): (_, &RowBytes) = (key(canonical), &[]);
        let mut found = Vec::new();
        let needs = self
            .needs
            .range((name, first, first)..(&*next, first, first));
        for row in needs.map_err(failed)? {
            let (place, _) = row.map_err(failed)?;
            let (_, needed, by) = place.value();
            if by == &*own
                && let Some(row) = self.manifests.get((name, needed)).map_err(failed)?
            {
                found.push(key(&ManifestRow::decode(row.value())?.canonical));
            }
        }
        for row in self
            .referrers
            .range((name, &*own, first)..)
            .map_err(failed)?
        {
            let (place, _) = row.map_err(failed)?;
            let (its_name, subject, referrer) = place.value();
            if its_name != name || subject != &*own {
                break;
            }
            found.push(referrer.to_vec());
        }
        Ok(found)
    }
}

impl IndexSnapshot {
    /// Up to `limit` orphaned manifests after `after`.
    pub(super) fn orphans(
        &self,
        after: Option<&OrphanedManifest>,
        limit: usize,
    ) -> Result<Vec<OrphanedManifest>> {
        let orphans = self.0.open_table(ORPHANS).map_err(failed)?;
        let place = after.map(|after| (after.repository.as_str(), key(&after.canonical)));
        let first = place
            .as_ref()
            .map_or(Bound::Unbounded, |(name, canonical)| {
                Bound::Excluded((*name, canonical.as_slice()))
            });
        let mut found = Vec::new();
        for row in orphans
            .range::<(&str, &RowBytes)>((first, Bound::Unbounded))
            .map_err(failed)?
            .take(limit)
        {
            let (place, at) = row.map_err(failed)?;
            let (name, canonical) = place.value();
            found.push(OrphanedManifest {
                repository: name.parse().map_err(damaged)?,
                canonical: digest(canonical)?,
                at: at.value(),
            });
        }
        Ok(found)
    }
}
