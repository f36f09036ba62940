//! What no rule keeps, taken away while everything goes on: what changes meanwhile stays.

use std::collections::HashMap;

use blob_store::{BlobStore as _, StoreError};
use model::time::Timestamp;
use oci::{Algorithm, Digest, Kind, Manifest, Repository, Target};
use serde::Serialize;

use super::retention::{self, Held, Tagged};
use super::{Policy, Retention};
use crate::app::App;

/// Entries of a list that are asked for at once.
const PAGE: usize = 1000;
/// Repositories that are reported by name; beyond that, what goes is only counted.
const NAMED_LIMIT: usize = 1000;

/// What no rule kept.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Expired {
    /// Nothing went.
    pub(crate) is_dry: bool,
    pub(crate) tags: u64,
    pub(crate) manifests: u64,
    pub(crate) repositories: Vec<ExpiredThere>,
}

/// What no rule kept in a repository.
#[derive(Debug, Serialize)]
pub(crate) struct ExpiredThere {
    repository: Repository,
    tags: Vec<String>,
    manifests: Vec<Digest>,
}

/// Lets go in every repository what the policy does not keep; nothing without a policy.
pub(crate) async fn retain(app: &App, is_dry: bool) -> Result<Option<Expired>, StoreError> {
    let policy = app.policies.get().await;
    if policy.retention.policies.is_empty() {
        return Ok(None);
    }
    let mut expired = Expired {
        is_dry: is_dry || policy.retention.dry_run,
        ..Expired::default()
    };
    let mut after = String::new();
    loop {
        let page = app.store.repositories(&after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = last.to_string();
        for repository in page {
            one(app, &policy, repository, &mut expired).await?;
        }
    }
    Ok(Some(expired))
}

async fn one(
    app: &App,
    policy: &Policy,
    repository: Repository,
    expired: &mut Expired,
) -> Result<(), StoreError> {
    let Retention { delay, .. } = policy.retention;
    let Some(rules) = policy.retention.rules(&repository) else {
        return Ok(());
    };
    let now = service::clock::now();
    let found = match look(app, policy, &repository, now).await {
        // Deleted meanwhile, or damaged: what it keeps is not known then.
        Err(StoreError::UnknownManifest(_) | StoreError::UnknownRepository(_)) => None,
        found => Some(found?),
    };
    let Some((tags, manifests)) = found else {
        tracing::warn!(repo.name = %repository, "retention leaves the repository alone: something in it cannot be read now");
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
        if go(
            app,
            &there.repository,
            &target,
            tagged.pushed_at,
            expired.is_dry,
        )
        .await?
        {
            there.tags.push(tagged.tag.to_string());
        }
    }
    for held in decision.manifests {
        let target = Target::Digest(held.digest.clone());
        if go(
            app,
            &there.repository,
            &target,
            held.pushed_at,
            expired.is_dry,
        )
        .await?
        {
            there.manifests.push(held.digest.clone());
        }
    }
    if !expired.is_dry {
        let tags = tags.iter().map(|tagged| tagged.tag.as_str());
        let tags: std::collections::HashSet<_> = tags.collect();
        app.pulls
            .retain(&there.repository, |tag| tags.contains(tag));
    }
    expired.tags += there.tags.len() as u64;
    expired.manifests += there.manifests.len() as u64;
    if there.tags.len() + there.manifests.len() > 0 && expired.repositories.len() < NAMED_LIMIT {
        expired.repositories.push(there);
    }
    Ok(())
}

async fn go(
    app: &App,
    repository: &Repository,
    target: &Target,
    pushed_at: Timestamp,
    is_dry: bool,
) -> Result<bool, StoreError> {
    if is_dry {
        return Ok(true);
    }
    app.store.expire(repository, target, pushed_at).await
}

/// All tags and manifests of a repository. Errors: UnknownManifest – one that cannot be read.
async fn look(
    app: &App,
    policy: &Policy,
    repository: &Repository,
    now: Timestamp,
) -> Result<(Vec<Tagged>, Vec<Held>), StoreError> {
    let mut names = Names::new(app, repository);
    let (mut tags, mut after) = (Vec::new(), String::new());
    loop {
        let page = app.store.tagged(repository, &after, PAGE).await?;
        let Some((last, _)) = page.last() else { break };
        after = last.to_string();
        for (tag, told) in page {
            let pulled_at = if policy.wants_pulls() {
                app.pulls.last(repository, &tag, now)
            } else {
                now
            };
            let target = Target::Tag(tag.clone());
            tags.push(Tagged {
                pushed_at: app.store.pushed_at(repository, &target).await?,
                pulled_at,
                is_immutable: policy.is_immutable(repository, &tag),
                digest: names.canonical(&told).await?,
                tag,
            });
        }
    }
    let (mut manifests, mut after) = (Vec::new(), None);
    loop {
        let page = app
            .store
            .manifests(repository, after.as_ref(), PAGE)
            .await?;
        let Some(last) = page.last() else { break };
        after = Some(last.digest.clone());
        for content in page {
            let digest = content.digest;
            let manifest = app.store.manifest(repository, &digest).await?;
            manifests.push(held(app, repository, &mut names, &manifest).await?);
        }
    }
    Ok((tags, manifests))
}

async fn held(
    app: &App,
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
        pushed_at: app.store.pushed_at(repository, &target).await?,
        children,
        subject,
    })
}

/// The SHA-256 of manifests that are told by other digests.
struct Names<'a> {
    app: &'a App,
    repository: &'a Repository,
    known: HashMap<Digest, Digest>,
}

impl<'a> Names<'a> {
    fn new(app: &'a App, repository: &'a Repository) -> Self {
        Self {
            app,
            repository,
            known: HashMap::new(),
        }
    }

    async fn canonical(&mut self, told: &Digest) -> Result<Digest, StoreError> {
        if told.algorithm() == Algorithm::Sha256 {
            return Ok(told.clone());
        }
        if let Some(known) = self.known.get(told) {
            return Ok(known.clone());
        }
        let canonical = match self.app.store.manifest(self.repository, told).await {
            Ok(manifest) => manifest.digest.clone(),
            // It is not there: then any name will do.
            Err(StoreError::UnknownManifest(_)) => told.clone(),
            Err(error) => return Err(error),
        };
        self.known.insert(told.clone(), canonical.clone());
        Ok(canonical)
    }
}
