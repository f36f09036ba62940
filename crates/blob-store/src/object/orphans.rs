//! Orphaned manifests: the manifests of a deleted index, and referrers of a deleted manifest. A small object records
//! the time for each; a revision link that is newer belongs to a later push.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use futures_util::TryStreamExt as _;
use object_store::path::Path;

use super::collect::{BATCH, Collection};
use super::inner::BucketInner;
use super::layout::linked;
use super::requests::each;
use crate::content_name::ContentName;
use crate::{CollectedGarbage, Result, StoreError};
use bucket::ObjectEntry;
use oci::{Digest, Repository, Target};

impl BucketInner {
    /// The manifests of an index, and the referrers of a manifest.
    pub(super) async fn children_and_referrers(
        &self,
        repository: &Repository,
        digest: &Digest,
    ) -> Result<BTreeSet<Digest>> {
        let Some(canonical) = self.revision(repository, digest).await? else {
            return Ok(BTreeSet::new());
        };
        let mut named: BTreeSet<Digest> = match self.read_manifest(&canonical).await {
            Ok(Some(manifest)) => manifest.required_manifests().cloned().collect(),
            // The needs of an unreadable manifest are unknown, and their content stays.
            Ok(None) | Err(StoreError::Damaged { .. }) => BTreeSet::new(),
            Err(error) => return Err(error),
        };
        for subject in ContentName::new(canonical, digest).digests() {
            let listed = self.bucket.list(self.layout.referrers(repository, subject));
            let links = listed.try_filter_map(async |entry| Ok(linked(&entry.below)));
            let links: Vec<_> = links.try_collect().await?;
            named.extend(links);
        }
        Ok(named)
    }

    /// Records manifests as orphans before their index or subject is deleted.
    pub(super) async fn record_orphans(
        &self,
        repository: &Repository,
        named: &BTreeSet<Digest>,
    ) -> Result<()> {
        each(named, async |digest| {
            // A sparse index names manifests that do not exist.
            let Some(canonical) = self.revision(repository, digest).await? else {
                return Ok(());
            };
            let key = self.layout.orphan(repository, &canonical);
            Ok(self.bucket.put(&key, "").await?)
        })
        .await
        .map(drop)
    }
}

impl Collection {
    /// Removes orphans older than the grace period, unless a tag, an index or an existing subject needs them.
    pub(super) async fn collect_orphans(
        &self,
        repository: &Repository,
        found: &mut CollectedGarbage,
    ) -> Result<()> {
        let layout = &self.inner.layout;
        let prefix = layout.orphans(repository);
        let entries: Vec<ObjectEntry> = self.inner.bucket.list(prefix).try_collect().await?;
        let mut done: Vec<Path> = Vec::new();
        for entry in entries.iter().filter(|entry| self.is_old(&entry.meta)) {
            if let Some(digest) = linked(&entry.below)
                && self
                    .collect_orphan(repository, &digest, entry, found)
                    .await?
            {
                done.push(layout.orphan(repository, &digest));
            }
        }
        if self.is_dry {
            return Ok(());
        }
        for batch in done.chunks(BATCH) {
            self.inner.bucket.delete(batch.to_vec()).await?;
        }
        Ok(())
    }

    /// Removes an orphan. Returns whether its record can go: it is removed, or was pushed again.
    async fn collect_orphan(
        &self,
        repository: &Repository,
        digest: &Digest,
        entry: &ObjectEntry,
        found: &mut CollectedGarbage,
    ) -> Result<bool> {
        let target = Target::Digest(digest.clone());
        // The clock of a bucket may have a resolution of a second: a push in the same second counts as later.
        let before = entry.meta.modified - TimeDelta::nanoseconds(1);
        let pushed_at = self.inner.pushed_at(repository, &target).await?;
        if pushed_at.is_none_or(|pushed_at| pushed_at > before) {
            return Ok(true);
        }
        let is_gone = if self.is_dry {
            self.inner.is_expired(repository, &target, before).await?
        } else {
            let named = self
                .inner
                .children_and_referrers(repository, digest)
                .await?;
            let is_gone = self.inner.expire(repository, &target, before).await?;
            if is_gone {
                self.inner.record_orphans(repository, &named).await?;
            }
            is_gone
        };
        found.manifests += u64::from(is_gone);
        Ok(is_gone)
    }
}
