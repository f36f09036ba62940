//! Downloads and deletions of blobs.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use blob_store::{ContentStore as _, StoreError};
use oci::{Digest, Repository};
use service::range::{RangeRequest, content_range};
use service::sendfile;

use super::headers::{Answer, CONTENT_DIGEST};
use crate::error::RegistryError;
use crate::notifications::{Action, Notifications};
use crate::storage::Store;
use crate::upstream::{Remote, Source, Traffic, Upstreams, pushed};

/// Units: bytes. Below, one read costs less than a mapping.
const SENDFILE_FROM_BYTES: u64 = 64 * 1024;

/// State of downloads and deletions of blobs.
#[derive(Debug)]
pub(super) struct BlobState {
    pub(super) store: Store,
    pub(super) upstreams: Upstreams,
    pub(super) notifications: Notifications,
}

pub(super) async fn get(
    state: &BlobState,
    name: &Repository,
    digest: &Digest,
    head: &Parts,
) -> Answer {
    let headers = &head.headers;
    let is_content_wanted = head.method != Method::HEAD && !is_known(headers, digest);
    let (size, remote) = find(state, name, digest, is_content_wanted).await?;
    if is_known(headers, digest) {
        let mut response = StatusCode::NOT_MODIFIED.into_response();
        describe(response.headers_mut(), digest);
        return Ok(response);
    }
    let wanted = match headers.get(header::IF_RANGE) {
        Some(tag) if tag.as_bytes() != etag(digest).as_bytes() => RangeRequest::Full,
        _ => RangeRequest::parse(text(headers, header::RANGE), size),
    };
    let (status, part) = match wanted {
        RangeRequest::Full => (StatusCode::OK, 0..size),
        RangeRequest::Partial(part) => (StatusCode::PARTIAL_CONTENT, part),
        RangeRequest::NotSatisfiable => {
            return Ok((
                StatusCode::RANGE_NOT_SATISFIABLE,
                [(header::CONTENT_RANGE, content_range(None, size))],
            )
                .into_response());
        }
    };
    let (first, length) = (part.start, part.end - part.start);
    let body = if head.method == Method::HEAD {
        Body::empty()
    } else {
        match remote {
            Some(Remote::Coming(coming)) => Body::from_stream(coming.read(first, length)),
            _ => body(state, name, digest, head, first, length).await?,
        }
    };
    if head.method == Method::GET {
        state
            .notifications
            .blob(head, Action::Pull, (name, digest, size), None);
        if state.upstreams.find(name).is_some() {
            pushed(Traffic::Blob, length);
        }
    }
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    describe(headers, digest);
    headers.insert(header::CONTENT_LENGTH, length.into());
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/octet-stream"),
    );
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if status == StatusCode::PARTIAL_CONTENT
        && let Ok(range) = HeaderValue::try_from(content_range(Some(&part), size))
    {
        headers.insert(header::CONTENT_RANGE, range);
    }
    Ok(response)
}

/// Long bodies are sent by the kernel (sendfile), unless the connection is encrypted.
async fn body(
    state: &BlobState,
    name: &Repository,
    digest: &Digest,
    head: &Parts,
    first: u64,
    length: u64,
) -> Result<Body, RegistryError> {
    if length >= SENDFILE_FROM_BYTES
        && sendfile::is_possible(head)
        && let Some(file) = state.store.blob_file(name, digest).await?
    {
        match sendfile::part(file, first, length) {
            Ok(part) => return Ok(part.into()),
            Err(error) => tracing::warn!(%error, "a blob is copied that could not be mapped"),
        }
    }
    let pieces = state.store.open_blob(name, digest, first, length).await?;
    Ok(Body::from_stream(pieces))
}

/// The size of a blob, and its fetch when it is not stored locally.
async fn find(
    state: &BlobState,
    name: &Repository,
    digest: &Digest,
    is_content_wanted: bool,
) -> Result<(u64, Option<Remote>), RegistryError> {
    let here = state.store.blob_size(name, digest).await;
    let Some(source) = state.upstreams.find(name) else {
        return Ok((here?, None));
    };
    match here {
        Ok(size) => {
            Source::had_blob();
            Ok((size, None))
        }
        Err(StoreError::UnknownBlob(_)) => {
            let remote = source.blob(digest, is_content_wanted).await?;
            Ok((remote.size(), Some(remote)))
        }
        Err(error) => Err(error.into()),
    }
}

pub(super) async fn delete(
    state: &BlobState,
    name: &Repository,
    digest: &Digest,
    head: &Parts,
) -> Answer {
    state.store.delete_blob(name, digest).await?;
    state.notifications.deletion(head, name, Some(digest), None);
    Ok((StatusCode::ACCEPTED, [(header::CONTENT_LENGTH, "0")]).into_response())
}

fn describe(headers: &mut HeaderMap, digest: &Digest) {
    headers.insert(CONTENT_DIGEST, digest_header(digest));
    headers.insert(header::ETAG, etag(digest));
    // Content under a digest never changes.
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("max-age=31536000"),
    );
}

/// Whether the client says that it has the content already.
pub(super) fn is_known(headers: &HeaderMap, digest: &Digest) -> bool {
    let Some(tags) = text(headers, header::IF_NONE_MATCH) else {
        return false;
    };
    let digest = digest.to_string();
    tags.split(',').any(|tag| {
        let tag = tag.trim().trim_start_matches("W/").trim_matches('"');
        tag == digest || tag == "*"
    })
}

pub(super) fn etag(digest: &Digest) -> HeaderValue {
    HeaderValue::from_str(&format!("\"{digest}\""))
        .expect("a digest is ASCII without control characters")
}

pub(super) fn digest_header(digest: &Digest) -> HeaderValue {
    HeaderValue::from_str(&digest.to_string())
        .expect("a digest is ASCII without control characters")
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}
