//! Manifests, in and out as the same bytes.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use blob_store::{ContentStore as _, StoreError};
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use oci::{
    Digest, Kind, MANIFEST_LIMIT_BYTES, Manifest, Platform, Repository, Tag, Target, media_type,
};

use super::enforcement::Enforcement;
use super::headers::{Answer, CONTENT_DIGEST, UNCONFIRMED};
use super::{blobs, query};
use crate::error::RegistryError;
use crate::notifications::{Action, Notifications};
use crate::origin::Origins;
use crate::policy::Pulls;
use crate::storage::Store;
use crate::upstream::{Found, Traffic, Upstreams, pushed};
use crate::validation::{Needed, Validation};

/// A manifest has to arrive within this time: it is small, and it is held in memory.
const RECEIVE_LIMIT: Duration = Duration::from_mins(2);
/// Tags of one push. Source: distribution-spec, at least 10; beyond that 414.
const TAGS_LIMIT: usize = 64;
/// Header: the list of referrers has the manifest now. Source: distribution-spec.
const OCI_SUBJECT: header::HeaderName = header::HeaderName::from_static("oci-subject");
const OCI_TAG: header::HeaderName = header::HeaderName::from_static("oci-tag");

/// State of pulls, pushes and deletions of manifests.
#[derive(Debug)]
pub(super) struct ManifestState {
    pub(super) store: Store,
    pub(super) upstreams: Upstreams,
    pub(super) origins: Arc<Origins>,
    pub(super) enforcement: Arc<Enforcement>,
    pub(super) notifications: Notifications,
    pub(super) pulls: Arc<Pulls>,
    pub(super) validation: Arc<Validation>,
    pub(super) takes_schema1: bool,
}

pub(super) async fn get(
    state: &ManifestState,
    name: &Repository,
    target: &Target,
    head: &Parts,
) -> Answer {
    let mut found = find(state, name, target).await?;
    if let Target::Tag(tag) = target {
        state.pulls.note(name, tag);
    }
    if let Target::Tag(_) = target
        && let Some(child) = child_for_old_client(&found.manifest, &head.headers)
    {
        found = find(state, name, &Target::Digest(child)).await?;
    }
    let Found {
        digest, manifest, ..
    } = found;
    let mut response = if blobs::is_known(&head.headers, &digest) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        if head.method == Method::GET {
            let asked = match target {
                Target::Tag(tag) => std::slice::from_ref(tag),
                Target::Digest(_) => &[],
            };
            let pulled = (name, &digest, &*manifest);
            state
                .notifications
                .manifest(head, Action::Pull, pulled, asked);
            if state.upstreams.find(name).is_some() {
                pushed(Traffic::Manifest, manifest.bytes.len() as u64);
            }
        }
        let length = manifest.bytes.len() as u64;
        let mut response = Response::new(Body::from(manifest.bytes.clone()));
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static(manifest.media_type),
        );
        headers.insert(header::CONTENT_LENGTH, length.into());
        response
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_DIGEST, blobs::digest_header(&digest));
    headers.insert(header::ETAG, blobs::etag(&digest));
    if found.is_unconfirmed {
        headers.extend(UNCONFIRMED);
    }
    Ok(response)
}

/// A manifest from here, or from where it comes from.
async fn find(
    state: &ManifestState,
    name: &Repository,
    target: &Target,
) -> Result<Found, RegistryError> {
    if let Some(source) = state.upstreams.find(name) {
        return source.manifest(target).await;
    }
    let digest = match target {
        Target::Digest(digest) => digest.clone(),
        Target::Tag(tag) => state.store.resolve_tag(name, tag).await?,
    };
    Ok(Found {
        manifest: state.store.manifest(name, &digest).await?,
        digest,
        is_unconfirmed: false,
    })
}

pub(super) async fn put(
    state: &ManifestState,
    name: &Repository,
    target: &Target,
    head: &Parts,
    body: Body,
) -> Answer {
    let tags = tags(target, &head.uri)?;
    let manifest = read_manifest(state, head, body).await?;
    let digest = match target {
        Target::Tag(_) => manifest.digest.clone(),
        Target::Digest(claimed) => checked(claimed, &manifest)?,
    };
    let is_sparse = may_be_sparse(state, name, &manifest).await?;
    let _guard = state
        .enforcement
        .lock_immutable_tags(name, &tags, &manifest, &digest)
        .await?;
    let length = manifest.bytes.len() as u64;
    let room = state
        .enforcement
        .room(name, Some(&manifest.digest), length)
        .await?;
    state
        .store
        .put_manifest(name, &manifest, &digest, &tags, is_sparse)
        .await?;
    room.used();
    let pushed = (name, &digest, &manifest);
    state
        .notifications
        .manifest(head, Action::Push, pushed, &tags);
    let location = state.origins.of(head).manifest(name, &digest);
    Ok(created(location, target, &digest, &manifest, &tags))
}

/// The manifest in the body of a push, checked by itself.
async fn read_manifest(
    state: &ManifestState,
    head: &Parts,
    body: Body,
) -> Result<Manifest, RegistryError> {
    let content_type = head
        .headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| Some(value.to_str().ok()?.to_owned()));
    let bytes = receive(body).await?;
    // Hashing four megabytes takes longer than other requests should wait.
    let validation = Arc::clone(&state.validation);
    let parsed = tokio::task::spawn_blocking(move || {
        let manifest = Manifest::parse(bytes, content_type.as_deref())?;
        validation.check_urls(&manifest)?;
        manifest.verify_signatures()?;
        Ok(manifest)
    });
    let manifest = parsed
        .await
        .unwrap_or_else(|e| Err(model::Error::internal("reading a manifest", e)))
        .map_err(|e| RegistryError::manifest(&e))?;
    if !state.takes_schema1 && matches!(manifest.kind, Kind::Schema1 { .. }) {
        return Err(RegistryError::unsupported(
            "manifests of schema 1 are switched off: REGISTRY_COMPATIBILITY_SCHEMA1_ENABLED",
        ));
    }
    Ok(manifest)
}

/// The response to a push, with the tags that came with a digest.
fn created(
    location: HeaderValue,
    target: &Target,
    digest: &Digest,
    manifest: &Manifest,
    tags: &[Tag],
) -> Response {
    let headers = [
        (header::LOCATION, location),
        (CONTENT_DIGEST, blobs::digest_header(digest)),
        (header::CONTENT_LENGTH, HeaderValue::from_static("0")),
    ];
    let mut response = (StatusCode::CREATED, headers).into_response();
    if let Some(subject) = &manifest.subject {
        let subject = blobs::digest_header(&subject.digest);
        response.headers_mut().insert(OCI_SUBJECT, subject);
    }
    if let Target::Digest(_) = target {
        for tag in tags {
            response
                .headers_mut()
                .extend(HeaderValue::from_str(tag.as_str()).map(|value| (OCI_TAG, value)));
        }
    }
    response
}

pub(super) async fn delete(
    state: &ManifestState,
    name: &Repository,
    target: &Target,
    head: &Parts,
) -> Answer {
    let _guard = state.enforcement.lock_for_deletion(name, target).await?;
    match target {
        Target::Tag(tag) => {
            state.store.delete_tag(name, tag).await?;
            state.notifications.deletion(head, name, None, Some(tag));
        }
        Target::Digest(digest) => {
            state.store.delete_manifest(name, digest).await?;
            state.notifications.deletion(head, name, Some(digest), None);
        }
    }
    Ok((StatusCode::ACCEPTED, [(header::CONTENT_LENGTH, "0")]).into_response())
}

/// Whether content of the manifest may be missing (sparse index).
///
/// Errors: required content is missing.
async fn may_be_sparse(
    state: &ManifestState,
    name: &Repository,
    manifest: &Manifest,
) -> Result<bool, RegistryError> {
    let (needed, one_is_enough) = match state.validation.needed(manifest) {
        Needed::Everything => return Ok(false),
        Needed::Nothing => return Ok(true),
        Needed::Manifests(digests) => (digests, false),
        Needed::OneOf(digests) => (digests, true),
    };
    let mut missing = Vec::new();
    for digest in needed {
        match state.store.manifest(name, &digest).await {
            Ok(_) if one_is_enough => return Ok(true),
            Ok(_) => {}
            Err(StoreError::UnknownManifest(_)) => missing.push(digest),
            Err(error) => return Err(error.into()),
        }
    }
    if missing.is_empty() {
        Ok(true)
    } else {
        Err(StoreError::MissingContent(missing).into())
    }
}

/// The tag of the address, or those of the parameters `tag` beside a digest.
fn tags(target: &Target, uri: &Uri) -> Result<Vec<Tag>, RegistryError> {
    let named: Vec<String> = query::pairs(uri)
        .into_iter()
        .filter(|(name, _)| name == "tag")
        .map(|(_, value)| value)
        .collect();
    match target {
        Target::Tag(tag) if named.is_empty() => Ok(vec![tag.clone()]),
        Target::Tag(_) => Err(RegistryError::tag(&model::Error::invalid(
            "tag",
            "the parameter goes with a digest only",
        ))),
        Target::Digest(_) if named.len() > TAGS_LIMIT => {
            Err(RegistryError::too_many_tags(TAGS_LIMIT))
        }
        Target::Digest(_) => named
            .iter()
            .map(|text| text.parse().map_err(|e| RegistryError::tag(&e)))
            .collect(),
    }
}

async fn receive(body: Body) -> Result<Bytes, RegistryError> {
    let body = Limited::new(body, MANIFEST_LIMIT_BYTES).collect();
    let too_large = || model::Error::TooLarge {
        what: "manifest",
        limit: MANIFEST_LIMIT_BYTES as u64,
    };
    match tokio::time::timeout(RECEIVE_LIMIT, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err(RegistryError::manifest(&too_large()))
        }
        Ok(Err(error)) => Err(StoreError::Interrupted(error).into()),
        Err(elapsed) => Err(StoreError::Interrupted(elapsed.into()).into()),
    }
}

fn checked(claimed: &Digest, manifest: &Manifest) -> Result<Digest, RegistryError> {
    let actual = Digest::of(claimed.algorithm(), manifest.digested());
    if actual == *claimed {
        return Ok(actual);
    }
    Err(StoreError::WrongDigest {
        claimed: claimed.clone(),
        actual,
    }
    .into())
}

/// The linux/amd64 entry of a Docker list, for a client that says it can read single Docker manifests only.
fn child_for_old_client(manifest: &Manifest, headers: &HeaderMap) -> Option<Digest> {
    let Kind::Index { manifests } = &manifest.kind else {
        return None;
    };
    let accepted: Vec<&str> = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .map(|item| item.split(';').next().unwrap_or_default().trim())
        .collect();
    let has = |media_type: &str| accepted.contains(&media_type);
    let is_old = has(media_type::DOCKER_MANIFEST)
        && !has(media_type::DOCKER_LIST)
        && !has(media_type::OCI_INDEX)
        && !has("*/*");
    if manifest.media_type != media_type::DOCKER_LIST || !is_old {
        return None;
    }
    let wanted = Platform::linux("amd64");
    let entry = manifests
        .iter()
        .find(|entry| entry.platform.as_ref() == Some(&wanted))?;
    Some(entry.digest.clone())
}
