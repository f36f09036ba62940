//! The hosts of a site, and the destination of each.

use std::fmt;

use super::settings::{REGISTRY, SiteSettings};

/// Destination of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Destination {
    Api,
    Web,
    /// Its connections pass with their TLS; a decrypted one came by mistake.
    Registry,
    /// The static files: of `mirror.DOMAIN` and of any other host.
    Files,
}

/// The hosts of a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostTable(pub(super) Vec<(String, Destination)>);

impl HostTable {
    /// The hosts with these labels below `domain`.
    pub(crate) fn new(settings: &SiteSettings) -> Self {
        let named = [
            (settings.api_host.as_str(), Destination::Api),
            (&settings.web_host, Destination::Web),
            (&settings.service_host, Destination::Web),
            (REGISTRY, Destination::Registry),
        ];
        let named = named.map(|(label, destination)| (settings.name(label), destination));
        Self(named.into())
    }

    /// The destination of a request for `host`, which is in lower case, without a port.
    pub(crate) fn destination(&self, host: Option<&str>) -> Destination {
        let found = self.0.iter().find(|(name, _)| Some(name.as_str()) == host);
        found.map_or(Destination::Files, |(_, destination)| *destination)
    }
}

impl fmt::Display for HostTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, destination) in &self.0 {
            write!(f, "{name} to {destination:?}, ")?;
        }
        f.write_str("others to Files")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_choose_the_destination() {
        let table = HostTable::new(&SiteSettings {
            network_domain: "Site.Example.".to_owned(),
            api_host: "API".to_owned(),
            ..SiteSettings::default()
        });
        for (host, destination) in [
            (Some("api.site.example"), Destination::Api),
            (Some("web.site.example"), Destination::Web),
            (Some("service.site.example"), Destination::Web),
            (Some("registry.site.example"), Destination::Registry),
            (Some("mirror.site.example"), Destination::Files),
            (Some("api.other.example"), Destination::Files),
            (Some("a.api.site.example"), Destination::Files),
            (Some("10.0.0.1"), Destination::Files),
            (None, Destination::Files),
        ] {
            assert_eq!(table.destination(host), destination, "{host:?}");
        }
    }
}
