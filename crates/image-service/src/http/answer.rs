//! Answers with content: headers, conditions, ranges.

use std::ops::Range;
use std::time::{Duration, SystemTime};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::admission::Place;
use super::range::{self, Asked};
use crate::content::{Content, Piece};

/// Content and what the headers say of it.
pub(super) struct Representation {
    pub(super) content: Content,
    /// Name under which a browser saves it.
    pub(super) file_name: String,
    pub(super) content_type: &'static str,
    pub(super) modified: SystemTime,
    /// When the file below was written: the part of the identity that is not in memory.
    pub(super) base_modified: SystemTime,
}

/// The answer to a GET or HEAD. `place` is held until the last byte.
pub(super) fn answer(
    method: &Method,
    request: &HeaderMap,
    what: Representation,
    place: Place,
) -> Response {
    let identity = identity(&what);
    let tag = format!("\"{identity}\"");
    let modified = whole_seconds(what.modified);
    let mut headers = headers(&what, &tag, modified);
    if let Some(status) = precondition(request, &tag, modified) {
        if status == StatusCode::PRECONDITION_FAILED {
            headers.clear();
        }
        return response(status, headers, Body::empty());
    }
    let length = what.content.length();
    let asked = request
        .get(header::RANGE)
        .filter(|_| is_range_wanted(request, &tag, modified))
        .map_or(Asked::Whole, |value| {
            value
                .to_str()
                .map_or(Asked::Nothing, |text| range::parse(text, length))
        });
    let (status, content) = match asked {
        Asked::Whole => (StatusCode::OK, what.content),
        Asked::Nothing => {
            return not_satisfiable(length);
        }
        Asked::Parts(parts) => match <[Range<u64>; 1]>::try_from(parts) {
            Ok([part]) => {
                let text = content_range(&part, length);
                insert(&mut headers, header::CONTENT_RANGE, &text);
                (StatusCode::PARTIAL_CONTENT, what.content.slice(part))
            }
            Err(parts) => {
                let text = format!("multipart/byteranges; boundary={identity}");
                insert(&mut headers, header::CONTENT_TYPE, &text);
                let content = multipart(&what, &parts, &identity);
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
        Body::from_stream(content.stream(place))
    };
    response(status, headers, body)
}

fn response(status: StatusCode, headers: HeaderMap, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

fn headers(what: &Representation, tag: &str, modified: SystemTime) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let disposition = format!("attachment; filename={}", what.file_name);
    for (name, value) in [
        (header::ACCEPT_RANGES, "bytes"),
        (header::CONTENT_TYPE, what.content_type),
        (header::CONTENT_DISPOSITION, &disposition),
        (header::ETAG, tag),
        (header::LAST_MODIFIED, &httpdate::fmt_http_date(modified)),
    ] {
        insert(&mut headers, name, value);
    }
    headers
}

/// All values here are made of ids, numbers and dates; one that is no header value would be left out.
fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

fn whole_seconds(time: SystemTime) -> SystemTime {
    let since = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_secs(since.as_secs())
}

/// Equal for equal bytes, as far as the file below can be told by its age and length.
fn identity(what: &Representation) -> String {
    let since = what
        .base_modified
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let mut hash = Sha256::new();
    hash.update(since.as_nanos().to_le_bytes());
    hash.update(what.content.length().to_le_bytes());
    for bytes in what.content.memory() {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
    let digest = hash.finalize();
    let mut half = [0; 16];
    half.copy_from_slice(&digest[..16]);
    format!("{:032x}", u128::from_be_bytes(half))
}

/// The status that a condition of the request leads to; none when the request is to be answered.
fn precondition(request: &HeaderMap, tag: &str, modified: SystemTime) -> Option<StatusCode> {
    if let Some(tags) = text(request, &header::IF_MATCH) {
        if !lists(tags, tag) {
            return Some(StatusCode::PRECONDITION_FAILED);
        }
    } else if let Some(since) = date(request, &header::IF_UNMODIFIED_SINCE)
        && modified > since
    {
        return Some(StatusCode::PRECONDITION_FAILED);
    }
    if let Some(tags) = text(request, &header::IF_NONE_MATCH) {
        if lists(tags, tag) {
            return Some(StatusCode::NOT_MODIFIED);
        }
    } else if let Some(since) = date(request, &header::IF_MODIFIED_SINCE)
        && modified <= since
    {
        return Some(StatusCode::NOT_MODIFIED);
    }
    None
}

/// Whether a range still fits to what the client holds already.
fn is_range_wanted(request: &HeaderMap, tag: &str, modified: SystemTime) -> bool {
    let Some(held) = text(request, &header::IF_RANGE) else {
        return !request.contains_key(header::IF_RANGE);
    };
    held == tag || httpdate::parse_http_date(held).is_ok_and(|date| date == modified)
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn date(headers: &HeaderMap, name: &HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(text(headers, name)?).ok()
}

fn lists(tags: &str, tag: &str) -> bool {
    let mut tags = tags.split(',').map(str::trim);
    tags.any(|listed| listed == "*" || listed.strip_prefix("W/").unwrap_or(listed) == tag)
}

fn content_range(part: &Range<u64>, length: u64) -> String {
    format!("bytes {}-{}/{length}", part.start, part.end - 1)
}

fn not_satisfiable(length: u64) -> Response {
    let mut response = super::error::plain(
        StatusCode::RANGE_NOT_SATISFIABLE,
        "invalid range: failed to overlap\n",
    );
    insert(
        response.headers_mut(),
        header::CONTENT_RANGE,
        &format!("bytes */{length}"),
    );
    response
}

fn multipart(what: &Representation, parts: &[Range<u64>], boundary: &str) -> Content {
    let length = what.content.length();
    let mut content = Content::new();
    for (index, part) in parts.iter().enumerate() {
        let newline = if index == 0 { "" } else { "\r\n" };
        let head = format!(
            "{newline}--{boundary}\r\nContent-Range: {}\r\nContent-Type: {}\r\n\r\n",
            content_range(part, length),
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

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: &str = "\"abc\"";

    fn time(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn request(headers: &[(HeaderName, &str)]) -> HeaderMap {
        let pairs = headers
            .iter()
            .map(|(name, value)| (name.clone(), value.parse().unwrap()));
        pairs.collect()
    }

    #[test]
    fn conditions_follow_the_rfc() {
        let (before, same, after) = (
            httpdate::fmt_http_date(time(999)),
            httpdate::fmt_http_date(time(1000)),
            httpdate::fmt_http_date(time(1001)),
        );
        let failed = Some(StatusCode::PRECONDITION_FAILED);
        let not_modified = Some(StatusCode::NOT_MODIFIED);
        for (headers, expected) in [
            (vec![], None),
            (vec![(header::IF_MATCH, "\"x\", \"abc\"")], None),
            (vec![(header::IF_MATCH, "*")], None),
            (vec![(header::IF_MATCH, "\"x\"")], failed),
            (vec![(header::IF_UNMODIFIED_SINCE, before.as_str())], failed),
            (vec![(header::IF_UNMODIFIED_SINCE, same.as_str())], None),
            (vec![(header::IF_NONE_MATCH, "W/\"abc\"")], not_modified),
            (
                vec![
                    (header::IF_NONE_MATCH, "\"x\""),
                    (header::IF_MODIFIED_SINCE, after.as_str()),
                ],
                None,
            ),
            (
                vec![(header::IF_MODIFIED_SINCE, same.as_str())],
                not_modified,
            ),
            (vec![(header::IF_MODIFIED_SINCE, before.as_str())], None),
            (vec![(header::IF_MODIFIED_SINCE, "yesterday")], None),
        ] {
            assert_eq!(
                precondition(&request(&headers), TAG, time(1000)),
                expected,
                "{headers:?}"
            );
        }
    }

    #[test]
    fn a_range_is_given_only_of_what_the_client_holds() {
        let (before, same) = (
            httpdate::fmt_http_date(time(999)),
            httpdate::fmt_http_date(time(1000)),
        );
        for (held, wanted) in [
            (TAG, true),
            ("\"x\"", false),
            ("W/\"abc\"", false),
            (&same, true),
            (&before, false),
        ] {
            let request = request(&[(header::IF_RANGE, held)]);
            assert_eq!(is_range_wanted(&request, TAG, time(1000)), wanted, "{held}");
        }
        assert!(is_range_wanted(&HeaderMap::new(), TAG, time(1000)));
    }
}
