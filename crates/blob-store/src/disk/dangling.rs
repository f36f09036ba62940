//! Dangling links: content that is missing or damaged is withheld, though links to it stay, until it is pushed again.

use redb::ReadableTable as _;

use super::queries::failed;
use super::rows::{DANGLING, ManifestRow, damaged, key};
use super::tables::{BLOB, MANIFEST, Tables};
use crate::Result;
use oci::Referrer;
use oci::{Digest, Manifest, Repository};

impl Tables<'_> {
    /// Marks all links to content as dangling. Returns whether any was intact.
    pub(super) fn mark_dangling(&mut self, canonical: &Digest) -> Result<bool> {
        let mut had = false;
        for repository in self.holders(canonical, BLOB)? {
            had |= self.mark_blob_dangling(&repository, canonical)?;
        }
        for repository in self.holders(canonical, MANIFEST)? {
            had |= self.mark_manifest_dangling(&repository, canonical)?;
        }
        Ok(had)
    }

    fn mark_blob_dangling(&mut self, repository: &Repository, canonical: &Digest) -> Result<bool> {
        let had = self.has_blob(repository, canonical)?;
        if had == Some(true) {
            let place = (repository.as_str(), &*key(canonical));
            self.blobs
                .insert(place, (DANGLING, [].as_slice()))
                .map_err(failed)?;
        }
        Ok(had == Some(true))
    }

    fn mark_manifest_dangling(
        &mut self,
        repository: &Repository,
        canonical: &Digest,
    ) -> Result<bool> {
        let place = (repository.as_str(), &*key(canonical));
        let row = self.manifests.get(place).map_err(failed)?;
        let Some(mut row) = row
            .map(|row| ManifestRow::decode(row.value()))
            .transpose()?
        else {
            return Ok(false);
        };
        if let Some(subject) = &row.subject {
            let place = (repository.as_str(), &*key(subject), &*key(canonical));
            self.referrers.remove(place).map_err(failed)?;
        }
        let had = std::mem::replace(&mut row.size, DANGLING) != DANGLING;
        self.manifests
            .insert(place, row.encode().as_slice())
            .map_err(failed)?;
        Ok(had)
    }

    /// Whether the link to a blob is intact; `None` without a link.
    fn has_blob(&self, repository: &Repository, canonical: &Digest) -> Result<Option<bool>> {
        let place = (repository.as_str(), &*key(canonical));
        let row = self.blobs.get(place).map_err(failed)?;
        Ok(row.map(|row| row.value().0 != DANGLING))
    }

    fn has_manifest(&self, repository: &Repository, canonical: &Digest) -> Result<Option<bool>> {
        let place = (repository.as_str(), &*key(canonical));
        let row = self.manifests.get(place).map_err(failed)?;
        let row = row
            .map(|row| ManifestRow::decode(row.value()))
            .transpose()?;
        Ok(row.map(|row| row.size != DANGLING))
    }

    /// Repositories with dangling links to content. Either all of its links dangle or none: the first one decides.
    pub(super) fn dangling_links(&self, canonical: &Digest) -> Result<Vec<(Repository, u8)>> {
        let content = key(canonical);
        let mut found = Vec::new();
        for row in self.uses.range((&*content, "", 0)..).map_err(failed)? {
            let (place, _) = row.map_err(failed)?;
            let (its_content, name, kind) = place.value();
            if its_content != &*content {
                break;
            }
            let repository = name.parse().map_err(damaged)?;
            let has = match kind {
                BLOB => self.has_blob(&repository, canonical)?,
                _ => self.has_manifest(&repository, canonical)?,
            };
            if has == Some(true) {
                break;
            }
            found.push((repository, kind));
        }
        Ok(found)
    }

    /// Restores a blob in all repositories with a dangling link to it.
    pub(super) fn restore_blob(&mut self, canonical: &Digest, size: u64) -> Result<()> {
        for (repository, kind) in self.dangling_links(canonical)? {
            if kind == BLOB {
                let place = (repository.as_str(), &*key(canonical));
                self.blobs
                    .insert(place, (size, [].as_slice()))
                    .map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Restores a manifest in all repositories with a dangling link to it.
    pub(super) fn restore_manifest(&mut self, manifest: &Manifest) -> Result<()> {
        let (canonical, row) = (&manifest.digest, ManifestRow::of(manifest));
        for (repository, kind) in self.dangling_links(canonical)? {
            let place = (repository.as_str(), &*key(canonical));
            if kind == BLOB {
                self.blobs
                    .insert(place, (row.size, [].as_slice()))
                    .map_err(failed)?;
                continue;
            }
            self.manifests
                .insert(place, row.encode().as_slice())
                .map_err(failed)?;
            self.add_needs(&repository, manifest)?;
            self.add_referrer(&repository, manifest, canonical)?;
        }
        Ok(())
    }

    /// Adds a link to missing content.
    pub(super) fn add_dangling(
        &mut self,
        repository: &Repository,
        name: &super::change::ContentName,
        kind: u8,
    ) -> Result<()> {
        if kind == BLOB {
            return self.insert_blob(repository, name, DANGLING);
        }
        let row = ManifestRow::dangling(&name.canonical);
        self.insert_manifest(repository, name, &row)
    }

    pub(super) fn holders(&self, canonical: &Digest, kind: u8) -> Result<Vec<Repository>> {
        let content = key(canonical);
        let mut found = Vec::new();
        for row in self.uses.range((&*content, "", 0)..).map_err(failed)? {
            let (place, _) = row.map_err(failed)?;
            let (its_content, name, its_kind) = place.value();
            if its_content != &*content {
                break;
            }
            if its_kind == kind {
                found.push(name.parse().map_err(damaged)?);
            }
        }
        Ok(found)
    }
}

impl Tables<'_> {
    pub(super) fn add_referrer(
        &mut self,
        repository: &Repository,
        manifest: &Manifest,
        name: &Digest,
    ) -> Result<()> {
        let Some(subject) = &manifest.subject else {
            return Ok(());
        };
        let place = (
            repository.as_str(),
            &*key(&subject.digest),
            &*key(&manifest.digest),
        );
        let text = serde_json::to_vec(&Referrer::of(manifest, name)).map_err(damaged)?;
        self.referrers
            .insert(place, text.as_slice())
            .map(drop)
            .map_err(failed)
    }

    /// Adds the content that a manifest needs, by the digests in its text.
    pub(super) fn add_needs(&mut self, repository: &Repository, manifest: &Manifest) -> Result<()> {
        let canonical = key(&manifest.digest);
        let blobs = manifest.blobs().map(|blob| &blob.digest);
        for needed in blobs.chain(manifest.required_manifests()) {
            let place = (repository.as_str(), &*key(needed), &*canonical);
            self.needs.insert(place, ()).map_err(failed)?;
        }
        Ok(())
    }
}
