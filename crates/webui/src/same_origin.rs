//! Protection against cross-site request forgery: the site that a request comes from.
//!
//! Beside SameSite=Lax, which other ports and subdomains of a site pass. Source: Fetch Metadata, RFC 6454.

use http::{HeaderMap, HeaderName, header};
use url::Url;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Whether a page of this server sent the request: by the browser's own judgement, or by `Origin`, which browsers send
/// without TLS, too. `base_url` is the origin of this server; none: the host of the request.
pub(crate) fn is_same_origin(headers: &HeaderMap, base_url: Option<&str>) -> bool {
    if let Some(site) = headers.get(SEC_FETCH_SITE) {
        return site == "same-origin";
    }
    let text = |name| headers.get(name)?.to_str().ok();
    let Some(origin) = text(header::ORIGIN) else {
        return false;
    };
    let parsed = |text: &str| Url::parse(text).ok().map(|url| url.origin());
    let Some(origin) = parsed(origin).filter(url::Origin::is_tuple) else {
        return false;
    };
    if let Some(base_url) = base_url {
        return parsed(base_url).is_some_and(|base| base == origin);
    }
    let host = text(header::HOST).unwrap_or_default();
    ["http", "https"]
        .iter()
        .any(|scheme| parsed(&format!("{scheme}://{host}")).is_some_and(|own| own == origin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_this_server_change_anything() {
        let base = Some("https://ui.example");
        for (base, pairs, expected) in [
            (base, &[][..], false),
            (base, &[("sec-fetch-site", "same-origin")][..], true),
            (base, &[("sec-fetch-site", "same-site")][..], false),
            (
                base,
                &[
                    ("sec-fetch-site", "cross-site"),
                    ("origin", "https://ui.example"),
                ][..],
                false,
            ),
            (base, &[("sec-fetch-site", "none")][..], false),
            (base, &[("origin", "https://ui.example")][..], true),
            (base, &[("origin", "https://ui.example:443")][..], true),
            (base, &[("origin", "http://ui.example")][..], false),
            (base, &[("origin", "https://ui.example:8443")][..], false),
            (base, &[("origin", "https://ui.example.evil")][..], false),
            (base, &[("origin", "null")][..], false),
            (
                None,
                &[("origin", "http://a:8080"), ("host", "a:8080")][..],
                true,
            ),
            (
                None,
                &[("origin", "http://a:8081"), ("host", "a:8080")][..],
                false,
            ),
            (None, &[("origin", "null"), ("host", "")][..], false),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, value.parse().unwrap());
            }
            assert_eq!(is_same_origin(&headers, base), expected, "{pairs:?}");
        }
    }
}
