//! Responses with content: conditional requests, ranges, partial and multipart responses.
//!
//! Source: RFC 9110 §8 (representations), §13, §14 and §15.3.7.

use std::ops::Range;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

use crate::conditional::Validator;
use crate::content::{ContentPieces, Piece, Transport};
use crate::range::{RangeSet, content_range};

/// Content and its headers.
#[derive(Debug)]
pub struct Representation {
    /// The bytes.
    pub content: ContentPieces,
    /// Media type.
    pub content_type: HeaderValue,
    /// Entity tag and modification time.
    pub validator: Validator,
    /// Delimiter of the parts of a multipart response; not in the content.
    pub boundary: String,
    /// Further headers of 200, 206 and 304.
    pub headers: HeaderMap,
}

impl Representation {
    /// The response to a GET or HEAD. `guard` is held until the last byte.
    pub fn respond<G: Send + Sync + 'static>(mut self, head: &Parts, guard: G) -> Response {
        let request = &head.headers;
        if let Some(status) = self.validator.precondition(request) {
            let headers = if status == StatusCode::PRECONDITION_FAILED {
                HeaderMap::new()
            } else {
                self.full_headers()
            };
            return response(status, headers, Body::empty());
        }
        let length = self.content.length();
        let (status, content_type, content) = match self.ranges(request) {
            RangeSet::Full => {
                let content = std::mem::take(&mut self.content);
                (StatusCode::OK, None, content)
            }
            RangeSet::NotSatisfiable | RangeSet::Malformed => return not_satisfiable(length),
            RangeSet::Partial(parts) => match <[Range<u64>; 1]>::try_from(parts) {
                Ok([part]) => {
                    let text = content_range(Some(&part), length);
                    insert(&mut self.headers, header::CONTENT_RANGE, &text);
                    let content = self.content.slice(part);
                    (StatusCode::PARTIAL_CONTENT, None, content)
                }
                Err(parts) => {
                    let text = format!("multipart/byteranges; boundary={}", self.boundary);
                    let content = self.multipart(&parts);
                    (StatusCode::PARTIAL_CONTENT, Some(text), content)
                }
            },
        };
        let mut headers = self.full_headers();
        if let Some(text) = content_type {
            insert(&mut headers, header::CONTENT_TYPE, &text);
        }
        headers.insert(header::CONTENT_LENGTH, content.length().into());
        let body = if head.method == Method::HEAD {
            Body::empty()
        } else {
            content.body(Transport::of(head), guard)
        };
        response(status, headers, body)
    }

    /// The requested parts.
    fn ranges(&self, request: &HeaderMap) -> RangeSet {
        let length = self.content.length();
        request
            .get(header::RANGE)
            .filter(|_| self.validator.is_range_wanted(request))
            .map_or(RangeSet::Full, |value| {
                value
                    .to_str()
                    .map_or(RangeSet::Malformed, |text| RangeSet::parse(text, length))
            })
    }

    fn full_headers(self) -> HeaderMap {
        let mut headers = self.headers;
        self.validator.describe(&mut headers);
        headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        headers.insert(header::CONTENT_TYPE, self.content_type);
        headers
    }

    fn multipart(&self, parts: &[Range<u64>]) -> ContentPieces {
        let boundary = &self.boundary;
        let length = self.content.length();
        let mut content = ContentPieces::new();
        for (index, part) in parts.iter().enumerate() {
            let newline = if index == 0 { "" } else { "\r\n" };
            let mut head = format!(
                "{newline}--{boundary}\r\nContent-Range: {}\r\nContent-Type: ",
                content_range(Some(part), length),
            )
            .into_bytes();
            head.extend_from_slice(self.content_type.as_bytes());
            head.extend_from_slice(b"\r\n\r\n");
            content.push(Piece::Memory(head.into()));
            content.append(self.content.slice(part.clone()));
        }
        let end = format!("\r\n--{boundary}--\r\n");
        content.push(Piece::Memory(Bytes::from(end)));
        content
    }
}

fn response(status: StatusCode, headers: HeaderMap, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// A text that is no header value is omitted.
fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

fn not_satisfiable(length: u64) -> Response {
    let no_sniffing = (
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    // Source of the text: Go's `http.ServeContent`.
    let text = "invalid range: failed to overlap\n";
    let mut response = (StatusCode::RANGE_NOT_SATISFIABLE, [no_sniffing], text).into_response();
    let range = content_range(None, length);
    insert(response.headers_mut(), header::CONTENT_RANGE, &range);
    response
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, SystemTime};

    use http::Request;

    use super::*;

    fn representation() -> Representation {
        let mut content = ContentPieces::new();
        content.push(Piece::Memory(Bytes::from_static(b"01234")));
        content.push(Piece::Memory(Bytes::from_static(b"56789")));
        Representation {
            content,
            content_type: HeaderValue::from_static("text/plain"),
            validator: Validator::new("abc", SystemTime::UNIX_EPOCH + Duration::from_secs(9)),
            boundary: "limit".to_owned(),
            headers: HeaderMap::from_iter([(header::VARY, HeaderValue::from_static("accept"))]),
        }
    }

    /// Status, `Content-Range`, length and body of the response.
    async fn ask(method: Method, headers: &[(HeaderName, &str)]) -> (u16, String, u64, String) {
        let mut request = Request::builder().method(method);
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        let guard = Arc::new(());
        let response = representation().respond(&head, Arc::clone(&guard));
        let text = |name: HeaderName| {
            let value = response.headers().get(name);
            value.map_or(String::new(), |value| value.to_str().unwrap().to_owned())
        };
        let (status, range) = (response.status().as_u16(), text(header::CONTENT_RANGE));
        let length = text(header::CONTENT_LENGTH).parse().unwrap_or_default();
        let body = axum::body::to_bytes(response.into_body(), 1 << 20).await;
        let body = String::from_utf8(body.unwrap().to_vec()).unwrap();
        assert_eq!(Arc::strong_count(&guard), 1, "released after the last byte");
        (status, range, length, body)
    }

    #[tokio::test]
    async fn responses_follow_the_rfc() {
        let range = |text| [(header::RANGE, text)];
        for (headers, expected) in [
            (&[][..], (200, "", 10, "0123456789")),
            (&range("bytes=0-2"), (206, "bytes 0-2/10", 3, "012")),
            (&range("bytes=4-5"), (206, "bytes 4-5/10", 2, "45")),
            (&range("bytes=-1"), (206, "bytes 9-9/10", 1, "9")),
            (&range("lines=1-2"), (200, "", 10, "0123456789")),
            (
                &[(header::RANGE, "bytes=1-2"), (header::IF_RANGE, "\"x\"")],
                (200, "", 10, "0123456789"),
            ),
            (
                &[(header::RANGE, "bytes=1-2"), (header::IF_RANGE, "\"abc\"")],
                (206, "bytes 1-2/10", 2, "12"),
            ),
            (&[(header::IF_NONE_MATCH, "*")], (304, "", 0, "")),
            (&[(header::IF_MATCH, "\"x\"")], (412, "", 0, "")),
        ] {
            let (status, range, length, body) = expected;
            let expected = (status, range.to_owned(), length, body.to_owned());
            assert_eq!(ask(Method::GET, headers).await, expected, "{headers:?}");
        }
        let (status, range, ..) = ask(Method::GET, &range("bytes=10-")).await;
        assert_eq!((status, range.as_str()), (416, "bytes */10"));
        let head = ask(Method::HEAD, &[]).await;
        assert_eq!(head, (200, String::new(), 10, String::new()));
    }

    #[tokio::test]
    async fn several_ranges_are_one_multipart_body() {
        let ranges = [(header::RANGE, "bytes=0-1,8-")];
        let (status, range, length, body) = ask(Method::GET, &ranges).await;
        assert_eq!((status, range.as_str()), (206, ""));
        assert_eq!(length, body.len() as u64);
        let expected = "--limit\r\nContent-Range: bytes 0-1/10\r\nContent-Type: text/plain\r\n\r\n01\r\n\
            --limit\r\nContent-Range: bytes 8-9/10\r\nContent-Type: text/plain\r\n\r\n89\r\n--limit--\r\n";
        assert_eq!(body, expected);
    }
}
