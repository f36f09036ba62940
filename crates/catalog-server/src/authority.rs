//! Virtual hosts: chooses among catalogs on one port by the authority that the client dialled, and separates gRPC from
//! HTTP.

use std::convert::Infallible;

use axum::Router;
use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use tower::ServiceExt as _;

/// Prefix of gRPC content types.
const GRPC: &[u8] = b"application/grpc";

/// Routes by authority: `NAME.HOST:PORT` and `NAME:PORT` go to the catalog NAME, everything else to the first. `None`
/// without catalogs.
pub(crate) fn by_authority(mut catalogs: Vec<(String, Router)>) -> Option<Router> {
    if catalogs.len() < 2 {
        return catalogs.pop().map(|(_, router)| router);
    }
    Some(Router::new().fallback(move |request: Request| {
        let names: Vec<_> = catalogs.iter().map(|(name, _)| name.as_str()).collect();
        let router = catalogs[chosen(&names, &host(&request))].1.clone();
        respond(router, request)
    }))
}

/// Serves both on one port: requests other than gRPC calls go to `http`.
pub(crate) fn beside(http: Router, grpc: Router) -> Router {
    http.fallback(move |request: Request| {
        let kind = request.headers().get(header::CONTENT_TYPE);
        let is_call = kind.is_some_and(|kind| kind.as_bytes().starts_with(GRPC));
        let grpc = grpc.clone();
        async move {
            if is_call {
                respond(grpc, request).await
            } else {
                StatusCode::NOT_FOUND.into_response()
            }
        }
    })
}

async fn respond(router: Router, request: Request) -> Response {
    let answered: Result<Response, Infallible> = router.oneshot(request).await;
    answered.unwrap_or_else(|never| match never {})
}

fn host(request: &Request) -> String {
    let authority = request.uri().authority().map(Authority::host);
    let header = || request.headers().get(header::HOST)?.to_str().ok();
    let host = authority.or_else(header).unwrap_or_default();
    host.to_ascii_lowercase()
}

/// Index of the longest name that equals `host` or its first labels; 0 without one.
fn chosen(names: &[&str], host: &str) -> usize {
    let is_meant = |name: &str| {
        let rest = host.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', ':']))
    };
    let meant = names.iter().enumerate().filter(|(_, name)| is_meant(name));
    meant
        .max_by_key(|(_, name)| name.len())
        .map_or(0, |(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_matching_name_wins() {
        let names = ["redhat", "community", "community.v4"];
        for (host, expected) in [
            ("redhat", 0),
            ("community:50051", 1),
            ("community.ns.svc", 1),
            ("community.v4.ns.svc:50051", 2),
            ("communityx.ns", 0),
            ("10.0.0.1:50051", 0),
            ("", 0),
        ] {
            assert_eq!(chosen(&names, host), expected, "{host}");
        }
    }
}
