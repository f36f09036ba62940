//! What the operator's policy forbids: more than a quota, and moving tags that stay where they are.

use axum::Json;
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse as _;
use blob_store::{BlobStore as _, StoreError};
use oci::{Digest, Manifest, Repository, Tag, Target};
use serde_json::json;
use tokio::sync::MutexGuard;
use uuid::Uuid;

use super::{Answer, RegistryError};
use crate::app::App;
use crate::policy::Reservation;

/// Tags that are asked for at once.
const PAGE: usize = 1000;

/// Room for content that `name` gets. Errors: a quota is exhausted.
pub(super) async fn room<'a>(
    app: &'a App,
    name: &Repository,
    content: Option<&Digest>,
    bytes: u64,
) -> Result<Reservation<'a>, RegistryError> {
    let policy = app.policies.get().await;
    let reserved = app
        .quotas
        .reserve(&app.store, policy, name, content, bytes)
        .await?;
    reserved.map_err(|exceeded| RegistryError::quota(&exceeded))
}

/// Whether there is room for what a request announces, and what its upload has already. Errors: a quota is exhausted.
pub(super) async fn announced(
    app: &App,
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
    if app.policies.get().await.quotas.is_empty() {
        return Ok(());
    }
    let there = match upload {
        Some(upload) => app.store.upload_size(name, upload).await?,
        None => 0,
    };
    let bytes = there.saturating_add(length);
    room(app, name, content, bytes).await.map(drop)
}

/// Room for a blob that `name` gets from another repository, or from any. Errors: a quota is exhausted.
pub(super) async fn room_to_mount<'a>(
    app: &'a App,
    name: &Repository,
    from: Option<&Repository>,
    digest: &Digest,
) -> Result<Reservation<'a>, RegistryError> {
    let mut bytes = 0;
    if !app.policies.get().await.quotas.is_empty() {
        let holders = match from {
            Some(from) => vec![from.clone()],
            None => app.store.holders(digest).await?,
        };
        for holder in holders {
            match app.store.blob_size(&holder, digest).await {
                Ok(size) => bytes = size,
                // Has it as a manifest, or not at all.
                Err(StoreError::UnknownBlob(_)) => continue,
                Err(error) => return Err(error.into()),
            }
            break;
        }
    }
    room(app, name, Some(digest), bytes).await
}

/// The lock under which `tags` are pointed at a manifest; none where no tag of them is immutable.
///
/// Errors: one of them stays where it is.
pub(super) async fn lock_immutable_tags<'a>(
    app: &'a App,
    name: &Repository,
    tags: &[Tag],
    manifest: &Manifest,
    digest: &Digest,
) -> Result<Option<MutexGuard<'a, ()>>, RegistryError> {
    let policy = app.policies.get().await;
    let fixed: Vec<_> = tags
        .iter()
        .filter(|tag| policy.is_immutable(name, tag))
        .collect();
    if fixed.is_empty() {
        return Ok(None);
    }
    let guard = app.turns.take(name).await;
    for tag in fixed {
        let at = match app.store.resolve_tag(name, tag).await {
            Ok(at) => at,
            Err(StoreError::UnknownManifest(_)) => continue,
            Err(error) => return Err(error.into()),
        };
        if at != *digest && canonical(app, name, &at).await?.as_ref() != Some(&manifest.digest) {
            return Err(RegistryError::immutable(tag, &at));
        }
    }
    Ok(Some(guard))
}

/// The lock under which a tag or manifest is deleted; none where the repository has no immutable tags.
///
/// Errors: the tag stays where it is, or one does that points at the manifest.
pub(super) async fn lock_for_deletion<'a>(
    app: &'a App,
    name: &Repository,
    target: &Target,
) -> Result<Option<MutexGuard<'a, ()>>, RegistryError> {
    let policy = app.policies.get().await;
    if !policy.has_immutable(name) {
        return Ok(None);
    }
    let guard = app.turns.take(name).await;
    let digest = match target {
        Target::Tag(tag) if policy.is_immutable(name, tag) => {
            let at = app.store.resolve_tag(name, tag).await?;
            return Err(RegistryError::immutable(tag, &at));
        }
        Target::Tag(_) => return Ok(Some(guard)),
        Target::Digest(digest) => digest,
    };
    let deleted = canonical(app, name, digest).await?;
    let mut after = String::new();
    loop {
        let page = match app.store.tagged(name, &after, PAGE).await {
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
                    || deleted.is_some() && canonical(app, name, &at).await? == deleted)
            {
                return Err(RegistryError::immutable(&tag, &at));
            }
        }
    }
}

/// The SHA-256 of a manifest, by whatever digest it is told; nothing when it is not there.
async fn canonical(
    app: &App,
    name: &Repository,
    digest: &Digest,
) -> Result<Option<Digest>, RegistryError> {
    match app.store.manifest(name, digest).await {
        Ok(manifest) => Ok(Some(manifest.digest.clone())),
        Err(StoreError::UnknownManifest(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Every quota with what it is used for.
pub(super) async fn usage(app: &App) -> Answer {
    let policy = app.policies.get().await;
    let usage = app.quotas.usage(&app.store, &policy).await?;
    let quotas: Vec<_> = usage
        .iter()
        .map(|quota| {
            json!({
                "repositories": quota.repositories,
                "limit": quota.limit,
                "used": quota.used,
            })
        })
        .collect();
    Ok(Json(json!({ "quotas": quotas })).into_response())
}
