//! The port of HTTPS: each request goes where its host leads, also on one connection.

use std::sync::Arc;

use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use service::forward::GatewayError;
use service::server::{AdmittedRequest, ClientAddress, requested_host};
use service::tls::HostAdmission;

use super::error_page::ErrorPages;
use super::redirect::ACME;
use super::{Destination, HostTable, SiteSettings};
use crate::files::{ReceivedByHttps, StaticFiles};
use crate::routes::RouteTable;
use crate::upstreams::{ActiveUpstream, Upstreams};

const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
/// Headers of proxies in front; other clients may not set them.
const OF_PROXIES: [HeaderName; 4] = [
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-port"),
    HeaderName::from_static("x-real-ip"),
    header::FORWARDED,
];
/// Reasons of misdirected requests.
const OF_REGISTRY: &str =
    "the registry has connections of its own: connect with its name in the TLS handshake (SNI)\n";
const EVADES_DEMANDS: &str = "the certificate list has demands on connections for this host: connect with its name in the TLS handshake (SNI)\n";
const HTTPS: HeaderValue = HeaderValue::from_static("https");

/// Destinations of the site's requests.
pub(crate) struct SiteRoutes {
    hosts: HostTable,
    api: Arc<ActiveUpstream>,
    web: Arc<ActiveUpstream>,
    /// Of the challenges of certificate authorities.
    pub(super) acme: Option<Arc<ActiveUpstream>>,
    /// Published port of HTTPS.
    pub(super) https_port: u16,
    /// Value of `Strict-Transport-Security`.
    hsts: Option<HeaderValue>,
    pages: ErrorPages,
}

/// Routes of the site's ports, and the files of all other hosts.
#[derive(Clone)]
pub(crate) struct SitePorts {
    pub(crate) routes: RouteTable,
    pub(crate) files: Arc<StaticFiles>,
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
}

/// Serves a request by HTTPS.
pub(crate) async fn serve(
    SitePorts { routes, files }: SitePorts,
    mut admitted: AdmittedRequest,
) -> Response {
    let routes = routes.current();
    let Some(site) = &routes.site else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let request = &mut admitted.request;
    let host = requested_host(request);
    let connection = request.extensions().get::<HostAdmission>();
    if connection.is_some_and(|it| !it.admits(host.as_deref())) {
        return misdirected(EVADES_DEMANDS);
    }
    let upstream = match site.hosts.destination(host.as_deref()) {
        Destination::Api => &site.api,
        Destination::Web => &site.web,
        Destination::Registry => return misdirected(OF_REGISTRY),
        Destination::Files => {
            request.extensions_mut().insert(ReceivedByHttps);
            return site.secured(files.answer(admitted).await);
        }
    };
    let accept = request.headers().get(header::ACCEPT).cloned();
    mark(request.headers_mut(), admitted.client);
    let response = upstream.forward(admitted).await;
    match response.extensions().get::<GatewayError>() {
        Some(error) => {
            let message = error.message.clone();
            let page = site.pages.page(accept.as_ref(), &message, response).await;
            site.secured(page)
        }
        None => site.secured(response),
    }
}

/// Marks a request as received by HTTPS.
fn mark(headers: &mut HeaderMap, client: ClientAddress) {
    headers.insert(X_FORWARDED_PROTO, HTTPS);
    if !client.is_forwarded {
        for name in &OF_PROXIES {
            headers.remove(name);
        }
    }
}

impl SiteRoutes {
    fn secured(&self, mut response: Response) -> Response {
        if let Some(value) = &self.hsts {
            let name = header::STRICT_TRANSPORT_SECURITY;
            response.headers_mut().insert(name, value.clone());
        }
        response
    }
}

/// A browser that has a connection for another name of the certificate may use it for this host, too; this answer makes
/// it open one of its own. Source: RFC 9110, section 15.5.20.
fn misdirected(text: &'static str) -> Response {
    (StatusCode::MISDIRECTED_REQUEST, text).into_response()
}
