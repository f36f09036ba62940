//! The port of HTTP: everything is redirected to HTTPS, except requests of well-known paths.

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, Method, StatusCode, header};
use service::server::{AdmittedRequest, requested_host};

use super::router::SitePorts;
use super::site_routes::ACME;

/// Prefix of paths that are not redirected, in any case. Source: the specification.
const WELL_KNOWN: &str = "/.well-known/";
/// Port of `https:` URLs that name none.
const HTTPS_PORT: u16 = 443;

/// Redirects a request, or serves a well-known path.
pub(crate) async fn redirect(
    SitePorts { routes, files }: SitePorts,
    admitted: AdmittedRequest,
) -> Response {
    let routes = routes.current();
    let Some(site) = &routes.site else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let path = admitted.request.uri().path();
    if has_prefix(path, WELL_KNOWN) {
        // Boxed, so that the future of a redirection is small: it is moved several times.
        return match &site.acme {
            Some(acme) if has_prefix(path, ACME) => Box::pin(acme.forward(admitted)).await,
            _ => Box::pin(files.answer(admitted)).await,
        };
    }
    match location(&admitted.request, site.https_port) {
        Ok(location) => {
            let headers = [
                (header::LOCATION, location),
                (header::CONTENT_LENGTH, HeaderValue::from_static("0")),
            ];
            (StatusCode::MOVED_PERMANENTLY, headers, Body::empty()).into_response()
        }
        Err(text) => (StatusCode::BAD_REQUEST, text).into_response(),
    }
}

/// The raw path counts, without decoding.
fn has_prefix(path: &str, prefix: &str) -> bool {
    let start = path.as_bytes().get(..prefix.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
}

/// The same URL by HTTPS.
///
/// Errors: a request without a host, or for a connection.
fn location(request: &Request, port: u16) -> Result<HeaderValue, &'static str> {
    if request.method() == Method::CONNECT {
        return Err("CONNECT is not supported");
    }
    let host = requested_host(request).ok_or("the request names no host to redirect it to")?;
    let path = request.uri().path_and_query();
    let path = path.map_or("/", |path| path.as_str());
    // `OPTIONS *` has no path.
    let path = if path.starts_with('/') { path } else { "/" };
    let host = if host.contains(':') {
        format!("[{host}]")
    } else {
        host
    };
    let location = match port {
        HTTPS_PORT => format!("https://{host}{path}"),
        port => format!("https://{host}:{port}{path}"),
    };
    HeaderValue::try_from(location).map_err(|_| "the request names no valid host")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(target: &str, host: &str, port: u16) -> Result<String, &'static str> {
        let request = Request::get(target).header(header::HOST, host);
        let location = location(&request.body(Body::empty()).unwrap(), port)?;
        Ok(location.to_str().unwrap().to_owned())
    }

    #[test]
    fn the_location_has_the_host_without_its_port_and_the_path_as_it_came() {
        for (target, host, port, expected) in [
            ("/", "API.d:8080", 443, "https://api.d/"),
            ("/a//b/%2F?x=%zz&y", "d", 443, "https://d/a//b/%2F?x=%zz&y"),
            ("/a", "d", 8443, "https://d:8443/a"),
            ("/", "[fd00::1]:80", 443, "https://[fd00::1]/"),
            ("http://a.d/x", "b.d", 443, "https://a.d/x"),
            ("*", "d", 443, "https://d/"),
        ] {
            assert_eq!(to(target, host, port).as_deref(), Ok(expected), "{target}");
        }
        assert!(to("/", "a b", 443).is_err());
    }

    #[test]
    fn only_the_raw_prefix_is_well_known() {
        for (path, is_known) in [
            ("/.well-known/", true),
            ("/.WELL-Known/x", true),
            ("/.well-known", false),
            ("/%2ewell-known/x", false),
            ("/x/.well-known/", false),
        ] {
            assert_eq!(has_prefix(path, WELL_KNOWN), is_known, "{path}");
        }
    }
}
