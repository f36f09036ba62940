//! Enforcement of the operator's policy: quotas and immutable tags.

use std::sync::Arc;

use axum::http::{HeaderMap, header};
use blob_store::{ContentStore as _, StoreError};
use concurrency::KeyedMutex;
use oci::{Digest, Manifest, Repository, Tag, Target};
use serde_json::{Value, json};
use tokio::sync::OwnedMutexGuard;
use uuid::Uuid;

use crate::error::RegistryError;
use crate::policy::{Policies, Quotas, Reservation};
use crate::storage::Store;

/// Tags of one page of a listing.
const PAGE: usize = 1000;

/// Enforces the operator's policy.
#[derive(Debug)]
pub(crate) struct Enforcement {
    store: Store,
    policies: Arc<Policies>,
    quotas: Quotas,
    /// Held while immutable tags of a repository are checked and changed.
    tag_locks: KeyedMutex<Repository>,
}

impl Enforcement {
    pub(crate) fn new(store: Store, policies: Arc<Policies>) -> Self {
        Self {
            store,
            policies,
            quotas: Quotas::default(),
            tag_locks: KeyedMutex::default(),
        }
    }

    /// Reserves quota for content of `name`. Errors: a quota is exhausted.
    pub(super) async fn room(
        &self,
        name: &Repository,
        content: Option<&Digest>,
        bytes: u64,
    ) -> Result<Reservation<'_>, RegistryError> {
        let policy = self.policies.get().await;
        let reserved = self
            .quotas
            .reserve(&self.store, policy, name, content, bytes)
            .await?;
        reserved.map_err(|it| RegistryError::quota(&it.repositories, it.used, it.limit, it.wanted))
    }

    /// Checks the quota for the announced length and the bytes of its upload so far. Errors: a quota is exhausted.
    pub(super) async fn announced(
        &self,
        name: &Repository,
        upload: Option<Uuid>,
        content: Option<&Digest>,
        headers: &HeaderMap,
    ) -> Result<(), RegistryError> {
        let length = headers
            .get(header::CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        let Some(length) = length.filter(|length| *length > 0) else {
            return Ok(());
        };
        if self.policies.get().await.quotas.is_empty() {
            return Ok(());
        }
        let there = match upload {
            Some(upload) => self.store.upload_size(name, upload).await?,
            None => 0,
        };
        let bytes = there.saturating_add(length);
        self.room(name, content, bytes).await.map(drop)
    }

    /// Reserves quota for a blob that is mounted into `name` from another repository, or from any. Errors: a quota is exhausted.
    pub(super) async fn room_to_mount(
        &self,
        name: &Repository,
        from: Option<&Repository>,
        digest: &Digest,
    ) -> Result<Reservation<'_>, RegistryError> {
        let mut bytes = 0;
        if !self.policies.get().await.quotas.is_empty() {
            let holders = match from {
                Some(from) => vec![from.clone()],
                None => self.store.holders(digest).await?,
            };
            for holder in holders {
                match self.store.blob_size(&holder, digest).await {
                    Ok(size) => bytes = size,
                    // Has it as a manifest, or not at all.
                    Err(StoreError::UnknownBlob(_)) => continue,
                    Err(error) => return Err(error.into()),
                }
                break;
            }
        }
        self.room(name, Some(digest), bytes).await
    }

    /// The lock under which `tags` are pointed at a manifest; none where no tag of them is immutable.
    ///
    /// Errors: one of them is immutable and points elsewhere.
    pub(super) async fn lock_immutable_tags(
        &self,
        name: &Repository,
        tags: &[Tag],
        manifest: &Manifest,
        digest: &Digest,
    ) -> Result<Option<OwnedMutexGuard<()>>, RegistryError> {
        let policy = self.policies.get().await;
        let fixed: Vec<_> = tags
            .iter()
            .filter(|tag| policy.is_immutable(name, tag))
            .collect();
        if fixed.is_empty() {
            return Ok(None);
        }
        let guard = self.tag_locks.lock(name).await;
        for tag in fixed {
            let at = match self.store.resolve_tag(name, tag).await {
                Ok(at) => at,
                Err(StoreError::UnknownManifest(_)) => continue,
                Err(error) => return Err(error.into()),
            };
            if at != *digest && self.canonical(name, &at).await?.as_ref() != Some(&manifest.digest)
            {
                return Err(RegistryError::immutable(tag, &at));
            }
        }
        Ok(Some(guard))
    }

    /// The lock under which a tag or manifest is deleted; none where the repository has no immutable tags.
    ///
    /// Errors: the tag is immutable, or one that points at the manifest is.
    pub(super) async fn lock_for_deletion(
        &self,
        name: &Repository,
        target: &Target,
    ) -> Result<Option<OwnedMutexGuard<()>>, RegistryError> {
        let policy = self.policies.get().await;
        if !policy.has_immutable(name) {
            return Ok(None);
        }
        let guard = self.tag_locks.lock(name).await;
        let digest = match target {
            Target::Tag(tag) if policy.is_immutable(name, tag) => {
                let at = self.store.resolve_tag(name, tag).await?;
                return Err(RegistryError::immutable(tag, &at));
            }
            Target::Tag(_) => return Ok(Some(guard)),
            Target::Digest(digest) => digest,
        };
        let deleted = self.canonical(name, digest).await?;
        let mut after = String::new();
        loop {
            let page = match self.store.tagged(name, &after, PAGE).await {
                Ok(page) => page,
                Err(StoreError::UnknownRepository(_)) => return Ok(Some(guard)),
                Err(error) => return Err(error.into()),
            };
            let Some((last, _)) = page.last() else {
                return Ok(Some(guard));
            };
            after = last.to_string();
            for (tag, at) in page {
                if policy.is_immutable(name, &tag)
                    && (at == *digest
                        || deleted.is_some() && self.canonical(name, &at).await? == deleted)
                {
                    return Err(RegistryError::immutable(&tag, &at));
                }
            }
        }
    }

    /// The SHA-256 of a manifest that any of its digests names; None when it does not exist.
    async fn canonical(
        &self,
        name: &Repository,
        digest: &Digest,
    ) -> Result<Option<Digest>, RegistryError> {
        match self.store.manifest(name, digest).await {
            Ok(manifest) => Ok(Some(manifest.digest.clone())),
            Err(StoreError::UnknownManifest(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Every quota with its usage.
    pub(super) async fn usage(&self) -> Result<Vec<Value>, StoreError> {
        let policy = self.policies.get().await;
        let usage = self.quotas.usage(&self.store, &policy).await?;
        let quotas = usage.iter().map(|quota| {
            json!({
                "repositories": quota.repositories,
                "limit": quota.limit,
                "used": quota.used,
            })
        });
        Ok(quotas.collect())
    }
}
