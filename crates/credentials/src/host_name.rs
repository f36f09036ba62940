//! Names of hosts and domains on the command line.

use std::net::{IpAddr, Ipv6Addr};

/// Units: characters. The longest label that is put before a domain has to fit, too.
const MAX_DOMAIN: usize = 240;

/// Parses a host name, a wildcard or an IP address for a certificate.
pub fn certificate_name(text: &str) -> Result<String, String> {
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(address.to_string());
    }
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    let mut labels = text.strip_prefix("*.").unwrap_or(text).split('.');
    // A last label of digits is a mistyped address.
    let is_address = text
        .rsplit('.')
        .next()
        .is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()));
    if text.len() > 253 || is_address || !labels.all(is_label) {
        return Err("expected a host name or an IP address, without port".to_owned());
    }
    Ok(text.to_ascii_lowercase())
}

/// Parses a DNS name or IP address for URLs and certificates.
pub fn host(text: &str) -> Result<String, String> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let is_name = bare.len() <= 253
        && bare.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
        });
    if is_name || bare.parse::<IpAddr>().is_ok() {
        Ok(bare.to_owned())
    } else {
        Err("expected a DNS name or an IP address, without scheme and port".to_owned())
    }
}

/// Host part of a URL: IPv6 addresses get brackets.
pub fn in_url(host: &str) -> String {
    if host.parse::<Ipv6Addr>().is_ok() {
        format!("[{host}]")
    } else {
        host.to_owned()
    }
}

/// Parses a network domain: a DNS name of two labels or more, since browsers refuse wildcards below a single one.
pub fn domain(text: &str) -> Result<String, String> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    let is_name = text.contains('.')
        && text.len() <= MAX_DOMAIN
        && text.split('.').all(is_label)
        && !text.ends_with(|last: char| last.is_ascii_digit());
    if is_name {
        Ok(text.to_ascii_lowercase())
    } else {
        Err("expected a DNS name with at least one dot, such as lab.example.org".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (text, expected) in [
            ("registry.example.org", "registry.example.org"),
            ("*.Example.org", "*.example.org"),
            ("localhost", "localhost"),
            ("192.0.2.1", "192.0.2.1"),
            ("[2001:DB8:0::1]", "2001:db8::1"),
            ("::1", "::1"),
        ] {
            assert_eq!(certificate_name(text).as_deref(), Ok(expected));
        }
        let long = "x".repeat(64);
        for wrong in [
            "",
            "a:5000",
            "https://a",
            "a b",
            "a..b",
            "a.",
            "*",
            "a.*.b",
            "192.0.2.300",
            "ä.org",
            "[a]",
            &long,
        ] {
            assert!(certificate_name(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn hosts_are_names_or_addresses() {
        for right in ["atoll.example.org", "10.0.0.1", "fd00::1", "[fd00::1]", "a"] {
            host(right).unwrap();
        }
        for wrong in [
            "", "http://a", "a:8090", "a b", "-a", "a..b", "a/b", "<host>",
        ] {
            host(wrong).unwrap_err();
        }
    }

    #[test]
    fn domains() {
        for (text, expected) in [
            ("lab.example.org", "lab.example.org"),
            ("Atoll.Internal.", "atoll.internal"),
        ] {
            assert_eq!(domain(text).as_deref(), Ok(expected));
        }
        // limit: MAX_DOMAIN
        let labels = |count: usize| format!("{}ab", "x.".repeat(count));
        assert!(domain(&labels(119)).is_ok() && domain(&labels(120)).is_err());
        for wrong in [
            "",
            "lab",
            "*.lab.example",
            "-a.b",
            "a-.b",
            "192.0.2.1",
            "::1",
            "a b.c",
            "a_b.c",
            "../x.y",
            "a..b",
            "a.b/c",
        ] {
            assert!(domain(wrong).is_err(), "{wrong:?}");
        }
    }
}
