//! Proxies.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use model::Error;
use model::network::Proxy;
use url::Url;

use super::refusal::refuse;
use crate::versions::at_least;

/// Checks the three members of an infra-env's proxy.
/// Source: assisted-service, internal/bminventory/inventory.go, validateProxySettings.
pub fn proxy(given: &Proxy, version: &str) -> Result<(), Error> {
    http_proxy(
        "proxy.http_proxy",
        given.http_proxy.as_deref().unwrap_or_default(),
    )?;
    https_proxy(
        "proxy.https_proxy",
        given.https_proxy.as_deref().unwrap_or_default(),
    )?;
    no_proxy(
        "proxy.no_proxy",
        given.no_proxy.as_deref().unwrap_or_default(),
        version,
    )
}

/// Checks the proxy of plain HTTP; empty is allowed.
/// Source: assisted-service, pkg/validations/validations.go, ValidateHTTPProxyFormat.
pub fn http_proxy(field: &str, text: &str) -> Result<(), Error> {
    proxy_url(field, text, &["http"])
}

/// Checks the proxy of HTTPS; empty is allowed.
/// Source: assisted-service, pkg/validations/validations.go, ValidateHTTPSProxyFormat.
pub fn https_proxy(field: &str, text: &str) -> Result<(), Error> {
    proxy_url(field, text, &["http", "https"])
}

fn proxy_url(field: &str, text: &str, schemes: &[&str]) -> Result<(), Error> {
    if text.is_empty() {
        return Ok(());
    }
    let wanted = schemes.join(" or ");
    let remedy = format!("is not a proxy: write {wanted}://[user:password@]host:port");
    // The value may hold a password, so the error does not repeat it.
    let url =
        Url::parse(text).map_err(|error| Error::invalid(field, format!("{error}: {remedy}")))?;
    if !schemes.contains(&url.scheme()) {
        return Err(refuse(field, url.scheme(), &remedy));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(Error::invalid(field, format!("has no host and {remedy}")));
    }
    Ok(())
}

/// Checks the comma list of destinations without proxy; empty is allowed, `*` from 4.8.
/// Source: assisted-service, pkg/validations/validations.go, ValidateNoProxyFormat.
pub fn no_proxy(field: &str, list: &str, version: &str) -> Result<(), Error> {
    if list.is_empty() {
        return Ok(());
    }
    let mut seen = BTreeSet::new();
    for item in list.split(',') {
        if !seen.insert(item) {
            return Err(refuse(field, item, "is duplicated: leave one out"));
        }
        if item == "*" {
            if !version.is_empty() && !at_least(version, 4, 8) {
                return Err(refuse(field, item, "needs version 4.8 or later"));
            }
            continue;
        }
        let is_address = item.parse::<IpAddr>().is_ok() || item.parse::<IpNet>().is_ok();
        if !is_address && !is_domain(item.strip_prefix('.').unwrap_or(item)) {
            return Err(refuse(
                field,
                item,
                "is neither an address, a CIDR nor a domain: separate items by commas without blanks",
            ));
        }
    }
    Ok(())
}

fn is_domain(text: &str) -> bool {
    text.split('.').all(|label| {
        !label.is_empty()
            && label.len() <= 63
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn proxies() {
        for good in [
            "",
            "http://proxy:3128",
            "http://u:p@10.0.0.1:3128",
            "http://[fd00::1]:80",
        ] {
            assert!(http_proxy("http_proxy", good).is_ok(), "{good}");
        }
        for bad in [
            "proxy:3128",
            "https://proxy",
            "ftp://proxy",
            "http://",
            "http:// a",
        ] {
            assert!(http_proxy("http_proxy", bad).is_err(), "{bad}");
        }
        assert!(https_proxy("https_proxy", "https://proxy").is_ok());
        assert!(https_proxy("https_proxy", "ftp://proxy").is_err());
    }

    #[test]
    fn a_refusal_keeps_the_password() {
        let error = http_proxy("http_proxy", "https://u:secret@proxy").unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }

    #[test]
    fn no_proxy_lists() {
        for good in [
            "",
            "*",
            "a.com,.b.com,10.0.0.1,10.0.0.0/8,fd00::/8",
            "a.com,*",
        ] {
            assert!(no_proxy("no_proxy", good, "4.16.3").is_ok(), "{good}");
        }
        for bad in [
            "a.com,a.com",
            "a.com,",
            "a.com, b.com",
            "a b",
            "*.a.com",
            "http://a",
        ] {
            assert!(no_proxy("no_proxy", bad, "4.16.3").is_err(), "{bad}");
        }
        assert!(no_proxy("no_proxy", "*", "4.7.1").is_err());
        assert!(no_proxy("no_proxy", "*", "").is_ok());
    }

    proptest! {
        #[test]
        fn no_check_panics(text in "\\PC*") {
            let _ = http_proxy("http_proxy", &text);
            let _ = no_proxy("no_proxy", &text, &text);
        }
    }
}
