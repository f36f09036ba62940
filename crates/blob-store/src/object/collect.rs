//! Garbage collection of repositories: orphaned manifests, blobs that no manifest needs, and remains of repositories
//! without content. It also adds missing entries to the lists of referrers, for manifests that other programs pushed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::TryStreamExt as _;
use model::time::Timestamp;
use object_store::path::Path;

use super::collection_marks::CollectionMark;
use super::contents::LinkedContent;
use super::inner::BucketInner;
use super::layout::linked;
use super::requests::{each, unavailable};
use crate::{CollectedGarbage, Result, StoreError};
use bucket::ObjectInfo;
use oci::{Algorithm, Digest, Repository};

/// Keys per delete request. Source: S3, DeleteObjects.
pub(super) const BATCH: usize = 1000;
/// Time limit of a collection, shorter than touches are kept by [`super::sweep`].
pub(super) const RUN_LIMIT: Duration = Duration::from_hours(12);

/// Collects garbage; with `is_dry`, only counts it.
pub(super) async fn collect(
    inner: &Arc<BucketInner>,
    before: Timestamp,
    is_dry: bool,
) -> Result<CollectedGarbage> {
    let clock = inner.clock().await?;
    let run = Collection {
        inner: Arc::clone(inner),
        clock,
        before: before.min(clock),
        is_dry,
        began: Instant::now(),
    };
    // A separate task, so that a client's disconnect does not leave a mark behind.
    tokio::spawn(async move {
        let mut found = run.repositories().await?;
        run.sweep(&mut found).await?;
        Ok(found)
    })
    .await?
}

/// Adds the referrers of a bucket that another program filled to their lists; once for a bucket.
pub(super) async fn adopt(inner: &BucketInner) -> Result<()> {
    let adopted = inner.layout.adopted();
    if inner.bucket.head(&adopted).await?.is_some() {
        return Ok(());
    }
    let mut walk = inner.walk("");
    while let Some(found) = walk.next().await? {
        if found.has("_manifests") {
            let mut needs = ManifestNeeds::default();
            needs.read_manifests(inner, &found.repository).await?;
            needs.add_referrers(inner, &found.repository).await?;
        }
    }
    Ok(inner.bucket.put(&adopted, "").await?)
}

/// A collection in progress.
#[derive(Debug)]
pub(super) struct Collection {
    pub(super) inner: Arc<BucketInner>,
    /// Its start, by the bucket's clock.
    pub(super) clock: Timestamp,
    /// Objects written since then stay.
    before: Timestamp,
    pub(super) is_dry: bool,
    began: Instant,
}

/// Content that the manifests of a repository need.
#[derive(Debug, Default)]
struct ManifestNeeds {
    /// Manifests that were read.
    read: HashSet<Digest>,
    blobs: HashSet<Digest>,
    /// Subjects by manifest.
    subjects: HashMap<Digest, Digest>,
    /// Number of manifests, including unreadable ones.
    manifests: usize,
    /// A manifest cannot be read, so that its needs are unknown.
    is_incomplete: bool,
}

/// The blobs of a repository.
#[derive(Debug)]
struct RepositoryBlobs {
    all: usize,
    unneeded: Vec<Digest>,
}

impl ManifestNeeds {
    /// Reads manifests that are not read yet. One without bytes is skipped: its push is in progress and checks its
    /// content before the answer, or it is not served at all.
    async fn read_manifests(&mut self, inner: &BucketInner, repository: &Repository) -> Result<()> {
        let listed = inner.bucket.list(inner.layout.revisions(repository));
        let names = listed.try_filter_map(async |entry| Ok(linked(&entry.below)));
        let names: Vec<Digest> = names.try_collect().await?;
        self.manifests = names.len();
        let is_new =
            |name: &Digest| name.algorithm() == Algorithm::Sha256 && !self.read.contains(name);
        let new: Vec<_> = names.into_iter().filter(is_new).collect();
        for batch in new.chunks(BATCH) {
            let manifests = each(batch, async |digest| {
                match inner.read_manifest(digest).await {
                    Err(error @ StoreError::Damaged { .. }) => {
                        tracing::error!(repo.name = %repository, %error, "a manifest cannot be read, so its blobs are kept");
                        Ok(None)
                    }
                    read => read.map(Some),
                }
            });
            for manifest in manifests.await? {
                let Some(manifest) = manifest else {
                    self.is_incomplete = true;
                    continue;
                };
                let Some(manifest) = manifest else { continue };
                self.blobs
                    .extend(manifest.blobs().map(|blob| blob.digest.clone()));
                if let Some(subject) = manifest.subject {
                    self.subjects
                        .insert(manifest.digest.clone(), subject.digest);
                }
                self.read.insert(manifest.digest);
            }
        }
        Ok(())
    }

    async fn add_referrers(&self, inner: &BucketInner, repository: &Repository) -> Result<()> {
        if self.subjects.is_empty() {
            return Ok(());
        }
        let prefix = inner.layout.all_referrers(repository);
        let listed = inner.bucket.list(prefix.clone());
        let known: HashSet<Path> = listed
            .map_ok(|entry| Path::from(format!("{prefix}{}", entry.below)))
            .try_collect()
            .await?;
        each(&self.subjects, async |(digest, subject)| {
            let link = inner.layout.referrer_link(repository, subject, digest);
            if known.contains(&link) {
                return Ok(());
            }
            inner.add_referrer(repository, subject, digest).await
        })
        .await
        .map(drop)
    }
}

impl Collection {
    /// Errors: Unavailable – the time limit is exceeded, after which touches may be deleted.
    pub(super) async fn mark(&self) -> Result<CollectionMark> {
        if self.began.elapsed() > RUN_LIMIT {
            return Err(unavailable(
                "the garbage collection exceeded its time limit",
            ));
        }
        self.inner.mark().await
    }

    pub(super) fn is_old(&self, meta: &ObjectInfo) -> bool {
        meta.modified < self.before
    }

    async fn repositories(&self) -> Result<CollectedGarbage> {
        let mut found = CollectedGarbage::default();
        let mut walk = self.inner.walk("");
        while let Some(name) = walk.next().await? {
            if name.has("_layers") || name.has("_manifests") {
                self.repository(&name.repository, &mut found).await?;
            }
        }
        Ok(found)
    }

    async fn repository(
        &self,
        repository: &Repository,
        found: &mut CollectedGarbage,
    ) -> Result<()> {
        self.collect_orphans(repository, found).await?;
        let mut needs = ManifestNeeds::default();
        needs.read_manifests(&self.inner, repository).await?;
        if !self.is_dry {
            needs.add_referrers(&self.inner, repository).await?;
        }
        let layers = self.layers(repository, &needs).await?;
        let is_empty = needs.manifests == 0 && layers.all == 0;
        if needs.is_incomplete || !is_empty && layers.unneeded.is_empty() {
            return Ok(());
        }
        if self.is_dry {
            found.links += layers.unneeded.len() as u64;
            found.repositories += u64::from(is_empty);
            return Ok(());
        }
        let mark = self.mark().await?;
        let removed = self.remove(&mark, repository, needs, found).await;
        mark.end().await?;
        removed
    }

    /// Removes content that is still garbage under the mark.
    async fn remove(
        &self,
        mark: &CollectionMark,
        repository: &Repository,
        mut needs: ManifestNeeds,
        found: &mut CollectedGarbage,
    ) -> Result<()> {
        needs.read_manifests(&self.inner, repository).await?;
        let RepositoryBlobs { all, unneeded } = self.layers(repository, &needs).await?;
        if needs.is_incomplete {
            return Ok(());
        }
        for batch in unneeded.chunks(BATCH) {
            let link = |digest| self.inner.layout.layer_link(repository, digest);
            if !mark.remove(batch.iter().map(link).collect()).await? {
                return Ok(());
            }
            found.links += batch.len() as u64;
        }
        if needs.manifests == 0
            && all == unneeded.len()
            && self.remove_rest(mark, repository).await?
        {
            found.repositories += 1;
        }
        Ok(())
    }

    /// Removes the remains of a repository without content. Returns whether all are removed.
    async fn remove_rest(&self, mark: &CollectionMark, repository: &Repository) -> Result<bool> {
        let layout = &self.inner.layout;
        for prefix in [
            layout.manifests(repository),
            layout.all_referrers(repository),
            layout.orphans(repository),
        ] {
            let entries: Vec<_> = self.inner.bucket.list(prefix.clone()).try_collect().await?;
            if !entries.iter().all(|entry| self.is_old(&entry.meta)) {
                return Ok(false);
            }
            let key = |below: &str| Path::from(format!("{prefix}{below}"));
            for batch in entries.chunks(BATCH) {
                let keys = batch.iter().map(|entry| key(&entry.below)).collect();
                if !mark.remove(keys).await? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    async fn layers(
        &self,
        repository: &Repository,
        needs: &ManifestNeeds,
    ) -> Result<RepositoryBlobs> {
        let layout = &self.inner.layout;
        let names = self.inner.links(&layout.layers(repository)).await?;
        // A manifest may need content by any of its digests.
        let needed: HashSet<_> = names
            .iter()
            .filter(|(digest, _, _)| needs.blobs.contains(digest))
            .filter_map(|(_, canonical, _)| canonical.clone())
            .collect();
        let is_unneeded = |(digest, canonical, meta): &LinkedContent| {
            canonical
                .as_ref()
                .is_none_or(|canonical| !needed.contains(canonical))
                && self.is_old(meta)
                && !self.inner.checked_blobs.contains(repository, digest)
        };
        Ok(RepositoryBlobs {
            all: names.len(),
            unneeded: names
                .into_iter()
                .filter(is_unneeded)
                .map(|(digest, _, _)| digest)
                .collect(),
        })
    }
}
