//! URLs as Go reads them: more forms than the URL standard, fewer than anything with a colon.
//! Source: Go, `net/url`.

use std::net::Ipv6Addr;

use percent_encoding::percent_decode_str;

/// ASCII characters besides letters and digits that a host may have without an escape.
const HOST: &[u8] = b"-_.~!$&'()*+,;=:[]<>\"";

/// ASCII characters besides letters and digits that user and password may have.
const USER: &[u8] = b"-._:~!$&'()*+,;=%@";

/// The parts of a URL that the checks need.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GoUrl {
    /// In lower case; empty for a relative URL.
    pub(super) scheme: String,
    /// The part after the scheme, when it starts with no slash.
    pub(super) opaque: String,
    query: String,
}

impl GoUrl {
    /// Reads a URL; none when Go refuses it.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) || !are_escapes(fragment) {
            return None;
        }
        let (scheme, rest) = split_scheme(text)?;
        let scheme = scheme.to_ascii_lowercase();
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let url = |opaque: &str| Self {
            scheme: scheme.clone(),
            opaque: opaque.to_owned(),
            query: query.to_owned(),
        };
        if !rest.starts_with('/') {
            if !scheme.is_empty() {
                return Some(url(rest));
            }
            let segment = rest.split('/').next().unwrap_or_default();
            if segment.contains(':') && text != "*" {
                return None;
            }
        }
        let has_authority = !scheme.is_empty() || !rest.starts_with("///");
        let path = match rest.strip_prefix("//").filter(|_| has_authority) {
            None => rest,
            Some(rest) => {
                let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                if !is_authority(authority) {
                    return None;
                }
                path
            }
        };
        are_escapes(path).then(|| url(""))
    }

    /// The first value of a parameter.
    pub(super) fn query_value(&self, name: &str) -> Option<String> {
        let decode = |text: &str| {
            let text = text.replace('+', " ");
            are_escapes(&text).then(|| percent_decode_str(&text).decode_utf8_lossy().into_owned())
        };
        let pairs = self.query.split('&').filter(|pair| !pair.contains(';'));
        pairs
            .filter(|pair| !pair.is_empty())
            .filter_map(|pair| {
                let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                Some((decode(key)?, decode(value)?))
            })
            .find_map(|(key, value)| (key == name).then_some(value))
    }
}

/// The scheme, which may be empty, and the rest; none for a URL that starts with a colon.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return None,
            b':' => return Some((&text[..index], &text[index + 1..])),
            _ => break,
        }
    }
    Some(("", text))
}

fn is_authority(authority: &str) -> bool {
    let Some((user, host)) = authority.rsplit_once('@') else {
        return is_host(authority);
    };
    let is_user = |byte: u8| byte.is_ascii_alphanumeric() || USER.contains(&byte);
    is_host(host) && user.bytes().all(is_user) && are_escapes(user)
}

fn is_host(host: &str) -> bool {
    match host.rfind('[') {
        Some(0) => {
            let Some(end) = host.rfind(']') else {
                return false;
            };
            is_port(&host[end + 1..]) && is_ipv6(&host[1..end])
        }
        Some(_) => false,
        None => {
            let colon = host.rfind(':');
            colon.is_none_or(|colon| is_port(&host[colon..])) && are_host_characters(host)
        }
    }
}

/// Nothing, or a colon and digits.
fn is_port(text: &str) -> bool {
    let digits = text.strip_prefix(':');
    text.is_empty() || digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_ipv6(text: &str) -> bool {
    let (address, zone) = match text.find("%25") {
        Some(at) => (&text[..at], Some(&text[at..])),
        None => (text, None),
    };
    let is_zone = zone.is_none_or(|zone| {
        let decoded = percent_decode_str(zone).collect::<Vec<u8>>();
        let is_plain = zone.bytes().all(|byte| byte == b'%' || is_host_byte(byte));
        are_escapes(zone)
            && is_plain
            && decoded.len() > 1
            && decoded[1..]
                .iter()
                .all(|&byte| byte == b' ' || byte == b'%' || is_host_byte(byte))
    });
    is_zone && address.parse::<Ipv6Addr>().is_ok()
}

fn is_host_byte(byte: u8) -> bool {
    byte >= 0x80 || byte.is_ascii_alphanumeric() || HOST.contains(&byte)
}

/// Only bytes that are not ASCII, and the percent sign, may be escaped in a host.
fn are_host_characters(host: &str) -> bool {
    are_escapes(host)
        && host.bytes().all(|byte| byte == b'%' || is_host_byte(byte))
        && host.match_indices('%').all(|(at, _)| {
            let escape = &host.as_bytes()[at + 1..at + 3];
            escape == b"25" || !(b'0'..=b'7').contains(&escape[0])
        })
}

/// Whether every percent sign is followed by two hexadecimal digits.
fn are_escapes(text: &str) -> bool {
    text.match_indices('%').all(|(at, _)| {
        let digits = text.as_bytes().get(at + 1..at + 3);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn urls_are_those_of_go() {
        for text in [
            "",
            "x",
            "/x",
            "*",
            "http://",
            "http://x",
            "HTTPS://x:22623/config/master?a=%",
            "http:x:y",
            "http://x:",
            "http://u:p%40ss@x/",
            "http://[::1]:80/",
            "http://[fe80::1%25en0]/",
            "s3://b/k",
            "http://a b.c/%20".trim_start_matches("http://a b.c"),
            "http://ü/",
            "http://%C3%BC/",
            "a:b",
            "x/y:z",
            "ftp://a:b:1/",
            "http://x:1:2/",
            "http://x/ y",
            "///x:y",
            "http:///x",
            "http://h/#%20",
        ] {
            assert!(GoUrl::parse(text).is_some(), "{text}");
        }
        for text in [
            ":",
            ":x",
            "x y:z",
            "http://x:y",
            "http://a b/",
            "http://x/%",
            "http://x/%zz",
            "http://[::1/",
            "http://x[::1]/",
            "http://[1.2.3.4]/",
            "http://[::1]x/",
            "http://%41/",
            "http://u ser@x/",
            "http://x/\n",
            "http://x/\u{7f}",
            "#%",
            "1:2",
            "http://{x}/",
            "http://[::1%25]/",
            "http://x|y/",
        ] {
            assert_eq!(GoUrl::parse(text), None, "{text}");
        }
    }

    #[test]
    fn parts_are_found() {
        let url = GoUrl::parse("ARN:aws:s3:::b/k?versionId=&x=1&versionId=2").unwrap();
        assert_eq!(
            (url.scheme.as_str(), url.opaque.as_str()),
            ("arn", "aws:s3:::b/k")
        );
        assert_eq!(url.query_value("versionId").as_deref(), Some(""));
        assert_eq!(url.query_value("x").as_deref(), Some("1"));
        assert_eq!(url.query_value("y"), None);
        let url = GoUrl::parse("s3://b/k?a;b=1&versio%6eId=a+b&%=1").unwrap();
        assert_eq!(url.query_value("versionId").as_deref(), Some("a b"));
        assert_eq!(url.query_value("a;b"), None);
    }

    proptest! {
        #[test]
        fn reading_never_panics(text in "[a-z:/?#@%\\[\\]0-9.ü ]{0,30}") {
            if let Some(url) = GoUrl::parse(&text) {
                url.query_value("a");
            }
        }
    }
}
