//! Host names of callers, and the names in queries.

use std::net::IpAddr;
use std::str::FromStr as _;

use hickory_resolver::proto::rr::Name;

use super::error::Error;
use super::resolv_conf::ResolvConf;

/// The address in `host`, if it is one.
pub(super) fn literal(host: &str) -> Option<IpAddr> {
    if let Ok(address) = host.parse() {
        return Some(address);
    }
    let inner = host.strip_prefix('[')?.strip_suffix(']')?;
    inner.parse().ok().map(IpAddr::V6)
}

/// The name in lower case.
///
/// Errors: Invalid.
pub(super) fn parse(host: &str) -> Result<Name, Error> {
    let invalid = |reason: String| Error::Invalid {
        host: host.to_owned(),
        reason,
    };
    match Name::from_str(host) {
        // hickory reads escapes of zone files.
        Ok(name) if name.num_labels() > 0 && !host.contains('\\') => Ok(name.to_lowercase()),
        Ok(_) => Err(invalid("it has no label, or an escaped one".to_owned())),
        Err(error) => Err(invalid(error.to_string())),
    }
}

/// The names of the queries for `host`, in order.
///
/// hickory's own search continues with the next domain after any error; here, only after a denial.
pub(super) fn candidates(host: &Name, conf: &ResolvConf) -> Vec<Name> {
    let mut absolute = host.clone();
    absolute.set_fqdn(true);
    if host.is_fqdn() {
        return vec![absolute];
    }
    // A name that grows too long with a domain cannot exist there.
    let longer = |domain| host.clone().append_domain(domain).ok();
    let mut names: Vec<Name> = conf.search.iter().filter_map(longer).collect();
    let is_short = usize::from(host.num_labels()) <= conf.ndots;
    names.insert(if is_short { names.len() } else { 0 }, absolute);
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(host: &str, conf: &str) -> Vec<String> {
        let names = super::candidates(&parse(host).unwrap(), &ResolvConf::parse(conf));
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
            let error = parse(text).unwrap_err();
            assert!(matches!(error, Error::Invalid { .. }), "{text}: {error}");
        }
        for text in ["db", "api_server-1", "DB.example.com.", "münchen.example"] {
            parse(text).unwrap();
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
            assert_eq!(parse(text).unwrap().is_localhost(), is, "{text}");
        }
    }
}
