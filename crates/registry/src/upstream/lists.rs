//! Lists of upstreams: of the upstream when it answers, else of the local copy.

use std::time::Duration;

use blob_store::{ContentStore as _, StoreError};
use oci::Referrer;
use oci::{Digest, Tag};

use super::Source;
use crate::error::RegistryError;

/// Timeout of a list of the upstream when there is a local one.
const PATIENCE: Duration = Duration::from_secs(30);

/// A list, and whether the upstream was not there to complete it.
type Listed<T> = Result<(Vec<T>, bool), RegistryError>;

impl Source {
    /// Up to `limit` tags after `after`, sorted by bytes.
    ///
    /// Errors: neither the upstream nor this registry knows the repository.
    pub(crate) async fn tags(&self, after: &str, limit: usize) -> Listed<Tag> {
        let store = &self.all.0.store;
        let unknown = || StoreError::UnknownRepository(self.name.clone()).into();
        let refusal = if self.is_not_asked() {
            self.upstream.is_away_for("it was away last time")
        } else {
            let _turn = self.upstream.lookups.acquire().await;
            let tags = self.upstream.client.tags(&self.remote);
            match self.patiently(tags).await {
                Ok(mut tags) => {
                    tags.retain(|tag| tag.as_str() > after);
                    tags.sort_unstable();
                    tags.dedup();
                    tags.truncate(limit);
                    return Ok((tags, false));
                }
                Err(error) => self.upstream.refusal(&error, unknown()),
            }
        };
        match store.tags(&self.name, after, limit).await {
            Ok(tags) if refusal.may_be_bridged => Ok((tags, true)),
            Ok(_) | Err(StoreError::UnknownRepository(_)) => Err(refusal.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Referrers of `subject`, local and of the upstream, sorted by digest.
    ///
    /// Errors: the store's.
    pub(crate) async fn referrers(&self, subject: &Digest) -> Listed<Referrer> {
        let mut found = self.all.0.store.referrers(&self.name, subject).await?;
        if self.is_not_asked() {
            return Ok((found, true));
        }
        let _turn = self.upstream.lookups.acquire().await;
        let listed = self.upstream.client.referrers(&self.remote, subject);
        match self.patiently(listed).await {
            Ok(listed) => {
                found.extend(listed);
                found.sort_by_cached_key(|referrer| referrer.digest.to_string());
                found.dedup_by(|a, b| a.digest == b.digest);
                Ok((found, false))
            }
            Err(oci::Error::NotFound { .. }) => Ok((found, false)),
            Err(_) => Ok((found, true)),
        }
    }

    fn is_not_asked(&self) -> bool {
        self.upstream.is_away() && !self.upstream.is_due()
    }

    async fn patiently<T>(
        &self,
        list: impl Future<Output = Result<T, oci::Error>>,
    ) -> Result<T, oci::Error> {
        let ended = tokio::time::timeout(PATIENCE, list).await;
        let late = |_| Err(oci::Error::unavailable("the upstream", "it takes too long"));
        self.upstream.heard(ended.unwrap_or_else(late))
    }
}
