//! Conditions of requests: what a client has already, and whether that is still it.
//!
//! Source: RFC 9110, 13.

use std::time::{Duration, SystemTime};

use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, StatusCode};

/// Before a tag by which contents are told apart, but not their bytes.
const WEAK: &str = "W/";

/// By what content is told from what was at the same place before, or will be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// In its quotes.
    tag: String,
    is_weak: bool,
    /// Nothing where only the identity counts.
    modified: Option<SystemTime>,
}

impl Version {
    /// Of content that equals all with the same `identity` and was made at `modified`.
    pub fn new(identity: &str, modified: SystemTime) -> Self {
        Self {
            tag: format!("\"{identity}\""),
            is_weak: false,
            modified: Some(whole_seconds(modified)),
        }
    }

    /// Of content that equals all with the same `identity`, whenever it was made.
    pub fn unaged(identity: &str) -> Self {
        Self {
            tag: format!("\"{identity}\""),
            is_weak: false,
            modified: None,
        }
    }

    /// Of the same content in other bytes, for instance compressed: nobody puts parts of both together then.
    #[must_use]
    pub fn weak(self) -> Self {
        Self {
            is_weak: true,
            ..self
        }
    }

    /// What tells clients of it.
    pub fn headers(&self) -> HeaderMap {
        let modified = self.modified.map(httpdate::fmt_http_date);
        let strength = if self.is_weak { WEAK } else { "" };
        let tag = format!("{strength}{}", self.tag);
        let pairs = [
            (header::ETAG, Some(&tag)),
            (header::LAST_MODIFIED, modified.as_ref()),
        ];
        // An identity that is no header value would be left out.
        let pairs = pairs
            .into_iter()
            .filter_map(|(name, text)| Some((name, HeaderValue::from_str(text?).ok()?)));
        pairs.collect()
    }

    /// The status that a condition of the request leads to; none when the request is to be answered.
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

    /// Whether a range still fits to what the client holds already.
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

    fn version() -> Version {
        Version::new("abc", time(1000) + Duration::from_millis(500))
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
    fn other_bytes_of_the_same_content_are_known_but_never_the_same() {
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
            assert_eq!(version().is_range_wanted(&request), wanted, "{held}");
        }
        assert!(version().is_range_wanted(&HeaderMap::new()));
    }
}
