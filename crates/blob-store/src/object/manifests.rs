//! Manifests, tags and referrers.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use object_store::path::Path;

use super::collect::BATCH;
use super::inner::BucketInner;
use super::layout::linked;
use super::requests::each;
use super::{collection_marks, walk};
use crate::content_name::ContentName;
use crate::{Result, StoreError};
use oci::Referrer;
use oci::{Algorithm, Digest, Kind, MANIFEST_LIMIT_BYTES, Manifest, Repository, Tag};

impl BucketInner {
    /// The canonical digest of a manifest in a repository.
    pub(super) async fn revision(
        &self,
        repository: &Repository,
        digest: &Digest,
    ) -> Result<Option<Digest>> {
        let key = |digest: &Digest| self.layout.revision_link(repository, digest);
        self.linked(digest, key).await
    }

    pub(super) async fn manifest(
        &self,
        repository: &Repository,
        digest: &Digest,
    ) -> Result<Option<Arc<Manifest>>> {
        let Some(canonical) = self.revision(repository, digest).await? else {
            return Ok(None);
        };
        let manifest = self.stored_manifest(&canonical).await?;
        match manifest {
            Some(manifest) if matches!(manifest.kind, Kind::Schema1 { .. }) => {
                let signed = self.signed(repository, &canonical).await?;
                Ok(Some(signed.map_or(manifest, Arc::new)))
            }
            None => {
                tracing::warn!(repo.name = %repository, %digest, "a link points at a missing manifest");
                Ok(None)
            }
            manifest => Ok(manifest),
        }
    }

    /// A manifest with its signatures, which distribution does not store.
    async fn signed(
        &self,
        repository: &Repository,
        canonical: &Digest,
    ) -> Result<Option<Manifest>> {
        let key = self.layout.signed(repository, canonical);
        let bytes = self.bucket.get(&key, MANIFEST_LIMIT_BYTES as u64).await?;
        let signed = bytes.and_then(|bytes| Manifest::parse(bytes, None).ok());
        Ok(signed.filter(|signed| signed.digest == *canonical))
    }

    /// A manifest without regard to repositories. Errors: Damaged.
    pub(super) async fn stored_manifest(
        &self,
        canonical: &Digest,
    ) -> Result<Option<Arc<Manifest>>> {
        if let Some(manifest) = self.manifests.get(canonical) {
            return Ok(Some(manifest));
        }
        let manifest = self.read_manifest(canonical).await?.map(Arc::new);
        if let Some(manifest) = &manifest {
            self.manifests.insert(Arc::clone(manifest));
        }
        Ok(manifest)
    }

    /// The manifest under a digest. Errors: Damaged – it has another digest, or is malformed.
    pub(super) async fn read_manifest(&self, canonical: &Digest) -> Result<Option<Manifest>> {
        let data = self.layout.data(canonical);
        let limit = MANIFEST_LIMIT_BYTES as u64;
        let Some(bytes) = self.bucket.get(&data, limit).await? else {
            return Ok(None);
        };
        let parsed = tokio::task::spawn_blocking(move || Manifest::parse(bytes, None)).await?;
        let why = match parsed {
            Ok(manifest) if manifest.digest == *canonical => return Ok(Some(manifest)),
            Ok(manifest) => format!("its bytes have the digest {}", manifest.digest),
            Err(error) => error.to_string(),
        };
        let what = format!("manifest {canonical}");
        Err(StoreError::Damaged { what, why })
    }

    async fn is_manifest_there(&self, repository: &Repository, digest: &Digest) -> Result<bool> {
        match self.revision(repository, digest).await? {
            None => Ok(false),
            Some(canonical) => {
                let data = self.bucket.head(&self.layout.data(&canonical)).await?;
                Ok(data.is_some())
            }
        }
    }

    /// Errors: MissingContent.
    async fn check_content(&self, repository: &Repository, manifest: &Manifest) -> Result<()> {
        let blobs: BTreeSet<_> = manifest.required_blobs().collect();
        let blobs = each(blobs, async |digest| {
            let is_there = self.blob(repository, digest).await?.is_some();
            Ok((!is_there).then(|| digest.clone()))
        });
        let manifests: BTreeSet<_> = manifest.required_manifests().collect();
        let manifests = each(manifests, async |digest| {
            let is_there = self.is_manifest_there(repository, digest).await?;
            Ok((!is_there).then(|| digest.clone()))
        });
        let (blobs, manifests) = tokio::try_join!(blobs, manifests)?;
        let missing: Vec<_> = blobs.into_iter().chain(manifests).flatten().collect();
        if missing.is_empty() {
            Ok(())
        } else {
            Err(StoreError::MissingContent(missing))
        }
    }

    /// Stores a manifest; see `collection_marks` for the order of the steps.
    pub(super) async fn put_manifest(
        &self,
        repository: &Repository,
        manifest: &Manifest,
        name: &ContentName,
        is_sparse: bool,
    ) -> Result<()> {
        if !is_sparse {
            self.check_content(repository, manifest).await?;
        }
        for _ in 0..collection_marks::ATTEMPTS {
            // Bytes, referrer, links: content is never listed before it can be read.
            let data = self.layout.data(&name.canonical);
            self.bucket.put(&data, manifest.digested().clone()).await?;
            if manifest.digested() != &manifest.bytes {
                let signed = self.layout.signed(repository, &name.canonical);
                self.bucket.put(&signed, manifest.bytes.clone()).await?;
            }
            if let Some(subject) = &manifest.subject {
                self.add_referrer(repository, &subject.digest, name.requested())
                    .await?;
            }
            for digest in name.digests() {
                let key = self.layout.revision_link(repository, digest);
                self.bucket.put(&key, name.canonical.to_string()).await?;
            }
            self.touch(&name.canonical).await?;
            self.wait_for_collections().await?;
            if !is_sparse {
                self.check_content(repository, manifest).await?;
            }
            if self.is_manifest_there(repository, name.requested()).await? {
                self.manifests.insert(Arc::new(manifest.clone()));
                return Ok(());
            }
        }
        Err(collection_marks::contended())
    }

    /// Adds a manifest to the referrers of `subject`.
    pub(super) async fn add_referrer(
        &self,
        repository: &Repository,
        subject: &Digest,
        digest: &Digest,
    ) -> Result<()> {
        let key = self.layout.referrer_link(repository, subject, digest);
        Ok(self.bucket.put(&key, digest.to_string()).await?)
    }

    /// Points tags at a manifest; retries when a concurrent expiry removed one of them.
    pub(super) async fn set_tags(
        &self,
        repository: &Repository,
        tags: &[Tag],
        digest: &Digest,
    ) -> Result<()> {
        let mut missing = tags.to_vec();
        for _ in 0..collection_marks::ATTEMPTS {
            if missing.is_empty() {
                return Ok(());
            }
            each(&missing, async |tag| {
                self.set_tag(repository, tag, digest).await
            })
            .await?;
            self.wait_for_collections().await?;
            let looked = each(&missing, async |tag| {
                let current = self
                    .bucket
                    .head(&self.layout.tag_current(repository, tag))
                    .await?;
                Ok(current.is_none().then(|| tag.clone()))
            });
            missing = looked.await?.into_iter().flatten().collect();
        }
        Err(collection_marks::contended())
    }

    /// History before tag: the deletion of a manifest finds its tags by their history.
    async fn set_tag(&self, repository: &Repository, tag: &Tag, digest: &Digest) -> Result<()> {
        let text = Bytes::from(digest.to_string());
        let history = self.layout.tag_history(repository, tag, digest);
        self.bucket.put(&history, text.clone()).await?;
        let current = self.layout.tag_current(repository, tag);
        Ok(self.bucket.put(&current, text).await?)
    }

    /// Tags before the manifest: after a failure, the deletion can be retried while the manifest exists.
    pub(super) async fn delete_manifest(
        &self,
        repository: &Repository,
        digest: &Digest,
    ) -> Result<()> {
        let unknown = || StoreError::UnknownManifest(digest.to_string());
        let canonical = self
            .revision(repository, digest)
            .await?
            .ok_or_else(unknown)?;
        let name = ContentName::new(canonical, digest);
        let manifest = self.read_manifest(&name.canonical).await;
        self.bucket.put(&self.layout.known(repository), "").await?;
        for tag in self.tags_at(repository, &name).await? {
            self.remove_tag(repository, &tag).await?;
        }
        let link = |digest| self.layout.revision_link(repository, digest);
        let signed = self.layout.signed(repository, &name.canonical);
        let keys = name.digests().map(link).chain([signed]);
        self.bucket.delete(keys.collect()).await?;
        // The subject of a damaged manifest is unknown; the scrub reports the damage.
        if let Ok(Some(subject)) = manifest.map(|manifest| manifest?.subject) {
            let referrer = |digest| {
                self.layout
                    .referrer_link(repository, &subject.digest, digest)
            };
            let referrers = name.digests().map(referrer).collect();
            self.bucket.delete(referrers).await?;
        }
        Ok(())
    }

    /// The tags that point at `manifests` under any of their digests, each with its SHA-256.
    pub(super) async fn tags_of_manifests(
        &self,
        repository: &Repository,
        manifests: &BTreeSet<Digest>,
    ) -> Result<Vec<(Tag, Digest)>> {
        // Which manifest a long digest means is only known to its link.
        let is_candidate =
            |digest: &Digest| digest.algorithm() == Algorithm::Sha512 || manifests.contains(digest);
        let tags = self.tags_ever_at(repository, is_candidate).await?;
        let tagged = each(tags, async |tag| {
            let current = self.layout.tag_current(repository, &tag);
            let canonical = match self.link(&current).await? {
                Some(long) if long.algorithm() == Algorithm::Sha512 => {
                    self.revision(repository, &long).await?
                }
                canonical => canonical,
            };
            Ok(canonical
                .filter(|digest| manifests.contains(digest))
                .map(|digest| (tag, digest)))
        });
        Ok(tagged.await?.into_iter().flatten().collect())
    }

    /// Tags whose history has a manifest that fits.
    pub(super) async fn tags_ever_at(
        &self,
        repository: &Repository,
        fits: impl Fn(&Digest) -> bool,
    ) -> Result<BTreeSet<Tag>> {
        let mut found = BTreeSet::new();
        let mut listed = Box::pin(self.bucket.list(self.layout.tags(repository)));
        while let Some(entry) = listed.try_next().await? {
            let Some((tag, rest)) = entry.below.split_once('/') else {
                continue;
            };
            let digest = rest.strip_prefix("index/").and_then(linked);
            if digest.is_some_and(|digest| fits(&digest)) {
                found.extend(tag.parse::<Tag>());
            }
        }
        Ok(found)
    }

    pub(super) async fn delete_tag(&self, repository: &Repository, tag: &Tag) -> Result<()> {
        let current = self.layout.tag_current(repository, tag);
        if self.link(&current).await?.is_none() {
            return Err(StoreError::UnknownManifest(tag.to_string()));
        }
        self.remove_tag(repository, tag).await
    }

    /// Current link and history in one request, so that a failed deletion can be retried. The rest of a longer history
    /// follows, because the deletion of a manifest finds its tags by their history.
    pub(super) async fn remove_tag(&self, repository: &Repository, tag: &Tag) -> Result<()> {
        let (prefix, current) = (
            self.layout.tag(repository, tag),
            self.layout.tag_current(repository, tag),
        );
        let listed = self.bucket.list(prefix.clone());
        let history = listed
            .map_ok(|entry| Path::from(format!("{prefix}{}", entry.below)))
            .try_filter(|key| std::future::ready(*key != current));
        let mut first: Vec<Path> = history.try_collect().await?;
        let rest = first.split_off(first.len().min(BATCH - 1));
        first.push(current);
        self.bucket.delete(first).await?;
        Ok(self.bucket.delete(rest).await?)
    }

    /// Errors: UnknownRepository.
    pub(super) async fn tags(
        &self,
        repository: &Repository,
        after: &str,
        limit: usize,
    ) -> Result<Vec<Tag>> {
        let found = walk::tags(&self.bucket, &self.layout, repository, after, limit).await?;
        if found.is_empty()
            && !self
                .bucket
                .is_any(&self.layout.manifests(repository))
                .await?
        {
            return Err(StoreError::UnknownRepository(repository.clone()));
        }
        Ok(found.into_iter().map(|(tag, _)| tag).collect())
    }

    pub(super) async fn tagged(
        &self,
        repository: &Repository,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(Tag, Digest)>> {
        let tags = self.tags(repository, after, limit).await?;
        let tagged = each(tags, async |tag| {
            let digest = self
                .link(&self.layout.tag_current(repository, &tag))
                .await?;
            Ok(digest.map(|digest| (tag, digest)))
        });
        Ok(tagged.await?.into_iter().flatten().collect())
    }

    pub(super) async fn referrers(
        &self,
        repository: &Repository,
        subject: &Digest,
    ) -> Result<Vec<Referrer>> {
        let listed = self.bucket.list(self.layout.referrers(repository, subject));
        let names = listed.try_filter_map(async |entry| Ok(linked(&entry.below)));
        let names: BTreeSet<Digest> = names.try_collect().await?;
        let found = each(names, async |digest| {
            match self.manifest(repository, &digest).await {
                Ok(manifest) => Ok(manifest.map(|manifest| Referrer::of(&manifest, &digest))),
                Err(error @ StoreError::Damaged { .. }) => {
                    tracing::error!(repo.name = %repository, %error, "a damaged manifest is not listed");
                    Ok(None)
                }
                Err(error) => Err(error),
            }
        });
        Ok(found.await?.into_iter().flatten().collect())
    }
}
