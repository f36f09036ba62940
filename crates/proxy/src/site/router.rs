//! The port of HTTPS: each request goes where its host leads, also on one connection.

use std::sync::Arc;

use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use service::forward::GatewayError;
use service::server::{AdmittedRequest, ClientAddress, requested_host};
use service::tls::HostAdmission;

use super::host_table::Destination;
use crate::files::{ReceivedByHttps, StaticFiles};
use crate::routes::RouteTable;

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

/// Routes of the site's ports, and the files of all other hosts.
#[derive(Clone)]
pub(crate) struct SitePorts {
    pub(crate) routes: RouteTable,
    pub(crate) files: Arc<StaticFiles>,
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

/// A browser that has a connection for another name of the certificate may use it for this host, too; this answer makes
/// it open one of its own. Source: RFC 9110, section 15.5.20.
fn misdirected(text: &'static str) -> Response {
    (StatusCode::MISDIRECTED_REQUEST, text).into_response()
}
