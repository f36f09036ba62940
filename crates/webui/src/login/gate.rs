//! The gate of all requests: the API's get the token of their session, and people without a session come to the log-in.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use service::server::{ClientAddress, RequestSource};

use super::failure::LogInFailure;
use super::{LogIn, RequestOrigin, bearer, cookies, pages, routes};
use crate::files;

/// Time after which a page tries again while the provider does not answer. Units: seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");
/// Headers that proxies add.
const FORWARDED: [HeaderName; 3] = [
    header::FORWARDED,
    header::VIA,
    HeaderName::from_static("x-forwarded-for"),
];
/// Marks responses of the API: `1` with a session, for the page to show the links of the log-in, else `0`.
const SESSION_MARK: HeaderName = HeaderName::from_static("atoll-session");

/// Adds tokens to requests for the API, and leads people without a session to the log-in.
pub(crate) async fn gate(
    State(log_in): State<Arc<LogIn>>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    if path == "/api" || path.starts_with("/api/") {
        return log_in.forward_to_api(request, next).await;
    }
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    if !is_read || routes::is_own(path) || !files::is_page(path, request.headers()) {
        return next.run(request).await;
    }
    let current = match log_in.session(request.headers()).await {
        Ok(Some(current)) => current,
        Ok(None) => {
            let target = request.uri().path_and_query();
            let target = target.map_or("/", |target| target.as_str()).to_owned();
            if let Some(origin) = log_in.of_this_machine(&request)
                && let Some(logged_in) = log_in.log_in_here(&target, &origin).await
            {
                return logged_in;
            }
            return routes::to_log_in(&target);
        }
        Err(failure) => return pages::failure(&failure),
    };
    let mut response = next.run(request).await;
    log_in.renew(&current, &mut response);
    response
}

impl LogIn {
    /// The origin of a request by a browser of this machine, if such browsers are logged in by themselves.
    fn of_this_machine(&self, request: &Request) -> Option<RequestOrigin> {
        self.loopback_token_file.as_ref()?;
        let extensions = request.extensions();
        let ConnectInfo(peer) = *extensions.get::<ConnectInfo<SocketAddr>>()?;
        let client = *extensions.get::<ClientAddress>()?;
        is_of_this_machine(peer, request).then_some(RequestOrigin { peer, client })
    }

    /// Logs a browser of this machine in; none if the API refuses the token.
    async fn log_in_here(&self, target: &str, origin: &RequestOrigin) -> Option<Response> {
        let path = self.loopback_token_file.as_ref()?;
        let token = match tokio::fs::read_to_string(path).await {
            Ok(token) => token,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "LOOPBACK_LOG_IN_TOKEN_FILE unreadable");
                return None;
            }
        };
        match self.accept(token.trim(), target, origin).await {
            Ok(response) => Some(response),
            Err(failure) => {
                let reason = failure.text().reason;
                tracing::warn!(reason, "token of LOOPBACK_LOG_IN_TOKEN_FILE refused");
                None
            }
        }
    }

    async fn forward_to_api(&self, mut request: Request, next: Next) -> Response {
        let is_authorized = request.headers().contains_key(header::AUTHORIZATION);
        let current = if is_authorized {
            Ok(None)
        } else {
            self.session(request.headers()).await
        };
        let current = match current {
            Ok(current) => current,
            // Not 401, with which the page would leave for the log-in: the session is refreshed once the provider is back.
            Err(failure) => {
                let mut response = refused(&failure);
                response
                    .headers_mut()
                    .insert(SESSION_MARK, HeaderValue::from_static("1"));
                return response;
            }
        };
        // Browsers add cookies by themselves: the page has to show that it is of this server.
        let source = request.extensions().get::<RequestSource>();
        if current.is_some() && source.is_some_and(|source| *source != RequestSource::OwnPage) {
            return refused(&LogInFailure::ForeignSite);
        }
        cookies::strip(request.headers_mut());
        let bearer = current
            .as_ref()
            .and_then(|current| bearer(&current.session.token));
        if let Some(bearer) = bearer {
            request.headers_mut().insert(header::AUTHORIZATION, bearer);
        }
        let mut response = next.run(request).await;
        let mark = if current.is_some() { "1" } else { "0" };
        response
            .headers_mut()
            .insert(SESSION_MARK, HeaderValue::from_static(mark));
        if let Some(current) = &current {
            self.renew(current, &mut response);
        }
        response
    }
}

/// Whether a browser on this machine sent a request itself: to a loopback address and name, and through no proxy.
fn is_of_this_machine(peer: SocketAddr, request: &Request) -> bool {
    let host = service::server::requested_host(request).unwrap_or_default();
    let is_loopback = |ip: IpAddr| ip.to_canonical().is_loopback();
    let is_own_name = host == "localhost" || host.parse().is_ok_and(is_loopback);
    let is_forwarded = FORWARDED
        .iter()
        .any(|name| request.headers().contains_key(name));
    is_loopback(peer.ip()) && is_own_name && !is_forwarded
}

/// The refusal of a request for the API, in the shape of the API's own.
fn refused(failure: &LogInFailure) -> Response {
    let text = failure.text();
    let reason = format!("{} {}", text.reason, text.remedy);
    let body = if text.status.is_server_error() {
        serde_json::json!({ "code": text.status.as_str(), "reason": reason })
    } else {
        serde_json::json!({ "code": text.status.as_u16(), "message": reason })
    };
    let kind = [(header::CONTENT_TYPE, "application/json")];
    let mut response = (text.status, kind, body.to_string()).into_response();
    if text.status == StatusCode::SERVICE_UNAVAILABLE {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, RETRY_AFTER);
    }
    response
}
