//! Where the requests of the site go: the upstream of each host, and the headers and pages of responses.

use std::sync::Arc;

use axum::response::Response;
use http::{HeaderValue, header};

use super::error_page::ErrorPages;
use super::host_table::{Destination, HostTable};
use super::settings::SiteSettings;
use crate::upstreams::{ActiveUpstream, Upstreams};

/// Prefix of the challenges of certificate authorities. Source: RFC 8555, section 8.3.
pub(super) const ACME: &str = "/.well-known/acme-challenge/";

/// Destinations of the site's requests.
pub(crate) struct SiteRoutes {
    pub(super) hosts: HostTable,
    pub(super) api: Arc<ActiveUpstream>,
    pub(super) web: Arc<ActiveUpstream>,
    /// Of the challenges of certificate authorities.
    pub(super) acme: Option<Arc<ActiveUpstream>>,
    /// Published port of HTTPS.
    pub(super) https_port: u16,
    /// Value of `Strict-Transport-Security`.
    hsts: Option<HeaderValue>,
    pub(super) pages: ErrorPages,
}

impl SiteRoutes {
    /// The routes of `settings`, which name a domain.
    pub(crate) fn new(settings: &SiteSettings, upstreams: &mut Upstreams) -> Self {
        Self {
            hosts: HostTable::new(settings),
            api: upstreams.of(&settings.api_url),
            web: upstreams.of(&settings.web_url),
            acme: settings.acme_url.as_ref().map(|acme| upstreams.of(acme)),
            https_port: settings.redirect_https_port,
            hsts: settings.hsts.0.clone(),
            pages: ErrorPages {
                folder: settings.error_pages.clone(),
            },
        }
    }

    /// The upstream of each host that has one.
    pub(crate) fn upstreams(&self) -> Vec<(String, &Arc<ActiveUpstream>)> {
        let hosts = self.hosts.0.iter().filter_map(|(name, destination)| {
            let upstream = match destination {
                Destination::Api => &self.api,
                Destination::Web => &self.web,
                Destination::Registry | Destination::Files => return None,
            };
            Some((name.clone(), upstream))
        });
        let acme = self.acme.iter().map(|acme| (ACME.to_owned(), acme));
        hosts.chain(acme).collect()
    }

    /// The hosts, and the destination of each.
    pub(crate) fn hosts(&self) -> &HostTable {
        &self.hosts
    }

    /// With the header that makes browsers stay with HTTPS.
    pub(super) fn secured(&self, mut response: Response) -> Response {
        if let Some(value) = &self.hsts {
            let name = header::STRICT_TRANSPORT_SECURITY;
            response.headers_mut().insert(name, value.clone());
        }
        response
    }
}
