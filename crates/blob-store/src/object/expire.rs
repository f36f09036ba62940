//! Retention: removal of expired tags and manifests, under a mark like garbage.

use model::time::Timestamp;

use super::inner::BucketInner;
use super::requests::unavailable;
use crate::content_name::ContentName;
use crate::{Result, StoreError};
use oci::{Digest, Repository, Tag, Target};

impl BucketInner {
    /// Removes a tag, or a manifest that nothing needs, unless it was pushed after `pushed_at`. Returns whether it did.
    pub(super) async fn expire(
        &self,
        repository: &Repository,
        target: &Target,
        pushed_at: Timestamp,
    ) -> Result<bool> {
        // First without a mark, which delays pushes: most requests expire nothing.
        if !self.is_expired(repository, target, pushed_at).await? {
            return Ok(false);
        }
        let mark = self.mark().await?;
        let expired = async {
            if !self.is_expired(repository, target, pushed_at).await? {
                return Ok(false);
            }
            if !mark.is_valid() {
                return Err(unavailable(
                    "checking the needs of a manifest took too long",
                ));
            }
            match target {
                Target::Tag(tag) => self.remove_tag(repository, tag).await?,
                Target::Digest(digest) => self.delete_manifest(repository, digest).await?,
            }
            Ok(true)
        };
        let expired = expired.await;
        mark.end().await?;
        match expired {
            Err(StoreError::UnknownManifest(_)) => Ok(false),
            expired => expired,
        }
    }

    pub(super) async fn is_expired(
        &self,
        repository: &Repository,
        target: &Target,
        pushed_at: Timestamp,
    ) -> Result<bool> {
        let found = self.pushed_at(repository, target).await?;
        if found.is_none_or(|found| found > pushed_at) {
            return Ok(false);
        }
        match target {
            Target::Tag(_) => Ok(true),
            Target::Digest(digest) => Ok(!self.is_needed(repository, digest).await?),
        }
    }

    /// Whether a manifest has a tag, an index, or an existing subject.
    async fn is_needed(&self, repository: &Repository, digest: &Digest) -> Result<bool> {
        let Some(manifest) = self.manifest(repository, digest).await? else {
            return Ok(true);
        };
        if let Some(subject) = &manifest.subject
            && self.manifest(repository, &subject.digest).await?.is_some()
        {
            return Ok(true);
        }
        let name = ContentName::new(manifest.digest.clone(), digest);
        if !self.tags_at(repository, &name).await?.is_empty() {
            return Ok(true);
        }
        Ok(!self.needed_by(repository, digest).await?.is_empty())
    }

    /// Tags that point at a manifest, under any of its digests.
    pub(super) async fn tags_at(
        &self,
        repository: &Repository,
        name: &ContentName,
    ) -> Result<Vec<Tag>> {
        let mut found = Vec::new();
        let fits = |digest: &Digest| name.digests().any(|name| name == digest);
        for tag in self.tags_ever_at(repository, fits).await? {
            let current = self
                .link(&self.layout.tag_current(repository, &tag))
                .await?;
            if current.is_some_and(|current| fits(&current)) {
                found.push(tag);
            }
        }
        Ok(found)
    }
}
