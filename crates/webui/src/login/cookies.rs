//! Cookies of the log-in: sealed texts, split where they are longer than browsers keep.
//!
//! Browsers keep at least 4096 bytes of a cookie with its attributes (RFC 6265 §6.1), and tokens of some providers
//! have more.

use http::{HeaderMap, HeaderValue, header};

/// Characters of one part of a session; name and attributes take up to 100 more.
const PART_BYTES: usize = 3800;
/// Parts of a session: with them a request head has less than a quarter of its limit.
const PARTS: usize = 4;
/// Longest sealed session. Units: bytes.
pub(super) const SESSION_BYTES: usize = PART_BYTES * PARTS;
const SESSION: &str = "atoll-session-";
const LOG_IN: &str = "atoll-login";
/// Browsers accept this prefix only with Secure, `Path=/` and without Domain. Source: RFC 6265bis §4.1.3.2.
const HOST_PREFIX: &str = "__Host-";

/// Names and attributes of the cookies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cookies {
    /// Whether browsers send them over TLS only.
    pub(super) is_secure: bool,
}

impl Cookies {
    /// The sealed session of a request.
    pub(super) fn session(self, headers: &HeaderMap) -> Option<String> {
        let parts = (0..PARTS).map_while(|part| find(headers, &self.session_name(part)));
        let sealed: String = parts.collect();
        (!sealed.is_empty()).then_some(sealed)
    }

    /// The sealed log-in of a request.
    pub(super) fn log_in(self, headers: &HeaderMap) -> Option<String> {
        find(headers, &self.name(LOG_IN)).map(str::to_owned)
    }

    /// Stores a session for `seconds`; an empty one deletes it. Parts that it does not fill are deleted.
    pub(super) fn set_session(self, headers: &mut HeaderMap, sealed: &str, seconds: i64) {
        let mut parts = sealed.as_bytes().chunks(PART_BYTES);
        for part in 0..PARTS {
            let text = parts.next().and_then(|text| str::from_utf8(text).ok());
            self.set(headers, &self.session_name(part), text, seconds);
        }
    }

    /// Stores a log-in for `seconds`; none deletes it.
    pub(super) fn set_log_in(self, headers: &mut HeaderMap, sealed: Option<&str>, seconds: i64) {
        self.set(headers, &self.name(LOG_IN), sealed, seconds);
    }

    fn set(self, headers: &mut HeaderMap, name: &str, text: Option<&str>, seconds: i64) {
        let age = if text.is_some() { seconds.max(0) } else { 0 };
        let secure = if self.is_secure { "; Secure" } else { "" };
        let text = text.unwrap_or_default();
        let cookie =
            format!("{name}={text}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}");
        if let Ok(mut value) = HeaderValue::from_str(&cookie) {
            value.set_sensitive(true);
            headers.append(header::SET_COOKIE, value);
        }
    }

    fn session_name(self, part: usize) -> String {
        self.name(&format!("{SESSION}{part}"))
    }

    fn name(self, name: &str) -> String {
        let prefix = if self.is_secure { HOST_PREFIX } else { "" };
        format!("{prefix}{name}")
    }
}

/// Removes the cookies of the log-in from a request that leaves this server.
pub(super) fn strip(headers: &mut HeaderMap) {
    let is_ours = |pair: &str| {
        let name = pair.strip_prefix(HOST_PREFIX).unwrap_or(pair);
        name.starts_with(SESSION) || name.starts_with(LOG_IN)
    };
    let others: Vec<&str> = pairs(headers).filter(|pair| !is_ours(pair)).collect();
    let others = HeaderValue::from_str(&others.join("; "));
    headers.remove(header::COOKIE);
    if let Ok(others) = others
        && !others.is_empty()
    {
        headers.insert(header::COOKIE, others);
    }
}

fn find<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    pairs(headers)
        .filter_map(|pair| pair.split_once('='))
        .find_map(|(found, text)| (found == name && !text.is_empty()).then_some(text))
}

fn pairs(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .map(str::trim)
        .filter(|pair| !pair.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The request headers of a browser that got these response headers.
    fn sent(set: &HeaderMap) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in set.get_all(header::SET_COOKIE) {
            let pair = value.to_str().unwrap().split(';').next().unwrap();
            headers.append(header::COOKIE, pair.parse().unwrap());
        }
        headers
    }

    #[test]
    fn long_sessions_are_split() {
        for is_secure in [false, true] {
            let cookies = Cookies { is_secure };
            for length in [1, PART_BYTES, PART_BYTES + 1, SESSION_BYTES] {
                let sealed = "x".repeat(length);
                let mut set = HeaderMap::new();
                cookies.set_session(&mut set, &sealed, 60);
                assert_eq!(set.len(), PARTS);
                for value in set.get_all(header::SET_COOKIE) {
                    let text = value.to_str().unwrap();
                    assert!(text.len() < 4096, "{}", text.len());
                    assert!(text.contains("; HttpOnly; SameSite=Lax"), "{text}");
                    assert_eq!(text.contains("; Secure"), is_secure);
                    assert_eq!(text.starts_with("__Host-"), is_secure);
                }
                assert_eq!(cookies.session(&sent(&set)).unwrap(), sealed);
            }
        }
    }

    #[test]
    fn only_cookies_of_others_leave() {
        let mut headers = HeaderMap::new();
        let text = "a=1; atoll-session-0=x; __Host-atoll-session-1=y; atoll-login=z; b=2";
        headers.insert(header::COOKIE, text.parse().unwrap());
        strip(&mut headers);
        assert_eq!(headers[header::COOKIE], "a=1; b=2");
        headers.insert(header::COOKIE, "atoll-login=z".parse().unwrap());
        strip(&mut headers);
        assert!(headers.is_empty());
    }
}
