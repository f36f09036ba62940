//! Uploads and cross-repository mounts of blobs.

use std::sync::Arc;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use blob_store::ContentStore as _;
use oci::{Algorithm, Digest, Repository};
use service::range;
use uuid::Uuid;

use super::enforcement::Enforcement;
use super::headers::{Answer, CONTENT_DIGEST, UPLOAD_UUID};
use super::{blobs, query};
use crate::auth::{self, Access};
use crate::error::RegistryError;
use crate::notifications::{Action, Notifications};
use crate::observe;
use crate::origin::{Origin, Origins};
use crate::storage::Store;

/// State of uploads and mounts.
#[derive(Debug)]
pub(super) struct UploadState {
    pub(super) store: Store,
    pub(super) origins: Arc<Origins>,
    pub(super) enforcement: Arc<Enforcement>,
    pub(super) notifications: Notifications,
}

pub(super) async fn start(
    state: &UploadState,
    access: &Access,
    name: &Repository,
    head: &Parts,
    body: Body,
) -> Answer {
    let origin = state.origins.of(head);
    let uri = &head.uri;
    if let Some(algorithm) = query::value(uri, "digest-algorithm") {
        // Only a hint, but one that cannot be followed is an error.
        algorithm
            .parse::<Algorithm>()
            .map_err(|e| RegistryError::digest(e.to_string()))?;
    }
    if let Some(digest) = query::value(uri, "mount") {
        let from = query::value(uri, "from")
            .map(|from| from.parse::<Repository>())
            .transpose();
        let may_read = |from: &Option<Repository>| match from {
            Some(from) => access.allows(from, auth::Action::Pull),
            None => access.allows_everywhere(auth::Action::Pull),
        };
        // A blob that cannot be mounted is uploaded instead: never an error.
        if let (Ok(digest), Ok(from)) = (digest.parse::<Digest>(), from)
            && may_read(&from)
        {
            let room = state
                .enforcement
                .room_to_mount(name, from.as_ref(), &digest)
                .await?;
            if state.store.mount_blob(name, from.as_ref(), &digest).await? {
                room.used();
                if state.notifications.is_enabled()
                    && let Ok(size) = state.store.blob_size(name, &digest).await
                {
                    let mounted = (name, &digest, size);
                    state
                        .notifications
                        .blob(head, Action::Mount, mounted, from.as_ref());
                }
                return Ok(created(&origin, name, &digest));
            }
        }
    }
    let digest = match query::value(uri, "digest") {
        Some(text) => Some(parse_digest(&text)?),
        None => None,
    };
    state
        .enforcement
        .announced(name, None, digest.as_ref(), &head.headers)
        .await?;
    let id = state
        .store
        .start_upload(name, service::clock::now())
        .await?;
    observe::upload("started", 1);
    let Some(digest) = digest else {
        return Ok(pending(StatusCode::ACCEPTED, &origin, name, id, 0));
    };
    if let Err(error) = complete(state, name, id, (None, body), &digest, head).await {
        // No client knows the id of this upload.
        state.store.cancel_upload(name, id).await.ok();
        observe::upload("cancelled", 1);
        return Err(error);
    }
    Ok(created(&origin, name, &digest))
}

pub(super) async fn append(
    state: &UploadState,
    name: &Repository,
    id: Uuid,
    head: &Parts,
    body: Body,
) -> Answer {
    let origin = state.origins.of(head);
    let offset = offset(&head.headers)?;
    state
        .enforcement
        .announced(name, Some(id), None, &head.headers)
        .await?;
    let size = receive(state, name, id, offset, body).await?;
    Ok(pending(StatusCode::ACCEPTED, &origin, name, id, size))
}

pub(super) async fn finish(
    state: &UploadState,
    name: &Repository,
    id: Uuid,
    head: &Parts,
    body: Body,
) -> Answer {
    let origin = state.origins.of(head);
    let digest = query::value(&head.uri, "digest")
        .ok_or_else(|| RegistryError::digest("the parameter digest is missing"))?;
    let digest = parse_digest(&digest)?;
    let offset = offset(&head.headers)?;
    state
        .enforcement
        .announced(name, Some(id), Some(&digest), &head.headers)
        .await?;
    complete(state, name, id, (offset, body), &digest, head).await?;
    Ok(created(&origin, name, &digest))
}

/// Appends the last piece and makes it all the blob `digest`.
async fn complete(
    state: &UploadState,
    name: &Repository,
    id: Uuid,
    (offset, body): (Option<u64>, Body),
    digest: &Digest,
    head: &Parts,
) -> Result<(), RegistryError> {
    let size = receive(state, name, id, offset, body).await?;
    commit(state, name, id, digest, size).await?;
    observe::upload("finished", 1);
    state
        .notifications
        .blob(head, Action::Push, (name, digest, size), None);
    Ok(())
}

pub(super) async fn status(
    state: &UploadState,
    name: &Repository,
    id: Uuid,
    head: &Parts,
) -> Answer {
    let size = state.store.upload_size(name, id).await?;
    Ok(pending(
        StatusCode::NO_CONTENT,
        &state.origins.of(head),
        name,
        id,
        size,
    ))
}

pub(super) async fn cancel(state: &UploadState, name: &Repository, id: Uuid) -> Answer {
    state.store.cancel_upload(name, id).await?;
    observe::upload("cancelled", 1);
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Makes an upload a blob; one that there is no room for is dropped.
async fn commit(
    state: &UploadState,
    name: &Repository,
    id: Uuid,
    digest: &Digest,
    size: u64,
) -> Result<(), RegistryError> {
    let room = match state.enforcement.room(name, Some(digest), size).await {
        Ok(room) => room,
        Err(error) => {
            state.store.cancel_upload(name, id).await.ok();
            return Err(error);
        }
    };
    state.store.finish_upload(name, id, digest).await?;
    room.used();
    Ok(())
}

/// Appends the body; fewer bytes than announced stay, but are an error.
async fn receive(
    state: &UploadState,
    name: &Repository,
    id: Uuid,
    offset: Option<u64>,
    body: Body,
) -> Result<u64, RegistryError> {
    let bytes = body.into_data_stream();
    Ok(state.store.append_upload(name, id, offset, bytes).await?)
}

/// Where a piece says it begins; its length has to fit its range.
fn offset(headers: &HeaderMap) -> Result<Option<u64>, RegistryError> {
    let Some(value) = headers.get(header::CONTENT_RANGE) else {
        return Ok(None);
    };
    let (first, last) =
        value.to_str().ok().and_then(range::piece).ok_or_else(|| {
            RegistryError::range("expected a Content-Range of the form first-last")
        })?;
    let length = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| last - first != length.wrapping_sub(1)) {
        return Err(RegistryError::size(
            "Content-Range and Content-Length do not fit",
        ));
    }
    Ok(Some(first))
}

fn parse_digest(text: &str) -> Result<Digest, RegistryError> {
    text.parse()
        .map_err(|e: model::Error| RegistryError::digest(e.to_string()))
}

fn created(origin: &Origin, name: &Repository, digest: &Digest) -> Response {
    let headers = [
        (header::LOCATION, origin.blob(name, digest)),
        (CONTENT_DIGEST, blobs::digest_header(digest)),
        (header::CONTENT_LENGTH, HeaderValue::from_static("0")),
    ];
    (StatusCode::CREATED, headers).into_response()
}

fn pending(
    status: StatusCode,
    origin: &Origin,
    name: &Repository,
    id: Uuid,
    size: u64,
) -> Response {
    // `0-0` for none as for one byte: clients know it from distribution.
    let range = format!("0-{}", size.saturating_sub(1));
    let mut response = (
        status,
        [(header::RANGE, range), (UPLOAD_UUID, id.to_string())],
    )
        .into_response();
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, origin.upload(name, id));
    if status != StatusCode::NO_CONTENT {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_begin_where_they_say() {
        let headers = |range: &'static str, length: &'static str| {
            HeaderMap::from_iter([
                (header::CONTENT_RANGE, HeaderValue::from_static(range)),
                (header::CONTENT_LENGTH, HeaderValue::from_static(length)),
            ])
        };
        assert_eq!(offset(&HeaderMap::new()).unwrap(), None);
        assert_eq!(offset(&headers("5-9", "5")).unwrap(), Some(5));
        for (wrong, length, status) in [
            ("5-9", "4", 400),
            ("5-9", "0", 400),
            ("9-5", "5", 416),
            ("x", "5", 416),
        ] {
            assert_eq!(
                offset(&headers(wrong, length))
                    .unwrap_err()
                    .answer()
                    .status()
                    .as_u16(),
                status
            );
        }
    }
}
