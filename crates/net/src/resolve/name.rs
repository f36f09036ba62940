//! Host names of callers, and the names in queries.

use std::net::IpAddr;

use hickory_resolver::proto::rr::Name;

use super::error::Error;
use super::resolv_conf::ResolvConf;

/// Units: bytes. Longest host name.
const MAX_LENGTH: usize = 253;

/// A host's name, in lower case.
#[derive(Debug)]
pub(super) struct HostName {
    text: String,
    name: Name,
}

/// The address in `host`, if it is one.
pub(super) fn literal(host: &str) -> Option<IpAddr> {
    if let Ok(address) = host.parse() {
        return Some(address);
    }
    let inner = host.strip_prefix('[')?.strip_suffix(']')?;
    inner.parse().ok().map(IpAddr::V6)
}

/// Parses a DNS name. Containers have underscores in their names, which IDNA refuses.
pub(super) fn dns_name(text: &str) -> Option<Name> {
    let parsed = if text.is_ascii() {
        Name::from_ascii(text)
    } else {
        Name::from_utf8(text)
    };
    parsed.ok().map(|name| name.to_lowercase())
}

impl HostName {
    /// Errors: Invalid.
    pub(super) fn parse(host: &str) -> Result<Self, Error> {
        let invalid = |reason: &str| Error::Invalid {
            host: host.chars().take(MAX_LENGTH).collect(),
            reason: reason.to_owned(),
        };
        if host.trim_end_matches('.').is_empty() {
            return Err(invalid("it is empty"));
        }
        if host.len() > MAX_LENGTH + 1 {
            return Err(invalid("it is longer than 253 characters"));
        }
        if let Some(bad) = host
            .chars()
            .find(|c| c.is_whitespace() || c.is_control() || "/:@[]\\\"".contains(*c))
        {
            return Err(invalid(&format!("{bad:?} cannot be part of one")));
        }
        let name = dns_name(host).ok_or_else(|| invalid("a part of it is no label"))?;
        Ok(Self {
            text: host.to_lowercase(),
            name,
        })
    }

    /// The key of the cache.
    pub(super) fn key(&self) -> &str {
        &self.text
    }

    /// The name without the trailing dot.
    pub(super) fn relative(&self) -> &str {
        self.text.strip_suffix('.').unwrap_or(&self.text)
    }

    /// Whether it is a name of this machine. Source: RFC 6761.
    pub(super) fn is_localhost(&self) -> bool {
        let name = self.relative();
        name == "localhost" || name.ends_with(".localhost")
    }

    /// The names of the queries, in order.
    pub(super) fn candidates(&self, conf: &ResolvConf) -> Vec<Name> {
        let mut absolute = self.name.clone();
        absolute.set_fqdn(true);
        if self.name.is_fqdn() {
            return vec![absolute];
        }
        // A name that grows too long with a domain cannot exist there.
        let mut names: Vec<Name> = conf
            .search
            .iter()
            .filter_map(|domain| self.name.clone().append_domain(domain).ok())
            .collect();
        let dots = self.text.matches('.').count();
        let position = if dots >= conf.ndots { 0 } else { names.len() };
        names.insert(position, absolute);
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(host: &str, conf: &str) -> Vec<String> {
        let name = HostName::parse(host).unwrap();
        let names = name.candidates(&ResolvConf::parse(conf));
        names.iter().map(Name::to_string).collect()
    }

    #[test]
    fn an_address_is_recognised() {
        for (text, address) in [
            ("10.1.2.3", "10.1.2.3"),
            ("fd00::1", "fd00::1"),
            ("[fd00::1]", "fd00::1"),
        ] {
            assert_eq!(literal(text), Some(address.parse().unwrap()));
        }
        for text in ["[10.1.2.3]", "db", "10.1.2", "[fd00::1", "fd00::1%eth0"] {
            assert_eq!(literal(text), None, "{text}");
        }
    }

    #[test]
    fn malformed_names_are_refused_with_a_reason() {
        let long = "a".repeat(64);
        for text in ["", ".", "a b", "http://db", "db:5432", "a..b", &long] {
            let error = HostName::parse(text).unwrap_err();
            assert!(matches!(error, Error::Invalid { .. }), "{text}: {error}");
        }
        for text in ["db", "api_server-1", "DB.example.com.", "münchen.example"] {
            HostName::parse(text).unwrap();
        }
    }

    #[test]
    fn search_domains_come_first_for_short_names() {
        let conf = "search dns.podman example.com";
        assert_eq!(
            candidates("DB", conf),
            ["db.dns.podman.", "db.example.com.", "db."]
        );
        assert_eq!(
            candidates("db.site", conf),
            ["db.site.", "db.site.dns.podman.", "db.site.example.com."]
        );
        assert_eq!(candidates("db.", conf), ["db."]);
        let conf = "search example.com\noptions ndots:2";
        assert_eq!(
            candidates("db.site", conf),
            ["db.site.example.com.", "db.site."]
        );
        assert_eq!(candidates("db", ""), ["db."]);
    }

    #[test]
    fn localhost_has_subdomains() {
        for (text, is) in [
            ("LOCALHOST", true),
            ("localhost.", true),
            ("a.localhost", true),
            ("localhost.example", false),
            ("notlocalhost", false),
        ] {
            assert_eq!(HostName::parse(text).unwrap().is_localhost(), is, "{text}");
        }
    }
}
