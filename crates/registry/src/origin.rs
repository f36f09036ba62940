//! `Location` headers: absolute, since old clients and scripts expect that.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use oci::{Digest, Repository};
use uuid::Uuid;

use crate::settings::Settings;

/// Where the registry is, as its clients see it; for every request.
#[derive(Debug)]
pub(crate) struct Origins {
    base: Base,
    /// Before every path.
    pub(crate) prefix: String,
    is_tls: bool,
}

/// The part of a `Location` header before the path.
#[derive(Debug, PartialEq, Eq)]
enum Base {
    /// Nothing.
    Relative,
    /// Always this URL.
    Fixed(String),
    /// Scheme and host of the request.
    Request,
}

/// The part of a URL before the path, in the answer to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin(String);

impl Origins {
    pub(crate) fn new(settings: &Settings) -> Self {
        let base = match &settings.registry_http_host {
            _ if settings.registry_http_relativeurls => Base::Relative,
            Some(url) => Base::Fixed(url.trim_end_matches('/').to_owned()),
            None => Base::Request,
        };
        Self {
            base,
            prefix: settings.registry_http_prefix.0.clone(),
            is_tls: settings.tls().is_some(),
        }
    }

    /// The origin of a request: configured, or reported by a proxy, or of the request itself.
    pub(crate) fn of(&self, head: &Parts) -> Origin {
        Origin(match &self.base {
            Base::Relative => self.prefix.clone(),
            Base::Fixed(url) => url.clone(),
            Base::Request => seen(self.is_tls, head).unwrap_or_default() + &self.prefix,
        })
    }

    /// The origin for URLs that cannot be relative; None when the request has no usable host.
    pub(crate) fn absolute(&self, head: &Parts) -> Option<String> {
        match &self.base {
            Base::Fixed(url) => Some(url.clone()),
            Base::Relative | Base::Request => Some(seen(self.is_tls, head)? + &self.prefix),
        }
    }

    /// The path of a request as its client knows it.
    pub(crate) fn path(&self, head: &Parts) -> String {
        format!("{}{}", self.prefix, head.uri.path())
    }
}

impl Origin {
    pub(crate) fn upload(&self, name: &Repository, id: Uuid) -> HeaderValue {
        self.header(&format!("/v2/{name}/blobs/uploads/{id}"))
    }

    pub(crate) fn blob(&self, name: &Repository, digest: &Digest) -> HeaderValue {
        self.header(&format!("/v2/{name}/blobs/{digest}"))
    }

    pub(crate) fn manifest(&self, name: &Repository, digest: &Digest) -> HeaderValue {
        self.header(&format!("/v2/{name}/manifests/{digest}"))
    }

    fn header(&self, path: &str) -> HeaderValue {
        HeaderValue::from_str(&format!("{}{path}", self.0))
            .or_else(|_| HeaderValue::from_str(path))
            .expect("names, digests and ids are ASCII without control characters")
    }
}

fn seen(is_tls: bool, head: &Parts) -> Option<String> {
    let headers = &head.headers;
    let forwarded = forwarded(headers);
    let scheme = forwarded
        .proto
        .or_else(|| first(headers, "x-forwarded-proto"))
        .filter(|scheme| ["http", "https"].contains(&scheme.as_str()))
        .unwrap_or_else(|| if is_tls { "https" } else { "http" }.to_owned());
    let host = forwarded
        .host
        .or_else(|| first(headers, "x-forwarded-host"))
        .or_else(|| head.uri.authority().map(ToString::to_string))
        .or_else(|| first(headers, "host"))
        .filter(|host| is_host(host))?;
    Some(format!("{scheme}://{host}"))
}

/// Only characters of a URL's host: the text is repeated to the client.
fn is_host(text: &str) -> bool {
    let fits =
        |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b':' | b'[' | b']');
    !text.is_empty() && text.bytes().all(fits)
}

/// The first of a list in a header.
fn first(headers: &HeaderMap, name: &str) -> Option<String> {
    let text = headers.get(name)?.to_str().ok()?;
    Some(text.split(',').next()?.trim().to_owned()).filter(|text| !text.is_empty())
}

#[derive(Default)]
struct Forwarded {
    proto: Option<String>,
    host: Option<String>,
}

/// The first hop of a `Forwarded` header. Source: RFC 7239.
fn forwarded(headers: &HeaderMap) -> Forwarded {
    let mut found = Forwarded::default();
    for pair in first(headers, "forwarded").unwrap_or_default().split(';') {
        let Some((name, value)) = pair.split_once('=') else {
            continue;
        };
        let value = Some(value.trim().trim_matches('"').to_owned());
        match name.trim().to_ascii_lowercase().as_str() {
            "proto" => found.proto = value,
            "host" => found.host = value,
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn origin(is_tls: bool, uri: &str, headers: &[(&str, &str)]) -> Option<String> {
        let request = headers
            .iter()
            .fold(Request::builder().uri(uri), |request, (name, value)| {
                request.header(*name, *value)
            })
            .body(())
            .unwrap();
        seen(is_tls, &request.into_parts().0)
    }

    #[test]
    fn origins() {
        let is = |text: &str| Some(text.to_owned());
        assert_eq!(
            origin(false, "/v2/", &[("host", "r:5000")]),
            is("http://r:5000")
        );
        assert_eq!(
            origin(true, "/v2/", &[("host", "r:5000")]),
            is("https://r:5000")
        );
        assert_eq!(origin(true, "https://two:1/v2/", &[]), is("https://two:1"));
        let proxied = [
            ("host", "in"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "out:8443, in"),
        ];
        assert_eq!(origin(false, "/v2/", &proxied), is("https://out:8443"));
        let standard = [
            ("host", "in"),
            ("forwarded", "for=1.1.1.1;Proto=https;host=\"out\", for=2"),
        ];
        assert_eq!(origin(false, "/v2/", &standard), is("https://out"));
        assert_eq!(
            origin(
                false,
                "/v2/",
                &[("host", "r"), ("x-forwarded-proto", "javascript")]
            ),
            is("http://r")
        );
        assert_eq!(origin(false, "/v2/", &[("host", "a/b")]), None);
        assert_eq!(origin(false, "/v2/", &[]), None);
    }
}
