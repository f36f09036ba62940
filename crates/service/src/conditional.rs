//! Conditions of requests: what a client has already, and whether that is still it.
//!
//! Source: RFC 9110, 13.

use std::time::{Duration, SystemTime};

use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, StatusCode};

/// By what content is told from what was at the same place before, or will be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    tag: String,
    /// Nothing where only the identity counts.
    modified: Option<SystemTime>,
}

impl Version {
    /// Of content that equals all with the same `identity` and was made at `modified`.
    pub fn new(identity: &str, modified: SystemTime) -> Self {
        Self {
            tag: format!("\"{identity}\""),
            modified: Some(whole_seconds(modified)),
        }
    }

    /// Of content that equals all with the same `identity`, whenever it was made.
    pub fn unaged(identity: &str) -> Self {
        Self {
            tag: format!("\"{identity}\""),
            modified: None,
        }
    }

    /// What tells clients of it.
    pub fn headers(&self) -> HeaderMap {
        let modified = self.modified.map(httpdate::fmt_http_date);
        let pairs = [
            (header::ETAG, Some(&self.tag)),
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
            if !self.is_listed(tags) {
                return Some(StatusCode::PRECONDITION_FAILED);
            }
        } else if let Some(since) = date(request, &header::IF_UNMODIFIED_SINCE)
            && self.modified.is_some_and(|modified| modified > since)
        {
            return Some(StatusCode::PRECONDITION_FAILED);
        }
        if let Some(tags) = text(request, &header::IF_NONE_MATCH) {
            if self.is_listed(tags) {
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
        held == self.tag
            || httpdate::parse_http_date(held).is_ok_and(|date| self.modified == Some(date))
    }

    fn is_listed(&self, tags: &str) -> bool {
        let mut tags = tags.split(',').map(str::trim);
        tags.any(|listed| listed == "*" || listed.strip_prefix("W/").unwrap_or(listed) == self.tag)
    }
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
