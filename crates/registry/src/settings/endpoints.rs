//! Endpoints and their filters.

use std::collections::BTreeMap;
use std::str::FromStr as _;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use service::settings::{Setting, Shape};

use super::{items, nothing, without_index};

/// Every endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Endpoints(pub(crate) Vec<Endpoint>);

/// One endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// For the log and the metrics.
    pub(crate) name: String,
    pub(crate) url: Address,
    pub(crate) headers: HeaderMap,
    /// An answer has to come within this time.
    pub(crate) timeout: Duration,
    /// After so many failures in a row,
    pub(crate) threshold: u32,
    /// this long is waited before each further try.
    pub(crate) backoff: Duration,
    pub(crate) is_disabled: bool,
    pub(crate) ignored_types: Vec<String>,
    pub(crate) ignored_actions: Vec<String>,
}

/// A URL that may hold credentials: never shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Address(pub(crate) String);

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[REDACTED]")
    }
}

impl Endpoint {
    /// Source: distribution's defaults.
    fn new() -> Self {
        Self {
            name: String::new(),
            url: Address(String::new()),
            headers: HeaderMap::new(),
            timeout: Duration::from_secs(1),
            threshold: 10,
            backoff: Duration::from_secs(1),
            is_disabled: false,
            ignored_types: Vec::new(),
            ignored_actions: Vec::new(),
        }
    }

    pub(crate) fn wants(&self, action: &str, media_type: &str) -> bool {
        !self.ignored_actions.iter().any(|one| one == action)
            && !self.ignored_types.iter().any(|one| one == media_type)
    }

    fn set(&mut self, part: &str, text: &str) -> Result<(), String> {
        if let Some(header) = part.strip_prefix("headers_") {
            return self.add_header(without_index(header), text);
        }
        match without_index(part) {
            "name" => text.clone_into(&mut self.name),
            "url" => self.url = address(text)?,
            "timeout" => self.timeout = positive(text)?.unwrap_or(self.timeout),
            "threshold" => self.threshold = u32::parse(text)?.max(1),
            "backoff" => self.backoff = positive(text)?.unwrap_or(self.backoff),
            "disabled" => self.is_disabled = bool::parse(text)?,
            "ignoredmediatypes" | "ignore_mediatypes" => self.ignored_types.push(text.to_owned()),
            "ignore_actions" => self.ignored_actions.push(text.to_owned()),
            _ => return Err(format!("{part:?} is not known")),
        }
        Ok(())
    }

    fn add_header(&mut self, name: &str, value: &str) -> Result<(), String> {
        let name = HeaderName::from_str(name).map_err(|_| format!("{name:?} is no header"))?;
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| format!("the value of {name} cannot stand in a header"))?;
        value.set_sensitive(true);
        self.headers.append(name, value);
        Ok(())
    }
}

fn address(text: &str) -> Result<Address, String> {
    let parsed = text.parse::<Uri>();
    let uri = parsed.map_err(|error| format!("url is malformed: {error}"))?;
    let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
    if is_web && uri.host().is_some() {
        Ok(Address(text.to_owned()))
    } else {
        Err("url has to begin with http:// or https:// and name a host".to_owned())
    }
}

/// Zero stands for the default. Source: distribution.
fn positive(text: &str) -> Result<Option<Duration>, String> {
    Ok(Some(Duration::parse(text)?).filter(|time| !time.is_zero()))
}

impl Setting for Endpoints {
    const EXPECTED: &'static str = "list of endpoints, each with its url";
    const SHAPE: Shape = Shape::Parts;

    fn parse(text: &str) -> Result<Self, String> {
        nothing(text)
    }

    fn parse_parts(parts: &BTreeMap<&str, &str>) -> Result<Self, String> {
        let mut endpoints = Vec::<Endpoint>::new();
        for (index, parts) in items(parts)? {
            let mut endpoint = Endpoint::new();
            for (part, text) in parts {
                let set = endpoint.set(part, text);
                set.map_err(|reason| format!("endpoint {index}: {reason}"))?;
            }
            if endpoint.url.0.is_empty() {
                return Err(format!("endpoint {index}: url is missing"));
            }
            if endpoint.name.is_empty() {
                endpoint.name = format!("endpoint {index}");
            }
            // Each has a journal under its name.
            if endpoints.iter().any(|other| other.name == endpoint.name) {
                return Err(format!("endpoint {index}: another one has the same name"));
            }
            endpoints.push(endpoint);
        }
        Ok(Self(endpoints))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(parts: &[(&str, &str)]) -> Result<Endpoints, String> {
        Endpoints::parse_parts(&parts.iter().copied().collect())
    }

    #[test]
    fn endpoints_are_read_as_distribution_does() {
        let Endpoints(endpoints) = parse(&[
            ("0_name", "listener"),
            ("0_url", "https://user:secret@host/x"),
            ("0_headers_authorization_0", "Bearer secret"),
            ("0_timeout", "500ms"),
            ("0_threshold", "5"),
            ("0_backoff", "0"),
            ("0_ignoredmediatypes_0", "application/octet-stream"),
            ("0_ignore_actions_0", "pull"),
            ("1_url", "http://other:1"),
            ("1_disabled", "true"),
        ])
        .unwrap();
        let [first, second] = endpoints.as_slice() else {
            panic!("{endpoints:?}")
        };
        assert_eq!(first.timeout, Duration::from_millis(500));
        assert_eq!(
            (first.threshold, first.backoff),
            (5, Duration::from_secs(1))
        );
        assert!(first.wants("push", "x") && !first.wants("pull", "x"));
        assert!(!first.wants("push", "application/octet-stream"));
        assert!(second.is_disabled && second.name == "endpoint 1");
        assert!(!format!("{endpoints:?}").contains("secret"));
    }

    #[test]
    fn invalid_endpoints_are_reported_without_their_secrets() {
        for wrong in [
            [("0_name", "x")].as_slice(),
            &[("0_url", "secret")],
            &[("0_url", "ftp://secret")],
            &[("0_url", "http://a"), ("0_colour", "secret")],
            &[("0_url", "http://a"), ("0_headers_x_0", "secret\n")],
            &[
                ("0_url", "http://a"),
                ("1_url", "http://b"),
                ("1_name", "endpoint 0"),
            ],
            &[("url", "http://a")],
        ] {
            let reported = parse(wrong).unwrap_err();
            assert!(!reported.contains("secret"), "{reported}");
        }
    }
}
