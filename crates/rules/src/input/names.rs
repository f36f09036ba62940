//! Names of clusters and hosts, domains, tags.

use std::net::Ipv4Addr;

use model::Error;
use model::host::FORBIDDEN_HOSTNAMES;

use super::refusal::refuse;

/// Longest name of a cluster.
const CLUSTER_NAME_CHARS: usize = 54;
/// Longest name of a host, and longest label of a domain.
const LABEL_CHARS: usize = 63;
/// Longest domain.
const DOMAIN_CHARS: usize = 255;
/// Longest `apps.<name>.<domain>`: routes prepend their own label to it.
const APPS_DOMAIN_CHARS: usize = 191;

/// Checks a cluster's name; platform `none` may have dots in it.
/// Source: assisted-service, internal/cluster/validations/validations.go, ValidateClusterNameFormat.
pub fn cluster_name(name: &str, dotted: bool) -> Result<(), Error> {
    let is_good = if dotted {
        name.split('.').all(is_label)
    } else {
        is_label(name)
    };
    if !is_good || name.len() > CLUSTER_NAME_CHARS {
        return Err(refuse(
            "name",
            name,
            "is not a cluster name: use 1 to 54 lower-case letters, digits and inner hyphens",
        ));
    }
    Ok(())
}

/// Checks a base domain; empty is allowed.
/// Source: assisted-service, internal/bminventory/inventory.go, validateDNSDomain.
pub fn base_dns_domain(domain: &str, cluster_name: &str) -> Result<(), Error> {
    const FIELD: &str = "base_dns_domain";
    if domain.is_empty() {
        return Ok(());
    }
    if domain.parse::<Ipv4Addr>().is_ok() {
        return Err(refuse(FIELD, domain, "is an address: give a domain"));
    }
    let last = domain.rsplit('.').next().unwrap_or_default();
    let labels_good = domain
        .split('.')
        .all(|label| is_label(label) && label.len() <= LABEL_CHARS);
    if !labels_good || last.len() < 2 {
        return Err(refuse(
            FIELD,
            domain,
            "is not a domain: use lower-case labels of letters, digits and inner hyphens, the last one of 2 characters or more",
        ));
    }
    let apps = "apps.".len() + cluster_name.len() + 1 + domain.len();
    if domain.len() > DOMAIN_CHARS || apps > APPS_DOMAIN_CHARS {
        return Err(refuse(
            FIELD,
            domain,
            "is too long: apps.<name>.<domain> may have 191 characters",
        ));
    }
    Ok(())
}

/// Checks a host's name.
/// Source: assisted-service, internal/host/hostutil/host_utils.go, ValidateHostname.
pub fn hostname(name: &str) -> Result<(), Error> {
    const FIELD: &str = "host_name";
    if FORBIDDEN_HOSTNAMES.contains(&name) {
        return Err(refuse(
            FIELD,
            name,
            "is a name that every machine has: choose another one",
        ));
    }
    if !is_hostname(name) {
        return Err(refuse(
            FIELD,
            name,
            "is not a host name: use at most 63 lower-case letters, digits, hyphens and dots, a letter or digit first",
        ));
    }
    Ok(())
}

fn is_hostname(name: &str) -> bool {
    let starts_well = name
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    starts_well
        && name.len() <= LABEL_CHARS
        && name
            .split('.')
            .all(|label| !label.is_empty() && label.bytes().all(is_label_byte))
}

/// Checks the comma list of a cluster's tags; empty is allowed.
/// Source: assisted-service, pkg/validations/validations.go, ValidateTags.
pub fn tags(list: &str) -> Result<(), Error> {
    if list.is_empty() {
        return Ok(());
    }
    for tag in list.split(',') {
        let is_good = tag.split(' ').all(|word| {
            !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        });
        if !is_good {
            return Err(refuse(
                "tags",
                tag,
                "is not a tag: use letters, digits, underscores and single blanks between words, commas between tags",
            ));
        }
    }
    Ok(())
}

fn is_label(label: &str) -> bool {
    !label.is_empty()
        && label.bytes().all(is_label_byte)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

fn is_label_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cluster_names() {
        for good in ["a", "a1", "0-a", "my-cluster", &"a".repeat(54)] {
            assert!(cluster_name(good, false).is_ok(), "{good}");
        }
        for bad in [
            "",
            "A",
            "a.b",
            "-a",
            "a-",
            "a_b",
            "a b",
            "ä",
            &"a".repeat(55),
        ] {
            assert!(cluster_name(bad, false).is_err(), "{bad}");
        }
        assert!(cluster_name("a.b", true).is_ok());
        assert!(cluster_name("a..b", true).is_err());
    }

    #[test]
    fn domains() {
        for good in ["", "test", "example.com", "a-b.c1.org", "1.example.com"] {
            assert!(base_dns_domain(good, "c").is_ok(), "{good}");
        }
        let long = format!("{}.com", "a".repeat(64));
        for bad in [
            "t", "a.b", ".a.com", "a.com.", "a..com", "A.com", "-a.com", "1.2.3.4", &long,
        ] {
            assert!(base_dns_domain(bad, "c").is_err(), "{bad}");
        }
        let domain = format!(
            "{}.{}.{}.com",
            "a".repeat(60),
            "b".repeat(60),
            "c".repeat(55)
        );
        assert!(base_dns_domain(&domain, "c").is_ok());
        assert!(base_dns_domain(&domain, "a-longer-name").is_err());
    }

    #[test]
    fn hostnames() {
        for good in ["a", "master-0", "0a.b-c.d"] {
            assert!(hostname(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "-a",
            "A",
            "a..b",
            "a.",
            "localhost",
            "localhost6",
            &"a".repeat(64),
        ] {
            assert!(hostname(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_that_every_machine_has_are_refused_as_such() {
        let is_refused_as_such = |name: &str| {
            let refusal = hostname(name).err().map(|error| error.to_string());
            refusal.is_some_and(|text| text.contains("every machine has"))
        };
        for name in [
            "localhost",
            "localhost.localdomain",
            "localhost4",
            "localhost4.localdomain4",
            "localhost6",
            "localhost6.localdomain6",
        ] {
            assert!(is_refused_as_such(name), "{name}");
        }
        for name in ["", "(none)", "Localhost", "localhost5", "localhost.a"] {
            assert!(!is_refused_as_such(name), "{name}");
        }
    }

    #[test]
    fn tag_lists() {
        for good in ["", "a", "a,b c,d_1"] {
            assert!(tags(good).is_ok(), "{good}");
        }
        for bad in ["a-b", ",", "a,", "a, b", "a  b", " "] {
            assert!(tags(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_check_panics(text in "\\PC*") {
            let _ = cluster_name(&text, true);
            let _ = base_dns_domain(&text, &text);
            let _ = hostname(&text);
            let _ = tags(&text);
        }
    }
}
