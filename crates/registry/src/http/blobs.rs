//! Blobs on their way out.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use blob_store::{BlobStore as _, StoreError};
use oci::{Digest, Repository};
use service::range::RangeRequest;
use service::sendfile;

use super::{Answer, CONTENT_DIGEST, RegistryError};
use crate::app::App;
use crate::notifications::{self, Action};
use crate::upstream::{Remote, Source, Traffic, pushed};

/// Units: bytes. Below, one read costs less than a mapping.
const SENDFILE_FROM_BYTES: u64 = 64 * 1024;

pub(super) async fn get(app: &App, name: &Repository, digest: &Digest, head: &Parts) -> Answer {
    let headers = &head.headers;
    let is_content_wanted = head.method != Method::HEAD && !is_known(headers, digest);
    let (size, remote) = find(app, name, digest, is_content_wanted).await?;
    if is_known(headers, digest) {
        let mut response = StatusCode::NOT_MODIFIED.into_response();
        describe(response.headers_mut(), digest);
        return Ok(response);
    }
    let wanted = match headers.get(header::IF_RANGE) {
        Some(tag) if tag.as_bytes() != etag(digest).as_bytes() => RangeRequest::Full,
        _ => RangeRequest::parse(text(headers, header::RANGE), size),
    };
    let (status, first, length) = match wanted {
        RangeRequest::Full => (StatusCode::OK, 0, size),
        RangeRequest::Partial(first, last) => {
            (StatusCode::PARTIAL_CONTENT, first, last - first + 1)
        }
        RangeRequest::NotSatisfiable => {
            let unsatisfied = format!("bytes */{size}");
            return Ok((
                StatusCode::RANGE_NOT_SATISFIABLE,
                [(header::CONTENT_RANGE, unsatisfied)],
            )
                .into_response());
        }
    };
    let body = if head.method == Method::HEAD {
        Body::empty()
    } else {
        match remote {
            Some(Remote::Coming(coming)) => Body::from_stream(coming.read(first, length)),
            _ => body(app, name, digest, head, first, length).await?,
        }
    };
    if head.method == Method::GET {
        notifications::of_blob(app, head, Action::Pull, (name, digest, size), None);
        if app.upstreams.find(name).is_some() {
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
        && let Ok(range) =
            HeaderValue::from_str(&format!("bytes {first}-{}/{size}", first + length - 1))
    {
        headers.insert(header::CONTENT_RANGE, range);
    }
    Ok(response)
}

/// The kernel sends what is long, where nothing has to be encrypted.
async fn body(
    app: &App,
    name: &Repository,
    digest: &Digest,
    head: &Parts,
    first: u64,
    length: u64,
) -> Result<Body, RegistryError> {
    if length >= SENDFILE_FROM_BYTES
        && sendfile::is_possible(head)
        && let Some(file) = app.store.blob_file(name, digest).await?
    {
        match sendfile::part(file, first, length) {
            Ok(part) => return Ok(part.into()),
            Err(error) => tracing::warn!(%error, "a blob is copied that could not be mapped"),
        }
    }
    let pieces = app.store.open_blob(name, digest, first, length).await?;
    Ok(Body::from_stream(pieces))
}

/// The size of a blob, and what brings it, where that is not here.
async fn find(
    app: &App,
    name: &Repository,
    digest: &Digest,
    is_content_wanted: bool,
) -> Result<(u64, Option<Remote>), RegistryError> {
    let here = app.store.blob_size(name, digest).await;
    let Some(source) = app.upstreams.find(name) else {
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

pub(super) async fn delete(app: &App, name: &Repository, digest: &Digest, head: &Parts) -> Answer {
    app.store.delete_blob(name, digest).await?;
    notifications::of_deletion(app, head, name, Some(digest), None);
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
