//! Changes of the index: their checks and their effects.

use bytes::Bytes;
use redb::{ReadableTable as _, Table};

use super::change::{ContentName, JournalEntry, StoreChange};
use super::committer::now;
use super::queries::{
    RowBytes, blob_in, failed, is_needed, linked_blob, linked_manifest, manifest_in, tags_in,
};
use super::rows::{ManifestRow, damaged, digest, key};
use crate::{Result, StoreError};
use oci::{Digest, Manifest, Repository, Tag};

/// Kinds of content in [`super::index::USES`].
pub(super) const BLOB: u8 = 0;
pub(super) const MANIFEST: u8 = 1;

/// The tables of a write transaction.
pub(super) struct Tables<'u> {
    pub(super) repositories: Table<'u, &'static str, ()>,
    pub(super) tags: Table<'u, (&'static str, &'static str), &'static RowBytes>,
    pub(super) manifests: Table<'u, (&'static str, &'static RowBytes), &'static RowBytes>,
    pub(super) blobs: Table<'u, (&'static str, &'static RowBytes), (u64, &'static RowBytes)>,
    pub(super) referrers:
        Table<'u, (&'static str, &'static RowBytes, &'static RowBytes), &'static RowBytes>,
    pub(super) needs: Table<'u, (&'static str, &'static RowBytes, &'static RowBytes), ()>,
    pub(super) aliases: Table<'u, &'static RowBytes, &'static RowBytes>,
    pub(super) uses: Table<'u, (&'static RowBytes, &'static str, u8), ()>,
    pub(super) adopted: Table<'u, &'static str, u64>,
    pub(super) unused: Table<'u, &'static RowBytes, u64>,
    pub(super) orphans: Table<'u, (&'static str, &'static RowBytes), u64>,
}

impl Tables<'_> {
    /// Checks a change against the index, and completes it by the digests and tags that it affects.
    ///
    /// Errors: UnknownBlob, UnknownManifest, InUse, MissingContent.
    pub(super) fn check(&self, entry: &mut JournalEntry) -> Result<()> {
        match &mut entry.change {
            StoreChange::AddBlob { .. }
            | StoreChange::AddManifest {
                is_sparse: true, ..
            } => Ok(()),
            StoreChange::RemoveBlob {
                repository,
                blob,
                only_unused,
            } => {
                let asked = blob.canonical.clone();
                let found = linked_blob(&self.blobs, repository, &asked)?
                    .ok_or_else(|| StoreError::UnknownBlob(asked.clone()))?;
                *blob = ContentName::new(found.canonical, &asked);
                if *only_unused && self.is_any_needed(repository, blob)? {
                    return Err(StoreError::InUse(asked));
                }
                Ok(())
            }
            StoreChange::AddManifest { repository, .. } => {
                let manifest = parsed(entry.content.as_ref())?;
                self.check_content(repository, &manifest)
            }
            StoreChange::RemoveManifest {
                repository,
                manifest,
                tags,
                unless_since,
                ..
            } => {
                let asked = manifest.canonical.clone();
                let found = linked_manifest(&self.manifests, repository, &asked)?
                    .ok_or_else(|| StoreError::UnknownManifest(asked.to_string()))?;
                *tags = self.tags_at(repository, &found.canonical)?;
                if unless_since.is_some()
                    && (!tags.is_empty() || self.is_manifest_needed(repository, &found)?)
                {
                    return Err(StoreError::InUse(asked));
                }
                *manifest = ContentName::new(found.canonical, &asked);
                Ok(())
            }
            StoreChange::RemoveTag {
                repository, tag, ..
            } => self
                .tags
                .get((repository.as_str(), tag.as_str()))
                .map_err(failed)?
                .ok_or_else(|| StoreError::UnknownManifest(tag.to_string()))
                .map(drop),
        }
    }

    fn is_any_needed(&self, repository: &Repository, name: &ContentName) -> Result<bool> {
        for digest in name.digests() {
            if is_needed(&self.needs, repository, digest)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether an index of the repository needs a manifest, or its subject exists.
    fn is_manifest_needed(&self, repository: &Repository, row: &ManifestRow) -> Result<bool> {
        let (own, next) = bounds(repository);
        // Only SHA-512 digests are aliases, and they sort last.
        let (first, last): ((_, &RowBytes), (_, &RowBytes)) = ((own, &[1]), (&*next, &[]));
        for other in self.manifests.range(first..last).map_err(failed)? {
            let (place, value) = other.map_err(failed)?;
            if ManifestRow::decode(value.value())?.canonical == row.canonical
                && is_needed(&self.needs, repository, &digest(place.value().1)?)?
            {
                return Ok(true);
            }
        }
        if let Some(subject) = &row.subject
            && linked_manifest(&self.manifests, repository, subject)?.is_some()
        {
            return Ok(true);
        }
        is_needed(&self.needs, repository, &row.canonical)
    }

    /// Whether a repository has neither blobs nor manifests.
    pub(super) fn is_empty(&self, repository: &Repository) -> Result<bool> {
        let (name, first): (_, &RowBytes) = (repository.as_str(), &[]);
        let blob = self.blobs.range((name, first)..).map_err(failed)?.next();
        let blob = blob.transpose().map_err(failed)?;
        let manifest = self
            .manifests
            .range((name, first)..)
            .map_err(failed)?
            .next();
        let manifest = manifest.transpose().map_err(failed)?;
        Ok(blob.is_none_or(|(place, _)| place.value().0 != name)
            && manifest.is_none_or(|(place, _)| place.value().0 != name))
    }

    fn check_content(&self, repository: &Repository, manifest: &Manifest) -> Result<()> {
        let mut missing = Vec::new();
        for digest in manifest.required_blobs() {
            if blob_in(&self.blobs, repository, digest)?.is_none() {
                missing.push(digest.clone());
            }
        }
        for digest in manifest.required_manifests() {
            if manifest_in(&self.manifests, repository, digest)?.is_none() {
                missing.push(digest.clone());
            }
        }
        if missing.is_empty() {
            Ok(())
        } else {
            Err(StoreError::MissingContent(missing))
        }
    }

    fn tags_at(&self, repository: &Repository, canonical: &Digest) -> Result<Vec<Tag>> {
        let mut found = Vec::new();
        for (tag, at) in tags_in(&self.tags, repository, "", usize::MAX)? {
            let row = linked_manifest(&self.manifests, repository, &at)?;
            if row.is_some_and(|row| row.canonical == *canonical) {
                found.push(tag);
            }
        }
        Ok(found)
    }

    /// Applies a change. Idempotent.
    pub(super) fn apply(&mut self, entry: &JournalEntry) -> Result<()> {
        match &entry.change {
            StoreChange::AddBlob {
                repository,
                blob,
                size,
                ..
            } => self.add_blob(repository, blob, *size),
            StoreChange::RemoveBlob {
                repository, blob, ..
            } => {
                for digest in blob.digests() {
                    let place = (repository.as_str(), &*key(digest));
                    self.blobs.remove(place).map_err(failed)?;
                }
                self.remove_holder(repository, &blob.canonical, BLOB)
            }
            StoreChange::AddManifest {
                repository,
                manifest: name,
                tags,
                ..
            } => {
                let manifest = parsed(entry.content.as_ref())?;
                // A manifest that is pushed again is no orphan any more.
                self.forget_orphan(repository, &name.canonical)?;
                self.add_manifest(repository, name, &manifest)?;
                tags.iter()
                    .try_for_each(|tag| self.set_tag(repository, tag, name.requested()))
            }
            StoreChange::RemoveManifest {
                repository,
                manifest,
                tags,
                frees,
                ..
            } => {
                tags.iter()
                    .try_for_each(|tag| self.remove_tag(repository, tag))?;
                if *frees {
                    self.record_orphans(repository, &manifest.canonical, now())?;
                }
                self.forget_orphan(repository, &manifest.canonical)?;
                self.remove_manifest(repository, manifest)
            }
            StoreChange::RemoveTag {
                repository, tag, ..
            } => self.remove_tag(repository, tag),
        }
    }

    /// A blob under both of its digests.
    pub(super) fn add_blob(
        &mut self,
        repository: &Repository,
        blob: &ContentName,
        size: u64,
    ) -> Result<()> {
        self.restore_blob(&blob.canonical, size)?;
        self.insert_blob(repository, blob, size)
    }

    pub(super) fn insert_blob(
        &mut self,
        repository: &Repository,
        blob: &ContentName,
        size: u64,
    ) -> Result<()> {
        let canonical = key(&blob.canonical);
        for digest in blob.digests() {
            let of_other_name: &RowBytes = if *digest == blob.canonical {
                &[]
            } else {
                &canonical
            };
            let place = (repository.as_str(), &*key(digest));
            self.blobs
                .insert(place, (size, of_other_name))
                .map_err(failed)?;
        }
        if let Some(alias) = &blob.alias {
            self.aliases
                .insert(&*key(alias), &*canonical)
                .map_err(failed)?;
        }
        self.add_holder(repository, &blob.canonical, BLOB)
    }

    /// A manifest under both of its digests, with its needs and its subject.
    pub(super) fn add_manifest(
        &mut self,
        repository: &Repository,
        name: &ContentName,
        manifest: &Manifest,
    ) -> Result<()> {
        self.restore_manifest(manifest)?;
        self.insert_manifest(repository, name, &ManifestRow::of(manifest))?;
        self.add_needs(repository, manifest)?;
        self.add_referrer(repository, manifest, name.requested())
    }

    pub(super) fn insert_manifest(
        &mut self,
        repository: &Repository,
        name: &ContentName,
        row: &ManifestRow,
    ) -> Result<()> {
        self.add_repository(repository)?;
        let row = row.encode();
        for digest in name.digests() {
            let place = (repository.as_str(), &*key(digest));
            self.manifests
                .insert(place, row.as_slice())
                .map_err(failed)?;
        }
        self.add_holder(repository, &name.canonical, MANIFEST)
    }

    /// A repository, which may be empty.
    pub(super) fn add_repository(&mut self, repository: &Repository) -> Result<()> {
        self.repositories
            .insert(repository.as_str(), ())
            .map(drop)
            .map_err(failed)
    }

    /// Points a tag at a manifest.
    pub(super) fn set_tag(
        &mut self,
        repository: &Repository,
        tag: &Tag,
        at: &Digest,
    ) -> Result<()> {
        self.tags
            .insert((repository.as_str(), tag.as_str()), &*key(at))
            .map(drop)
            .map_err(failed)
    }

    fn remove_tag(&mut self, repository: &Repository, tag: &Tag) -> Result<()> {
        self.tags
            .remove((repository.as_str(), tag.as_str()))
            .map(drop)
            .map_err(failed)
    }

    fn remove_manifest(&mut self, repository: &Repository, name: &ContentName) -> Result<()> {
        if let Some(row) = linked_manifest(&self.manifests, repository, &name.canonical)?
            && let Some(subject) = row.subject
        {
            let place = (repository.as_str(), &*key(&subject), &*key(&name.canonical));
            self.referrers.remove(place).map_err(failed)?;
        }
        for digest in name.digests() {
            let place = (repository.as_str(), &*key(digest));
            self.manifests.remove(place).map_err(failed)?;
        }
        let (own, next) = bounds(repository);
        let (canonical, first): (_, &RowBytes) = (key(&name.canonical), &[]);
        self.needs
            .retain_in((own, first, first)..(&*next, first, first), |place, ()| {
                place.2 != &*canonical
            })
            .map_err(failed)?;
        self.remove_holder(repository, &name.canonical, MANIFEST)
    }

    fn add_holder(&mut self, repository: &Repository, canonical: &Digest, kind: u8) -> Result<()> {
        let canonical = &*key(canonical);
        self.unused.remove(canonical).map_err(failed)?;
        let place = (canonical, repository.as_str(), kind);
        self.uses.insert(place, ()).map(drop).map_err(failed)
    }

    fn remove_holder(
        &mut self,
        repository: &Repository,
        canonical: &Digest,
        kind: u8,
    ) -> Result<()> {
        let canonical = &*key(canonical);
        let place = (canonical, repository.as_str(), kind);
        self.uses.remove(place).map_err(failed)?;
        if !self.is_used(canonical)? {
            // Time 0: all pushes of this content went through this index, so it needs no grace period.
            self.unused.insert(canonical, 0).map_err(failed)?;
        }
        Ok(())
    }

    /// Records when changes of a repository by other programs were found. Units: nanoseconds since 1970.
    pub(super) fn note_adopted(&mut self, repository: &Repository, at: u64) -> Result<()> {
        let name = repository.as_str();
        self.adopted.insert(name, at).map(drop).map_err(failed)
    }

    /// Records when content without a link was found, unless it has one now. Units: nanoseconds since 1970.
    pub(super) fn note_unused<'d>(
        &mut self,
        mut digests: impl Iterator<Item = &'d Digest>,
        at: u64,
    ) -> Result<()> {
        digests.try_for_each(|digest| {
            let canonical = &*key(digest);
            if self.is_used(canonical)? {
                return Ok(());
            }
            self.unused.insert(canonical, at).map(drop).map_err(failed)
        })
    }

    fn is_used(&self, canonical: &RowBytes) -> Result<bool> {
        let first = self
            .uses
            .range((canonical, "", 0)..)
            .map_err(failed)?
            .next();
        let first = first.transpose().map_err(failed)?;
        Ok(first.is_some_and(|(place, _)| place.value().0 == canonical))
    }

    /// Removes records of [`Self::note_unused`].
    pub(super) fn forget_unused(&mut self, digests: &[Digest]) -> Result<()> {
        for digest in digests {
            self.unused.remove(&*key(digest)).map_err(failed)?;
        }
        Ok(())
    }

    /// Removes all rows of a repository.
    pub(super) fn forget(&mut self, repository: &Repository) -> Result<()> {
        let (name, next) = bounds(repository);
        let next = &*next;
        let first: &RowBytes = &[];
        let mut held = Vec::new();
        for row in self
            .blobs
            .range((name, first)..(next, first))
            .map_err(failed)?
        {
            let (place, value) = row.map_err(failed)?;
            if value.value().1.is_empty() {
                held.push((place.value().1.to_vec(), BLOB));
            }
        }
        for row in self
            .manifests
            .range((name, first)..(next, first))
            .map_err(failed)?
        {
            held.push((row.map_err(failed)?.0.value().1.to_vec(), MANIFEST));
        }
        for (content, kind) in held {
            self.uses.remove((&*content, name, kind)).map_err(failed)?;
        }
        self.needs
            .retain_in((name, first, first)..(next, first, first), |_, ()| false)
            .map_err(failed)?;
        self.repositories.remove(name).map_err(failed)?;
        self.adopted.remove(name).map_err(failed)?;
        self.tags
            .retain_in((name, "")..(next, ""), |_, _| false)
            .map_err(failed)?;
        self.manifests
            .retain_in((name, first)..(next, first), |_, _| false)
            .map_err(failed)?;
        self.blobs
            .retain_in((name, first)..(next, first), |_, _| false)
            .map_err(failed)?;
        self.referrers
            .retain_in((name, first, first)..(next, first, first), |_, _| false)
            .map_err(failed)
    }
}

/// Bounds of a repository's keys: no other name sorts between them.
pub(super) fn bounds(repository: &Repository) -> (&str, String) {
    let name = repository.as_str();
    (name, format!("{name}\0"))
}

fn parsed(content: Option<&Bytes>) -> Result<Manifest> {
    let content = content.cloned().unwrap_or_default();
    Manifest::parse(content, None).map_err(damaged)
}
