//! Source of a request: a program, a page of this server, or a foreign page.
//!
//! A foreign page can make a browser send requests with the browser's place in the network and its logins, but it cannot
//! change `Sec-Fetch-Site`, which browsers send over HTTPS and to loopback addresses, nor `Origin`, which they send with
//! each request that is more than a plain read. Programs send neither. Source: Fetch Metadata; the Fetch standard, section
//! 3.2; RFC 6454.

use axum::extract::Request;
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::host_header::RequestedHost;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Ports that browsers leave out of `Host`, and the schemes that they belong to.
const DEFAULT_PORTS: [(&str, u16); 2] = [("http", 80), ("https", 443)];

/// The source of a request; an extension of requests that may change something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestSource {
    /// A program, or a typed address.
    Program,
    /// A page of this server, or of an origin that the settings allow.
    OwnPage,
    /// A page of another origin: of another site, or of another port of this host.
    ForeignPage,
}

/// Sources that a listener accepts.
#[derive(Debug, Clone)]
pub(super) struct SourceRule {
    /// Lower-case origins of other servers whose pages are accepted.
    allowed: Vec<String>,
    /// Whether browsers name the port of this listener in `Host`.
    has_named_port: bool,
}

impl SourceRule {
    /// The rule of a listener on `port`.
    pub(super) fn new(port: u16, allowed: &[String]) -> Self {
        let origin = |text: &String| text.trim_end_matches('/').to_ascii_lowercase();
        Self {
            allowed: allowed.iter().map(origin).collect(),
            has_named_port: DEFAULT_PORTS.iter().all(|(_, default)| *default != port),
        }
    }

    /// Whether a request may change something: by its method, or since it leaves HTTP, as a WebSocket does, which
    /// browsers open for every page.
    pub(super) fn concerns(request: &Request) -> bool {
        !request.method().is_safe() || request.headers().contains_key(header::UPGRADE)
    }

    /// The source of a request that names `host`.
    pub(super) fn source(
        &self,
        headers: &HeaderMap,
        host: Option<&RequestedHost>,
    ) -> RequestSource {
        let origin = header_text(headers, &header::ORIGIN);
        if origin.is_some_and(|origin| self.allows(origin)) {
            return RequestSource::OwnPage;
        }
        let site = header_text(headers, &SEC_FETCH_SITE);
        match (site, origin) {
            (Some(site), _) if !matches!(site, "same-origin" | "none") => {
                RequestSource::ForeignPage
            }
            (_, Some(origin)) if !self.is_own(origin, host) => RequestSource::ForeignPage,
            (Some("same-origin"), _) | (_, Some(_)) => RequestSource::OwnPage,
            _ => RequestSource::Program,
        }
    }

    fn allows(&self, origin: &str) -> bool {
        let is_origin = |allowed: &String| allowed.eq_ignore_ascii_case(origin);
        self.allowed.iter().any(is_origin)
    }

    fn is_own(&self, origin: &str, host: Option<&RequestedHost>) -> bool {
        let Some((scheme, rest)) = origin.split_once("://") else {
            return false;
        };
        let default = DEFAULT_PORTS.iter().find(|(name, _)| *name == scheme);
        let (Some((_, default)), Some(host)) = (default, host) else {
            return false;
        };
        let Ok(authority) = Authority::try_from(rest) else {
            return false;
        };
        let Ok(own) = RequestedHost::of(&authority, rest) else {
            return false;
        };
        let port = own.port.unwrap_or(*default);
        let is_same_port = match host.port {
            Some(named) => named == port,
            // Where browsers would name the port, a proxy before this server left it out: nginx's `$host` does.
            None => self.has_named_port || port == *default,
        };
        own.name == host.name && is_same_port
    }
}

/// The text of a header; that of several lines, or of bytes beyond ASCII, is no origin and no site.
fn header_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    if values.next().is_some() {
        return Some("");
    }
    Some(HeaderValue::to_str(first).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::RequestSource::{ForeignPage, OwnPage, Program};
    use super::*;

    fn source(rule: &SourceRule, host: &str, pairs: &[(&str, &str)]) -> RequestSource {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let authority: Authority = host.parse().unwrap();
        let host = RequestedHost::of(&authority, host).unwrap();
        rule.source(&headers, Some(&host))
    }

    /// Host and headers of a request, and its source.
    type Case = (
        &'static str,
        &'static [(&'static str, &'static str)],
        RequestSource,
    );

    /// Requests to port 8080.
    const SOURCES: &[Case] = &[
        ("ui.example:8080", &[], Program),
        ("ui.example:8080", &[("sec-fetch-site", "none")], Program),
        (
            "ui.example:8080",
            &[("sec-fetch-site", "same-origin")],
            OwnPage,
        ),
        (
            "ui.example:8080",
            &[("sec-fetch-site", "same-site")],
            ForeignPage,
        ),
        (
            "ui.example:8080",
            &[("sec-fetch-site", "cross-site")],
            ForeignPage,
        ),
        (
            "ui.example:8080",
            &[("sec-fetch-site", "Same-Origin")],
            ForeignPage,
        ),
        ("ui.example:8080", &[("sec-fetch-site", "")], ForeignPage),
        (
            "ui.example:8080",
            &[
                ("sec-fetch-site", "same-origin"),
                ("sec-fetch-site", "same-origin"),
            ],
            ForeignPage,
        ),
        (
            "ui.example:8080",
            &[
                ("sec-fetch-site", "cross-site"),
                ("origin", "http://ui.example:8080"),
            ],
            ForeignPage,
        ),
        (
            "ui.example:8080",
            &[
                ("sec-fetch-site", "same-origin"),
                ("origin", "http://evil.example"),
            ],
            ForeignPage,
        ),
        (
            "ui.example:8080",
            &[("origin", "http://ui.example:8080")],
            OwnPage,
        ),
        (
            "ui.example:8080",
            &[("origin", "https://ui.example:8080")],
            OwnPage,
        ),
        (
            "ui.example:8080",
            &[("origin", "http://UI.example:8080")],
            OwnPage,
        ),
        (
            "ui.example:8080",
            &[("origin", "http://ui.example:8081")],
            ForeignPage,
        ),
        (
            "ui.example:8080",
            &[("origin", "http://ui.example")],
            ForeignPage,
        ),
        ("ui.example:80", &[("origin", "http://ui.example")], OwnPage),
        (
            "ui.example:443",
            &[("origin", "https://ui.example")],
            OwnPage,
        ),
        (
            "ui.example:8080",
            &[("origin", "http://ui.example.evil:8080")],
            ForeignPage,
        ),
        (
            "ui.example:8080",
            &[("origin", "http://evil@ui.example:8080")],
            ForeignPage,
        ),
        (
            "ui.example:8080",
            &[("origin", "ftp://ui.example:8080")],
            ForeignPage,
        ),
        ("ui.example:8080", &[("origin", "null")], ForeignPage),
        ("ui.example:8080", &[("origin", "")], ForeignPage),
        (
            "ui.example:8080",
            &[("origin", "http://ü.example:8080")],
            ForeignPage,
        ),
        (
            "ui.example:8080",
            &[
                ("origin", "http://ui.example:8080"),
                ("origin", "http://ui.example:8080"),
            ],
            ForeignPage,
        ),
        // A page of an allowed origin is of another site for the browser.
        (
            "ui.example:8080",
            &[
                ("sec-fetch-site", "cross-site"),
                ("origin", "https://other.example"),
            ],
            OwnPage,
        ),
        (
            "ui.example:8080",
            &[("origin", "http://other.example")],
            ForeignPage,
        ),
        // A proxy before the server left the port out.
        (
            "ui.example",
            &[("origin", "http://ui.example:8080")],
            OwnPage,
        ),
        (
            "ui.example",
            &[("origin", "http://evil.example:8080")],
            ForeignPage,
        ),
        ("[::1]:8080", &[("origin", "http://[::1]:8080")], OwnPage),
        (
            "127.0.0.1:8080",
            &[("origin", "http://localhost:8080")],
            ForeignPage,
        ),
    ];

    #[test]
    fn only_programs_and_own_pages_change_anything() {
        let rule = SourceRule::new(8080, &["https://Other.example/".to_owned()]);
        for (host, pairs, expected) in SOURCES {
            assert_eq!(source(&rule, host, pairs), *expected, "{host} {pairs:?}");
        }
        let rule = SourceRule::new(80, &[]);
        for (origin, expected) in [
            ("http://ui.example", OwnPage),
            ("http://ui.example:8080", ForeignPage),
        ] {
            assert_eq!(source(&rule, "ui.example", &[("origin", origin)]), expected);
        }
    }

    #[test]
    fn a_page_needs_a_host_to_be_of_this_server() {
        let rule = SourceRule::new(80, &[]);
        let mut headers = HeaderMap::new();
        assert_eq!(rule.source(&headers, None), RequestSource::Program);
        headers.insert(header::ORIGIN, HeaderValue::from_static("http://a"));
        assert_eq!(rule.source(&headers, None), RequestSource::ForeignPage);
    }

    #[test]
    fn reads_and_preflights_are_for_everyone() {
        let concerns = |method: &str, upgrade: bool| {
            let mut request = http::Request::builder().method(method);
            if upgrade {
                request = request.header(header::UPGRADE, "websocket");
            }
            SourceRule::concerns(&request.body(axum::body::Body::empty()).unwrap())
        };
        for method in ["GET", "HEAD", "OPTIONS"] {
            assert!(!concerns(method, false), "{method}");
        }
        for method in ["POST", "PUT", "PATCH", "DELETE", "CONNECT", "ANY"] {
            assert!(concerns(method, false), "{method}");
        }
        assert!(concerns("GET", true));
    }
}
