//! Responses with content: headers, conditional requests, ranges.

use std::ops::Range;
use std::time::SystemTime;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use service::conditional::Validator;
use service::range::{RangeSet, content_range};
use sha2::{Digest as _, Sha256};

use crate::content::{ImageContent, Piece, Transport};
use crate::image::BaseImage;

/// Content and its headers.
pub(super) struct Representation {
    pub(super) content: ImageContent,
    /// Name under which a browser saves it.
    pub(super) file_name: String,
    pub(super) content_type: &'static str,
    pub(super) modified: SystemTime,
    /// The entity tag.
    pub(super) identity: String,
}

/// The response to a GET or HEAD. `guard` is held until the last byte. Headers follow assisted-image-service, with an
/// entity tag in addition.
pub(super) fn respond<G: Send + Sync + 'static>(
    head: &Parts,
    what: Representation,
    guard: G,
) -> Response {
    let (method, request) = (&head.method, &head.headers);
    let version = Validator::new(&what.identity, what.modified);
    let mut headers = headers(&what, &version);
    if let Some(status) = version.precondition(request) {
        if status == StatusCode::PRECONDITION_FAILED {
            headers.clear();
        }
        return response(status, headers, Body::empty());
    }
    let length = what.content.length();
    let asked = request
        .get(header::RANGE)
        .filter(|_| version.is_range_wanted(request))
        .map_or(RangeSet::Full, |value| {
            value
                .to_str()
                .map_or(RangeSet::Malformed, |text| RangeSet::parse(text, length))
        });
    let (status, content) = match asked {
        RangeSet::Full => (StatusCode::OK, what.content),
        RangeSet::NotSatisfiable | RangeSet::Malformed => {
            return not_satisfiable(length);
        }
        RangeSet::Partial(parts) => match <[Range<u64>; 1]>::try_from(parts) {
            Ok([part]) => {
                let text = content_range(Some(&part), length);
                insert(&mut headers, header::CONTENT_RANGE, &text);
                (StatusCode::PARTIAL_CONTENT, what.content.slice(part))
            }
            Err(parts) => {
                let text = format!("multipart/byteranges; boundary={}", what.identity);
                insert(&mut headers, header::CONTENT_TYPE, &text);
                let content = multipart(&what, &parts);
                (StatusCode::PARTIAL_CONTENT, content)
            }
        },
    };
    insert(
        &mut headers,
        header::CONTENT_LENGTH,
        &content.length().to_string(),
    );
    let body = if method == Method::HEAD {
        Body::empty()
    } else {
        Body::from_stream(content.stream(Transport::of(head), guard))
    };
    response(status, headers, body)
}

fn response(status: StatusCode, headers: HeaderMap, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

fn headers(what: &Representation, version: &Validator) -> HeaderMap {
    let mut headers = version.headers();
    let disposition = format!("attachment; filename={}", what.file_name);
    for (name, value) in [
        (header::ACCEPT_RANGES, "bytes"),
        (header::CONTENT_TYPE, what.content_type),
        (header::CONTENT_DISPOSITION, &disposition),
    ] {
        insert(&mut headers, name, value);
    }
    headers
}

/// All values here consist of ids, numbers and dates; an invalid header value would be omitted.
fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// Entity tag of parts of a base image: equal for equal bytes, in each replica.
pub(super) fn identity(content: &ImageContent, base: &BaseImage) -> String {
    let mut hash = Sha256::new();
    hash.update(base.fingerprint);
    hash.update(content.length().to_le_bytes());
    for bytes in content.memory() {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
    hex::encode(&hash.finalize()[..16])
}

fn not_satisfiable(length: u64) -> Response {
    let mut response = super::error::plain(
        StatusCode::RANGE_NOT_SATISFIABLE,
        "invalid range: failed to overlap\n",
    );
    insert(
        response.headers_mut(),
        header::CONTENT_RANGE,
        &content_range(None, length),
    );
    response
}

fn multipart(what: &Representation, parts: &[Range<u64>]) -> ImageContent {
    let boundary = &what.identity;
    let length = what.content.length();
    let mut content = ImageContent::new();
    for (index, part) in parts.iter().enumerate() {
        let newline = if index == 0 { "" } else { "\r\n" };
        let head = format!(
            "{newline}--{boundary}\r\nContent-Range: {}\r\nContent-Type: {}\r\n\r\n",
            content_range(Some(part), length),
            what.content_type
        );
        content.push(Piece::Memory(head.into()));
        content.append(what.content.slice(part.clone()));
    }
    content.push(Piece::Memory(Bytes::from(format!(
        "\r\n--{boundary}--\r\n"
    ))));
    content
}
