//! Manifests that lost what named them: those of a deleted index, and those that refer to a deleted manifest. Clients
//! push them by digest, so nothing else tells them from manifests that somebody wants for themselves.

use std::ops::Bound;

use redb::ReadableTable as _;

use super::index::{FREED, Row, Snapshot, damaged, failed};
use super::rows::{ManifestRow, digest, key};
use super::tables::{Tables, bounds};
use crate::Result;
use oci::{Digest, Repository};

/// A manifest that may be garbage.
#[derive(Debug, Clone)]
pub(super) struct Freed {
    pub(super) repository: Repository,
    pub(super) canonical: Digest,
    /// When what named it was deleted. Units: nanoseconds since 1970.
    pub(super) at: u64,
}

impl Tables<'_> {
    /// Notes what a manifest names and what refers to it, which is about to be removed.
    pub(super) fn free(
        &mut self,
        repository: &Repository,
        canonical: &Digest,
        at: u64,
    ) -> Result<()> {
        let name = repository.as_str();
        for freed in self.named_by(repository, canonical)? {
            self.freed.insert((name, &*freed), at).map_err(failed)?;
        }
        Ok(())
    }

    /// Forgets that a manifest was freed.
    pub(super) fn keep(&mut self, repository: &Repository, canonical: &Digest) -> Result<()> {
        let place = (repository.as_str(), &*key(canonical));
        self.freed.remove(place).map(drop).map_err(failed)
    }

    /// The canonical digests of manifests that are in an index, and of those that refer to it.
    fn named_by(&self, repository: &Repository, canonical: &Digest) -> Result<Vec<Vec<u8>>> {
        let (name, next) = bounds(repository);
        let (own, first): (_, &Row) = (key(canonical), &[]);
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

impl Snapshot {
    /// Up to `limit` freed manifests after `after`.
    pub(super) fn freed(&self, after: Option<&Freed>, limit: usize) -> Result<Vec<Freed>> {
        let freed = self.0.open_table(FREED).map_err(failed)?;
        let place = after.map(|after| (after.repository.as_str(), key(&after.canonical)));
        let first = place
            .as_ref()
            .map_or(Bound::Unbounded, |(name, canonical)| {
                Bound::Excluded((*name, canonical.as_slice()))
            });
        let mut found = Vec::new();
        for row in freed
            .range::<(&str, &Row)>((first, Bound::Unbounded))
            .map_err(failed)?
            .take(limit)
        {
            let (place, at) = row.map_err(failed)?;
            let (name, canonical) = place.value();
            found.push(Freed {
                repository: name.parse().map_err(damaged)?,
                canonical: digest(canonical)?,
                at: at.value(),
            });
        }
        Ok(found)
    }
}
