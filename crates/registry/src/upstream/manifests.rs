//! Manifests of upstreams.

use std::sync::Arc;
use std::time::Duration;

use blob_store::{ContentStore as _, StoreError};
use futures_util::FutureExt as _;
use oci::{Digest, Manifest, Tag, Target};

use super::Source;
use super::in_progress::Fetched;
use super::metrics::{self, Traffic};
use super::registry::Refusal;
use crate::error::RegistryError;

/// Timeout of an upstream's lookup when there is a local copy.
const PATIENCE: Duration = Duration::from_secs(10);

/// A manifest to serve.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) digest: Digest,
    pub(crate) manifest: Arc<Manifest>,
    /// The upstream could not be asked whether this is its current one.
    pub(crate) is_unconfirmed: bool,
}

impl Source {
    /// The manifest that the upstream has, or had when it was last there.
    ///
    /// Errors: it has none, or it cannot be reached and there is no copy.
    pub(crate) async fn manifest(&self, target: &Target) -> Result<Found, RegistryError> {
        let local = self.local(target).await?;
        if let Some((digest, manifest)) = &local
            && self.is_current(target)
        {
            return Ok(self.here(digest.clone(), Arc::clone(manifest), false));
        }
        let refusal = match (self.look_up(target, local.is_some()).await, &local) {
            (Ok(fetched), _) => return Ok(self.found(target, fetched)),
            (Err(refusal), _) => refusal,
        };
        match local {
            Some((digest, manifest)) if refusal.may_be_bridged => {
                let (name, upstream) = (&self.name, self.upstream.registry());
                tracing::warn!(repo.name = %name, %digest, upstream, "the local copy is served");
                Ok(self.here(digest, manifest, true))
            }
            _ => {
                metrics::asked(Traffic::Manifest, false);
                Err(refusal.into())
            }
        }
    }

    fn here(&self, digest: Digest, manifest: Arc<Manifest>, is_unconfirmed: bool) -> Found {
        metrics::asked(Traffic::Manifest, true);
        self.touch(&digest);
        Found {
            digest,
            manifest,
            is_unconfirmed,
        }
    }

    fn found(&self, target: &Target, fetched: Fetched) -> Found {
        let Fetched {
            digest,
            manifest,
            was_here,
        } = fetched;
        metrics::asked(Traffic::Manifest, was_here);
        self.touch(&digest);
        if let (Target::Tag(tag), Some(current)) = (target, &self.all.0.current) {
            current.insert((self.name.clone(), tag.clone()), ());
        }
        Found {
            digest,
            manifest,
            is_unconfirmed: false,
        }
    }

    async fn local(&self, target: &Target) -> Result<Option<(Digest, Arc<Manifest>)>, StoreError> {
        let store = &self.all.0.store;
        let found = async {
            let digest = match target {
                Target::Digest(digest) => digest.clone(),
                Target::Tag(tag) => store.resolve_tag(&self.name, tag).await?,
            };
            let manifest = store.manifest(&self.name, &digest).await?;
            Ok((digest, manifest))
        };
        match found.await {
            Ok(found) => Ok(Some(found)),
            Err(StoreError::UnknownManifest(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether the local copy is served without asking the upstream.
    fn is_current(&self, target: &Target) -> bool {
        match (target, &self.all.0.current) {
            (Target::Digest(_), _) => true,
            (Target::Tag(tag), Some(current)) => {
                current.contains_key(&(self.name.clone(), tag.clone()))
            }
            (Target::Tag(_), None) => false,
        }
    }

    async fn look_up(&self, target: &Target, is_here: bool) -> Result<Fetched, Refusal> {
        if !is_here {
            return self.join(target).await;
        }
        if self.upstream.is_away() {
            if self.upstream.is_due() {
                let (source, target) = (self.clone(), target.clone());
                tokio::spawn(async move { source.join(&target).await.is_ok() });
            }
            return Err(self.upstream.is_away_for("it was away last time"));
        }
        let ended = tokio::time::timeout(PATIENCE, self.join(target)).await;
        ended.unwrap_or_else(|_| {
            self.upstream.lost("it does not answer");
            Err(self.upstream.is_away_for("it does not answer"))
        })
    }

    async fn join(&self, target: &Target) -> Result<Fetched, Refusal> {
        let key = (self.name.clone(), target.clone());
        let (source, wanted) = (self.clone(), target.clone());
        let work = move || async move { source.fetch(&wanted).await }.boxed();
        let ended = self.all.0.lookups.run(key, work).await;
        ended.unwrap_or_else(|| Err(self.upstream.is_away_for("a lookup did not end")))
    }

    async fn fetch(&self, target: &Target) -> Result<Fetched, Refusal> {
        let upstream = &self.upstream;
        upstream.may_ask()?;
        let _turn = upstream.lookups.acquire().await;
        let unknown = || RegistryError::manifest_unknown(target);
        let refused = |error| upstream.refusal(&error, unknown());
        let client = &upstream.client;
        let digest = match target {
            Target::Digest(digest) => digest.clone(),
            Target::Tag(tag) => {
                let mut reference = self.remote.clone();
                reference.tag = Some(tag.clone());
                upstream
                    .heard(client.manifest_digest(&reference).await)
                    .map_err(refused)?
                    .ok_or_else(|| Refusal::own(unknown()))?
            }
        };
        let tag = match target {
            Target::Tag(tag) => Some(tag),
            Target::Digest(_) => None,
        };
        if let Some((digest, manifest)) = self
            .local(&Target::Digest(digest.clone()))
            .await
            .map_err(Refusal::own)?
        {
            self.point(tag, &digest, &manifest)
                .await
                .map_err(Refusal::own)?;
            return Ok(Fetched {
                digest,
                manifest,
                was_here: true,
            });
        }
        let reference = self.remote.with_digest(digest.clone());
        let manifest = upstream
            .heard(client.pull_manifest(&reference).await)
            .map_err(refused)?;
        metrics::pulled(Traffic::Manifest, manifest.bytes.len() as u64);
        let manifest = Arc::new(manifest);
        // Recorded before it is stored: a record without content does no harm, content without a record would never expire.
        self.expect(&digest).await.map_err(Refusal::own)?;
        self.keep(&manifest, &digest, tag)
            .await
            .map_err(Refusal::own)?;
        Ok(Fetched {
            digest,
            manifest,
            was_here: false,
        })
    }

    async fn point(
        &self,
        tag: Option<&Tag>,
        digest: &Digest,
        manifest: &Manifest,
    ) -> Result<(), StoreError> {
        let Some(tag) = tag else { return Ok(()) };
        match self.all.0.store.resolve_tag(&self.name, tag).await {
            Ok(at) if at == *digest => Ok(()),
            Ok(_) | Err(StoreError::UnknownManifest(_)) => {
                self.keep(manifest, digest, Some(tag)).await
            }
            Err(error) => Err(error),
        }
    }

    /// The content of a manifest is fetched on demand.
    async fn keep(
        &self,
        manifest: &Manifest,
        digest: &Digest,
        tag: Option<&Tag>,
    ) -> Result<(), StoreError> {
        let tags: Vec<_> = tag.into_iter().cloned().collect();
        let store = &self.all.0.store;
        store
            .put_manifest(&self.name, manifest, digest, &tags, true)
            .await
    }

    fn touch(&self, digest: &Digest) {
        if let Some(ages) = &self.all.0.ages {
            ages.touch(&self.name, digest, service::clock::now());
        }
    }

    async fn expect(&self, digest: &Digest) -> Result<(), StoreError> {
        match &self.all.0.ages {
            Some(ages) => ages.expect(&self.name, digest, service::clock::now()).await,
            None => Ok(()),
        }
    }
}
