//! Expiry of unretained content beside pushes: content that changes meanwhile stays.

use std::collections::HashMap;

use blob_store::{ContentStore as _, StoreError};
use model::time::Timestamp;
use oci::{Algorithm, Digest, Kind, Manifest, Repository, Target};
use serde::Serialize;

use super::retention::{self, Held, Tagged};
use super::{Policies, Policy, Pulls, Retention};
use crate::storage::Store;

/// Entries of one page of a listing.
const PAGE: usize = 1000;
/// Repositories that are reported by name; expired content of others is only counted.
const NAMED_LIMIT: usize = 1000;

/// Unretained content.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Expired {
    /// Nothing went.
    pub(crate) is_dry: bool,
    pub(crate) tags: u64,
    pub(crate) manifests: u64,
    pub(crate) repositories: Vec<ExpiredThere>,
}

/// Unretained content of a repository.
#[derive(Debug, Serialize)]
pub(crate) struct ExpiredThere {
    repository: Repository,
    tags: Vec<String>,
    manifests: Vec<Digest>,
}

/// Expires the content of every repository that the policy does not retain; None without a policy.
pub(crate) async fn retain(
    store: &Store,
    policies: &Policies,
    pulls: &Pulls,
    is_dry: bool,
) -> Result<Option<Expired>, StoreError> {
    let policy = policies.get().await;
    if policy.retention.policies.is_empty() {
        return Ok(None);
    }
    let run = RetentionRun {
        store,
        pulls,
        policy: &policy,
        is_dry: is_dry || policy.retention.dry_run,
    };
    let mut expired = Expired {
        is_dry: run.is_dry,
        ..Expired::default()
    };
    let mut after = String::new();
    loop {
        let page = store.repositories(&after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = last.to_string();
        for repository in page {
            run.repository(repository, &mut expired).await?;
        }
    }
    Ok(Some(expired))
}

/// One application of the policy.
#[derive(Clone, Copy)]
struct RetentionRun<'a> {
    store: &'a Store,
    pulls: &'a Pulls,
    policy: &'a Policy,
    is_dry: bool,
}

impl RetentionRun<'_> {
    async fn repository(
        self,
        repository: Repository,
        expired: &mut Expired,
    ) -> Result<(), StoreError> {
        let Retention { delay, .. } = self.policy.retention;
        let Some(rules) = self.policy.retention.rules(&repository) else {
            return Ok(());
        };
        let now = service::clock::now();
        let found = match self.content(&repository, now).await {
            // Deleted meanwhile, or damaged: its dependents are unknown then.
            Err(StoreError::UnknownManifest(_) | StoreError::UnknownRepository(_)) => None,
            found => Some(found?),
        };
        let Some((tags, manifests)) = found else {
            tracing::warn!(repo.name = %repository, "repository skipped by retention: part of its content cannot be read");
            return Ok(());
        };
        let decision = retention::decide(rules, delay, &tags, &manifests, now);
        let mut there = ExpiredThere {
            repository,
            tags: Vec::new(),
            manifests: Vec::new(),
        };
        for tagged in decision.tags {
            let target = Target::Tag(tagged.tag.clone());
            if self
                .expire(&there.repository, &target, tagged.pushed_at)
                .await?
            {
                there.tags.push(tagged.tag.to_string());
            }
        }
        for held in decision.manifests {
            let target = Target::Digest(held.digest.clone());
            if self
                .expire(&there.repository, &target, held.pushed_at)
                .await?
            {
                there.manifests.push(held.digest.clone());
            }
        }
        if !self.is_dry {
            let tags = tags.iter().map(|tagged| tagged.tag.as_str());
            let tags: std::collections::HashSet<_> = tags.collect();
            self.pulls
                .retain(&there.repository, |tag| tags.contains(tag));
        }
        expired.tags += there.tags.len() as u64;
        expired.manifests += there.manifests.len() as u64;
        if there.tags.len() + there.manifests.len() > 0 && expired.repositories.len() < NAMED_LIMIT
        {
            expired.repositories.push(there);
        }
        Ok(())
    }

    async fn expire(
        self,
        repository: &Repository,
        target: &Target,
        pushed_at: Timestamp,
    ) -> Result<bool, StoreError> {
        if self.is_dry {
            return Ok(true);
        }
        self.store.expire(repository, target, pushed_at).await
    }

    /// All tags and manifests of a repository. Errors: UnknownManifest – one that cannot be read.
    async fn content(
        self,
        repository: &Repository,
        now: Timestamp,
    ) -> Result<(Vec<Tagged>, Vec<Held>), StoreError> {
        let mut names = Names::new(self.store, repository);
        let (mut tags, mut after) = (Vec::new(), String::new());
        loop {
            let page = self.store.tagged(repository, &after, PAGE).await?;
            let Some((last, _)) = page.last() else { break };
            after = last.to_string();
            for (tag, digest) in page {
                let pulled_at = if self.policy.wants_pulls() {
                    self.pulls.last(repository, &tag, now)
                } else {
                    now
                };
                let target = Target::Tag(tag.clone());
                tags.push(Tagged {
                    pushed_at: self.store.pushed_at(repository, &target).await?,
                    pulled_at,
                    is_immutable: self.policy.is_immutable(repository, &tag),
                    digest: names.canonical(&digest).await?,
                    tag,
                });
            }
        }
        let (mut manifests, mut after) = (Vec::new(), None);
        loop {
            let page = self
                .store
                .manifests(repository, after.as_ref(), PAGE)
                .await?;
            let Some(last) = page.last() else { break };
            after = Some(last.digest.clone());
            for content in page {
                let digest = content.digest;
                let manifest = self.store.manifest(repository, &digest).await?;
                manifests.push(self.held(repository, &mut names, &manifest).await?);
            }
        }
        Ok((tags, manifests))
    }

    async fn held(
        self,
        repository: &Repository,
        names: &mut Names<'_>,
        manifest: &Manifest,
    ) -> Result<Held, StoreError> {
        let digest = manifest.digest.clone();
        let target = Target::Digest(digest.clone());
        let mut children = Vec::new();
        if let Kind::Index { manifests } = &manifest.kind {
            for child in manifests {
                children.push(names.canonical(&child.digest).await?);
            }
        }
        let subject = match &manifest.subject {
            Some(subject) => Some(names.canonical(&subject.digest).await?),
            None => None,
        };
        Ok(Held {
            digest,
            pushed_at: self.store.pushed_at(repository, &target).await?,
            children,
            subject,
        })
    }
}

/// The SHA-256 of manifests that are named by other digests.
struct Names<'a> {
    store: &'a Store,
    repository: &'a Repository,
    known: HashMap<Digest, Digest>,
}

impl<'a> Names<'a> {
    fn new(store: &'a Store, repository: &'a Repository) -> Self {
        Self {
            store,
            repository,
            known: HashMap::new(),
        }
    }

    async fn canonical(&mut self, digest: &Digest) -> Result<Digest, StoreError> {
        if digest.algorithm() == Algorithm::Sha256 {
            return Ok(digest.clone());
        }
        if let Some(known) = self.known.get(digest) {
            return Ok(known.clone());
        }
        let canonical = match self.store.manifest(self.repository, digest).await {
            Ok(manifest) => manifest.digest.clone(),
            // It is not there: then any name will do.
            Err(StoreError::UnknownManifest(_)) => digest.clone(),
            Err(error) => return Err(error),
        };
        self.known.insert(digest.clone(), canonical.clone());
        Ok(canonical)
    }
}
