//! Conditional requests: preconditions against the validators of content.
//!
//! Source: RFC 9110 §13.

use std::time::{Duration, SystemTime};

use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, StatusCode};

/// Prefix of a weak entity tag.
const WEAK: &str = "W/";

/// Entity tag and modification time of content. Source: RFC 9110 §8.8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validator {
    /// In its quotes.
    tag: String,
    is_weak: bool,
    /// Absent where only the identity counts.
    modified: Option<SystemTime>,
}

impl Validator {
    /// Validator of content with the strong tag `identity`, modified at `modified`.
    pub fn new(identity: &str, modified: SystemTime) -> Self {
        Self {
            tag: format!("\"{identity}\""),
            is_weak: false,
            modified: Some(whole_seconds(modified)),
        }
    }

    /// Validator of content with the strong tag `identity`, without a modification time.
    pub fn unaged(identity: &str) -> Self {
        Self {
            tag: format!("\"{identity}\""),
            is_weak: false,
            modified: None,
        }
    }

    /// Weak validator of the same content in other bytes, for instance compressed: ranges of both never mix.
    #[must_use]
    pub fn weak(self) -> Self {
        Self {
            is_weak: true,
            ..self
        }
    }

    /// `ETag` and `Last-Modified`.
    pub fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        self.describe(&mut headers);
        headers
    }

    /// Inserts `ETag` and `Last-Modified`. An identity that is no header value is omitted.
    pub fn describe(&self, headers: &mut HeaderMap) {
        let tag = if self.is_weak {
            HeaderValue::try_from(format!("{WEAK}{}", self.tag))
        } else {
            HeaderValue::from_str(&self.tag)
        };
        if let Ok(tag) = tag {
            headers.insert(header::ETAG, tag);
        }
        let modified = self.modified.map(httpdate::fmt_http_date);
        if let Some(modified) = modified.and_then(|text| HeaderValue::try_from(text).ok()) {
            headers.insert(header::LAST_MODIFIED, modified);
        }
    }

    /// Status of a failed precondition, 412 or 304; absent when all hold.
    pub fn precondition(&self, request: &HeaderMap) -> Option<StatusCode> {
        if let Some(tags) = text(request, &header::IF_MATCH) {
            if !is_any(tags, |tag| self.has_bytes_of(tag)) {
                return Some(StatusCode::PRECONDITION_FAILED);
            }
        } else if let Some(since) = date(request, &header::IF_UNMODIFIED_SINCE)
            && self.modified.is_some_and(|modified| modified > since)
        {
            return Some(StatusCode::PRECONDITION_FAILED);
        }
        if let Some(tags) = text(request, &header::IF_NONE_MATCH) {
            if is_any(tags, |tag| {
                tag.strip_prefix(WEAK).unwrap_or(tag) == self.tag
            }) {
                return Some(StatusCode::NOT_MODIFIED);
            }
        } else if let Some(since) = date(request, &header::IF_MODIFIED_SINCE)
            && self.modified.is_some_and(|modified| modified <= since)
        {
            return Some(StatusCode::NOT_MODIFIED);
        }
        None
    }

    /// Whether `If-Range` allows a partial response.
    pub fn is_range_wanted(&self, request: &HeaderMap) -> bool {
        let Some(held) = text(request, &header::IF_RANGE) else {
            return !request.contains_key(header::IF_RANGE);
        };
        self.has_bytes_of(held)
            || httpdate::parse_http_date(held).is_ok_and(|date| self.modified == Some(date))
    }

    fn has_bytes_of(&self, tag: &str) -> bool {
        !self.is_weak && tag == self.tag
    }
}

fn is_any(tags: &str, fits: impl Fn(&str) -> bool) -> bool {
    let mut tags = tags.split(',').map(str::trim);
    tags.any(|tag| tag == "*" || fits(tag))
}

fn whole_seconds(time: SystemTime) -> SystemTime {
    let since = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_secs(since.as_secs())
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn date(headers: &HeaderMap, name: &HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(text(headers, name)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: &str = "\"abc\"";

    fn version() -> Validator {
        Validator::new("abc", time(1000) + Duration::from_millis(500))
    }

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
    fn preconditions_follow_the_rfc() {
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
            (vec![(header::IF_MATCH, "W/\"abc\"")], failed),
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
                version().precondition(&request(&headers)),
                expected,
                "{headers:?}"
            );
        }
    }

    #[test]
    fn weak_tags_match_if_none_match_but_never_if_match() {
        let weak = version().weak();
        assert_eq!(weak.headers()[header::ETAG], "W/\"abc\"");
        for tag in ["\"abc\"", "W/\"abc\""] {
            let known = weak.precondition(&request(&[(header::IF_NONE_MATCH, tag)]));
            assert_eq!(known, Some(StatusCode::NOT_MODIFIED), "{tag}");
            let same = weak.precondition(&request(&[(header::IF_MATCH, tag)]));
            assert_eq!(same, Some(StatusCode::PRECONDITION_FAILED), "{tag}");
        }
    }

    #[test]
    fn if_range_needs_a_strong_match() {
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
            assert_eq!(version().is_range_wanted(&request), wanted, "{held}");
        }
        assert!(version().is_range_wanted(&HeaderMap::new()));
    }
}
