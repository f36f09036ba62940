//! Queries about content, its holders and the manifests that need it. Without an index, they list a repository, or all
//! repositories.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use futures_util::{StreamExt as _, TryStreamExt as _};
use model::time::Timestamp;

use super::inner::BucketInner;
use super::layout::{first_byte, linked, stored};
use super::requests::each;
use crate::{Result, StoreError, StoredContent, Usage};
use bucket::{ObjectInfo, Position};
use oci::{Algorithm, Digest, Repository, Target};

/// Repositories queried at a time.
const BATCH: usize = 1000;

/// Content of a repository: its digest, its SHA-256 unless the link is damaged, and the link's metadata.
pub(super) type LinkedContent = (Digest, Option<Digest>, ObjectInfo);

impl BucketInner {
    /// The links below a prefix.
    pub(super) async fn links(&self, prefix: &str) -> Result<Vec<LinkedContent>> {
        let listed = self.bucket.list(prefix.to_owned());
        let entries: Vec<_> = listed.try_collect().await?;
        let names = entries.into_iter().filter_map(|entry| {
            let digest = linked(&entry.below)?;
            Some((digest, entry))
        });
        each(names, async |(digest, entry)| {
            let canonical = match digest.algorithm() {
                Algorithm::Sha256 => Some(digest.clone()),
                Algorithm::Sha512 => {
                    self.link(&format!("{prefix}{}", entry.below).into())
                        .await?
                }
            };
            Ok((digest, canonical, entry.meta))
        })
        .await
    }

    /// Up to `limit` contents that have links below a prefix, after `after`.
    pub(super) async fn contents_of(
        &self,
        prefix: String,
        after: Option<&Digest>,
        limit: usize,
    ) -> Result<Vec<StoredContent>> {
        let folder = format!("{prefix}{}/", Algorithm::Sha256.as_str());
        let from = after.map(|after| Position::After(format!("{}/link", after.hex())));
        let listed = self.bucket.list_from(folder, from);
        let digests = listed.try_filter_map(async |entry| {
            let below = format!("{}/{}", Algorithm::Sha256.as_str(), entry.below);
            Ok(linked(&below))
        });
        let digests: Vec<_> = digests.take(limit).try_collect().await?;
        each(digests, async |digest| {
            let data = self.bucket.head(&self.layout.data(&digest)).await?;
            let size = data.map(|data| data.size);
            Ok(StoredContent { digest, size })
        })
        .await
    }

    pub(super) async fn contents(
        &self,
        after: Option<&Digest>,
        limit: usize,
    ) -> Result<Vec<StoredContent>> {
        let mut found = Vec::new();
        for shard in after.map_or(0, first_byte)..=u8::MAX {
            let mut sizes = BTreeMap::new();
            // Content that a collection found to be missing.
            for digest in self.noted_missing(shard).await? {
                sizes.insert(digest, None);
            }
            let mut listed = Box::pin(self.bucket.list(self.layout.shard(shard)));
            while let Some(entry) = listed.try_next().await? {
                if let Some(digest) = stored(&entry.below) {
                    sizes.insert(digest, Some(entry.meta.size));
                }
            }
            for (digest, size) in sizes {
                if after.is_none_or(|after| digest > *after) {
                    found.push(StoredContent { digest, size });
                }
            }
            if found.len() >= limit {
                found.truncate(limit);
                break;
            }
        }
        Ok(found)
    }

    pub(super) async fn usage(&self, repository: &Repository) -> Result<Usage> {
        let tags = super::walk::tags(&self.bucket, &self.layout, repository, "", usize::MAX);
        let manifests = self.contents_of(self.layout.revisions(repository), None, usize::MAX);
        let layers = self.contents_of(self.layout.layers(repository), None, usize::MAX);
        let (tags, manifests, layers) = tokio::try_join!(tags, manifests, layers)?;
        let sizes: BTreeMap<_, _> = manifests
            .iter()
            .chain(&layers)
            .map(|content| (&content.digest, content.size))
            .collect();
        Ok(Usage {
            tags: tags.len() as u64,
            manifests: manifests.len() as u64,
            bytes: sizes.into_values().flatten().sum(),
        })
    }

    pub(super) async fn holders(&self, digest: &Digest) -> Result<Vec<Repository>> {
        let (mut holders, mut walk) = (Vec::new(), self.walk(""));
        loop {
            let mut batch = Vec::new();
            while batch.len() < BATCH
                && let Some(found) = walk.next().await?
            {
                batch.push(found.repository);
            }
            if batch.is_empty() {
                return Ok(holders);
            }
            let found = each(batch, async |repository| {
                let links = [
                    self.layout.layer_link(&repository, digest),
                    self.layout.revision_link(&repository, digest),
                ];
                let [layer, revision] = links.each_ref().map(|link| self.link(link));
                let (layer, revision) = tokio::try_join!(layer, revision)?;
                Ok((layer.is_some() || revision.is_some()).then_some(repository))
            });
            holders.extend(found.await?.into_iter().flatten());
        }
    }

    pub(super) async fn needed_by(
        &self,
        repository: &Repository,
        digest: &Digest,
    ) -> Result<Vec<Digest>> {
        let layers = self.layout.layers(repository);
        let revisions = self.layout.revisions(repository);
        let mut links = self.links(&layers).await?;
        let manifests = self.links(&revisions).await?;
        links.extend(manifests.iter().cloned());
        let canonical = links
            .iter()
            .find(|(name, ..)| name == digest)
            .and_then(|(_, canonical, _)| canonical.clone());
        let names: HashSet<_> = links
            .iter()
            .filter(|(_, found, _)| canonical.is_some() && *found == canonical)
            .map(|(name, ..)| name)
            .chain([digest])
            .collect();
        let manifests: BTreeSet<_> = manifests
            .iter()
            .filter_map(|(_, found, _)| found.clone())
            .collect();
        let needing = each(manifests, async |digest| {
            let manifest = match self.stored_manifest(&digest).await {
                Ok(manifest) => manifest,
                // Its needs are unknown; the scrub reports the damage.
                Err(StoreError::Damaged { .. }) => None,
                Err(error) => return Err(error),
            };
            let needs = manifest.is_some_and(|manifest| {
                let blobs = manifest.blobs().map(|blob| &blob.digest);
                let mut needed = blobs.chain(manifest.required_manifests());
                needed.any(|digest| names.contains(digest))
            });
            Ok(needs.then_some(digest))
        });
        Ok(needing.await?.into_iter().flatten().collect())
    }

    /// Time of the last push of a tag or a manifest.
    pub(super) async fn pushed_at(
        &self,
        repository: &Repository,
        target: &Target,
    ) -> Result<Option<Timestamp>> {
        let link = match target {
            Target::Tag(tag) => self.layout.tag_current(repository, tag),
            Target::Digest(digest) => self.layout.revision_link(repository, digest),
        };
        let found = self.bucket.head(&link).await?;
        Ok(found.map(|found| found.modified))
    }
}
