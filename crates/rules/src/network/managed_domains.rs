//! The managed domains that an operator lists.

use model::Error;
use model::domains::{DnsProvider, ManagedDomain};

use crate::input;

const NAME: &str = "BASE_DNS_DOMAINS";

/// Reads `BASE_DNS_DOMAINS`: `<domain>:<zone id>/<provider>`, separated by commas. The zone id is in no response.
///
/// Errors: `Invalid` naming `BASE_DNS_DOMAINS` and the entry, counted from 0.
/// Source: assisted-service, internal/domains/managed_domains.go; kelseyhightower/envconfig (maps).
pub fn load(text: &str) -> Result<Vec<ManagedDomain>, Error> {
    let mut domains: Vec<ManagedDomain> = Vec::new();
    if text.trim().is_empty() {
        return Ok(domains);
    }
    for (index, entry) in text.split(',').map(str::trim).enumerate() {
        let refuse = |reason: String| Error::invalid(format!("{NAME}[{index}]"), reason);
        let form = || {
            refuse(format!(
                "{entry:?} is not of the form domain:zone-id/provider"
            ))
        };
        let (domain, zone) = entry.split_once(':').ok_or_else(form)?;
        let (zone_id, provider) = zone.split_once('/').ok_or_else(form)?;
        if domain.is_empty() || zone_id.is_empty() {
            return Err(form());
        }
        input::base_dns_domain(domain, "").map_err(|error| refuse(error.to_string()))?;
        let provider: DnsProvider = provider
            .parse()
            .map_err(|error: model::UnknownValue| refuse(error.to_string()))?;
        if domains.iter().any(|known| known.domain == domain) {
            return Err(refuse(format!("{domain:?} is listed twice: keep one")));
        }
        domains.push(ManagedDomain {
            domain: domain.to_owned(),
            provider: Some(provider),
        });
    }
    Ok(domains)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_are_read_in_their_order() {
        let domains = load("b.example.com:Z1/route53, a.example.com:Z2/route53").unwrap();
        let names: Vec<&str> = domains.iter().map(|one| one.domain.as_str()).collect();
        assert_eq!(names, ["b.example.com", "a.example.com"]);
        assert_eq!(domains[0].provider, Some(DnsProvider::Route53));
        assert!(load(" ").unwrap().is_empty());
    }

    #[test]
    fn problems_name_the_entry() {
        for (bad, expected) in [
            ("b.example.com", "domain:zone-id/provider"),
            ("b.example.com:Z2", "domain:zone-id/provider"),
            (":Z2/route53", "domain:zone-id/provider"),
            ("", "domain:zone-id/provider"),
            ("b.example.com:Z2/bind", "should be one of [route53]"),
            ("B_:Z2/route53", "is not a domain"),
            ("a.example.com:Z2/route53", "is listed twice"),
        ] {
            let error = load(&format!("a.example.com:Z1/route53,{bad}")).unwrap_err();
            let text = error.to_string();
            assert!(
                text.starts_with("BASE_DNS_DOMAINS[1]") && text.contains(expected),
                "{text}"
            );
        }
    }
}
