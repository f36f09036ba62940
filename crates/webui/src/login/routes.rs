//! The pages of the log-in: `/login`, `/login/callback`, `/logout` and `/token`.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, DefaultBodyLimit, Extension, RawQuery, State};
use axum::response::Response;
use axum::routing::get;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};
use service::server::{ClientAddress, RequestSource};
use url::form_urlencoded;

use super::failure::LogInFailure;
use super::provider::{self, FlowSecrets, Provider};
use super::seal::{SealPurpose, random_text};
use super::session::Session;
use super::{FORM_BYTES, LOG_IN_TIME, LogIn, PATH_BYTES, RequestOrigin, now_s, pages};

const LOG_IN: &str = "/login";
const CALLBACK: &str = "/login/callback";
const LOG_OUT: &str = "/logout";
const TOKEN: &str = "/token";

/// A log-in in progress, in a sealed cookie.
#[derive(Serialize, Deserialize)]
struct LogInFlow {
    state: String,
    nonce: String,
    verifier: String,
    return_to: String,
    /// Units: seconds since 1970.
    expires_s: i64,
}

/// The pages of a log-in.
pub(crate) fn routes(log_in: Arc<LogIn>) -> Router {
    Router::new()
        .route(LOG_IN, get(start).post(log_in_by_token))
        .route(CALLBACK, get(callback))
        .route(LOG_OUT, get(ask_log_out).post(log_out))
        .route(TOKEN, get(commands).post(reveal))
        // One more byte than a form may have, for a page of our own.
        .layer(DefaultBodyLimit::max(FORM_BYTES + 1))
        .with_state(log_in)
}

/// Whether a page of the log-in is at `path`.
pub(super) fn is_own(path: &str) -> bool {
    [LOG_IN, CALLBACK, LOG_OUT, TOKEN].contains(&path)
}

/// Leads to the log-in, and back to `target` afterwards.
pub(super) fn to_log_in(target: &str) -> Response {
    let target: String = form_urlencoded::byte_serialize(own_path(target).as_bytes()).collect();
    redirect(&format!("{LOG_IN}?return_to={target}"))
}

/// A path of this server to return to: no other host, no operation of the API, no page of the log-in itself.
fn own_path(target: &str) -> &str {
    let path = target.split(['?', '#']).next().unwrap_or_default();
    // Browsers drop control characters and read a backslash as a slash.
    let is_plain = target
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    let is_api = path == "/api" || path.starts_with("/api/");
    let is_page = path.starts_with('/') && !path.starts_with("//") && !is_api;
    let is_log_in = path == LOG_IN || path == CALLBACK || path == LOG_OUT;
    if is_plain && is_page && !is_log_in && target.len() <= PATH_BYTES {
        target
    } else {
        "/"
    }
}

async fn start(State(log_in): State<Arc<LogIn>>, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    let target = parameter(query.as_bytes(), "return_to").unwrap_or_default();
    let return_to = own_path(&target);
    let Some(provider) = &log_in.provider else {
        return match parameter(query.as_bytes(), "code") {
            Some(code) => pages::code_form(&code),
            None => pages::token_form(return_to),
        };
    };
    let flow = LogInFlow::new(return_to, now_s());
    let url = match provider.authorization(&flow.secrets()).await {
        Ok(url) => url,
        Err(failure) => return pages::failure(&failure),
    };
    let sealed = log_in.sealed(SealPurpose::LogIn, &flow);
    let mut response = redirect(url.as_str());
    let seconds = LOG_IN_TIME.as_secs().cast_signed();
    let cookies = log_in.cookies;
    cookies.set_log_in(response.headers_mut(), Some(&sealed), seconds);
    response
}

async fn callback(
    State(log_in): State<Arc<LogIn>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Extension(client): Extension<ClientAddress>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let Some(provider) = &log_in.provider else {
        return to_log_in("/");
    };
    let origin = RequestOrigin { peer, client };
    let query = query.unwrap_or_default();
    let finished = log_in.finish(provider, query.as_bytes(), &headers, &origin);
    let mut response = match finished.await {
        Ok(response) => response,
        Err(failure) => pages::failure(&failure),
    };
    // A log-in is used once, also if it fails. That of another state belongs to another tab.
    if response.status() != StatusCode::BAD_REQUEST {
        log_in.cookies.set_log_in(response.headers_mut(), None, 0);
    }
    response
}

async fn log_in_by_token(
    State(log_in): State<Arc<LogIn>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Extension(client): Extension<ClientAddress>,
    Extension(source): Extension<RequestSource>,
    form: Result<Bytes, axum::extract::rejection::BytesRejection>,
) -> Response {
    if log_in.provider.is_some() {
        return to_log_in("/");
    }
    if source != RequestSource::OwnPage {
        return pages::failure(&LogInFailure::ForeignSite);
    }
    let form = match form {
        Ok(form) if form.len() <= FORM_BYTES => form,
        _ => return pages::failure(&LogInFailure::FormTooLarge),
    };
    let target = parameter(&form, "return_to").unwrap_or_default();
    let origin = RequestOrigin { peer, client };
    let token = match parameter(&form, "code") {
        Some(code) => log_in.redeem_code(&code, &origin).await,
        None => Ok(parameter(&form, "token").unwrap_or_default()),
    };
    let done = match token {
        Ok(token) => {
            log_in
                .accept(token.trim(), own_path(&target), &origin)
                .await
        }
        Err(failure) => Err(failure),
    };
    done.unwrap_or_else(|failure| pages::failure(&failure))
}

async fn ask_log_out(State(log_in): State<Arc<LogIn>>, headers: HeaderMap) -> Response {
    match log_in.session(&headers).await {
        Ok(Some(current)) => {
            let mut response = pages::log_out(&current.session.name);
            log_in.renew(&current, &mut response);
            response
        }
        Ok(None) => pages::logged_out(None),
        // Its cookies are there, and can be deleted without the provider.
        Err(_) => pages::log_out(""),
    }
}

async fn log_out(
    State(log_in): State<Arc<LogIn>>,
    Extension(source): Extension<RequestSource>,
) -> Response {
    if source != RequestSource::OwnPage {
        return pages::failure(&LogInFailure::ForeignSite);
    }
    let end_session = match &log_in.provider {
        Some(provider) => provider.end_session().await,
        None => None,
    };
    let mut response = pages::logged_out(end_session.as_ref().map(url::Url::as_str));
    log_in.cookies.set_session(response.headers_mut(), "", 0);
    response
}

async fn commands(State(log_in): State<Arc<LogIn>>, headers: HeaderMap) -> Response {
    log_in.token_page(&headers, false).await
}

async fn reveal(
    State(log_in): State<Arc<LogIn>>,
    Extension(source): Extension<RequestSource>,
    headers: HeaderMap,
) -> Response {
    if source != RequestSource::OwnPage {
        return pages::failure(&LogInFailure::ForeignSite);
    }
    log_in.token_page(&headers, true).await
}

impl LogIn {
    /// Ends a log-in at the provider.
    async fn finish(
        &self,
        provider: &Arc<Provider>,
        query: &[u8],
        headers: &HeaderMap,
        origin: &RequestOrigin,
    ) -> Result<Response, LogInFailure> {
        let sealed = self.cookies.log_in(headers);
        let flow = sealed.and_then(|text| self.opened::<LogInFlow>(SealPurpose::LogIn, &text));
        let now_s = now_s();
        let state = parameter(query, "state");
        let is_ours = |flow: &LogInFlow| flow.has_state(state.as_deref(), now_s);
        let flow = flow.filter(is_ours).ok_or(LogInFailure::UnknownState)?;
        let issuer = parameter(query, "iss");
        provider.check_response(issuer.as_deref()).await?;
        if let Some(error) = parameter(query, "error") {
            return Err(LogInFailure::Denied(LogInFailure::code(&error)));
        }
        let code = parameter(query, "code").ok_or(LogInFailure::UnknownState)?;
        let permit = self.exchanges.acquire_for(origin.client);
        let _permit = permit.map_err(|_| LogInFailure::Busy)?;
        let (tokens, name) = provider.exchange(&code, &flow.secrets(), now_s).await?;
        if provider::claims(&tokens.access_token).is_none() {
            return Err(LogInFailure::OpaqueToken);
        }
        // Otherwise the page would send people back to the provider forever.
        self.check_token(&tokens.access_token, origin).await?;
        let ends_s = now_s.saturating_add(self.session_lifetime_s);
        self.begin(
            &Session::issued(tokens, name, now_s, ends_s),
            &flow.return_to,
        )
    }

    /// Begins the session of a token that a person brought, or that the settings have for browsers of this machine.
    pub(super) async fn accept(
        &self,
        token: &str,
        return_to: &str,
        origin: &RequestOrigin,
    ) -> Result<Response, LogInFailure> {
        self.check_token(token, origin).await?;
        let claims = provider::claims(token).unwrap_or_default();
        let ends_s = now_s().saturating_add(self.session_lifetime_s);
        let expires_s = claims["exp"].as_f64().map_or(ends_s, provider::seconds);
        let session = Session {
            token: token.to_owned(),
            refresh_token: None,
            expires_s,
            ends_s: ends_s.min(expires_s),
            name: provider::user_name(&claims),
        };
        self.begin(&session, return_to)
    }

    fn begin(&self, session: &Session, return_to: &str) -> Result<Response, LogInFailure> {
        let mut response = redirect(return_to);
        self.store(session, response.headers_mut())?;
        tracing::info!(user = session.name, "logged in");
        Ok(response)
    }

    async fn token_page(&self, headers: &HeaderMap, is_revealed: bool) -> Response {
        let current = match self.session(headers).await {
            Ok(Some(current)) => current,
            Ok(None) => return to_log_in(TOKEN),
            Err(failure) => return pages::failure(&failure),
        };
        let host = headers
            .get(header::HOST)
            .and_then(|host| host.to_str().ok());
        let by_host = || format!("http://{}", host.unwrap_or("HOST:8080"));
        let base_url = self.base_url.clone().unwrap_or_else(by_host);
        let session = &current.session;
        let token = is_revealed.then_some(session.token.as_str());
        let mut response = pages::token(&session.name, &base_url, token);
        self.renew(&current, &mut response);
        response
    }
}

impl LogInFlow {
    fn new(return_to: &str, now_s: i64) -> Self {
        Self {
            state: random_text(),
            nonce: random_text(),
            verifier: random_text(),
            return_to: return_to.to_owned(),
            expires_s: now_s.saturating_add_unsigned(LOG_IN_TIME.as_secs()),
        }
    }

    fn has_state(&self, state: Option<&str>, now_s: i64) -> bool {
        now_s < self.expires_s && state == Some(&self.state)
    }

    fn secrets(&self) -> FlowSecrets<'_> {
        FlowSecrets {
            state: &self.state,
            nonce: &self.nonce,
            verifier: &self.verifier,
        }
    }
}

fn parameter(form: &[u8], name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(form);
    pairs.find_map(|(found, value)| (found == name).then(|| value.into_owned()))
}

/// 303: the browser continues with GET.
fn redirect(target: &str) -> Response {
    let mut response = Response::new(Body::empty());
    match HeaderValue::from_str(target) {
        Ok(target) => {
            *response.status_mut() = StatusCode::SEE_OTHER;
            response.headers_mut().insert(header::LOCATION, target);
        }
        Err(_) => *response.status_mut() = StatusCode::BAD_REQUEST,
    }
    pages::guard(&mut response);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    // limit: time for a log-in
    #[test]
    fn a_log_in_expires() {
        let flow = LogInFlow::new("/", 1000);
        let state = Some(flow.state.as_str());
        assert!(flow.has_state(state, 1599));
        assert!(!flow.has_state(state, 1600));
        assert!(!flow.has_state(Some("x"), 1599));
        assert!(!flow.has_state(None, 1599));
    }

    // limit: path after a log-in
    #[test]
    fn only_pages_of_this_server_are_returned_to() {
        let longest = format!("/{}", "x".repeat(PATH_BYTES - 1));
        for path in [
            "/",
            "/clusters/x?a=b",
            "/token",
            "/infra-envs#x",
            "/apiary",
            &longest,
        ] {
            assert_eq!(own_path(path), path);
        }
        let longer = format!("{longest}x");
        for path in [
            "",
            "clusters",
            "//evil.example/",
            "/\\evil.example/",
            "\\\\evil.example",
            "https://evil.example/",
            "javascript:alert(1)",
            "/\t/evil.example",
            "/\r\nx: y",
            "/ä",
            "/api/assisted-install/v2/clusters",
            "/api",
            "/login?return_to=/",
            "/login/callback?code=x",
            "/logout",
            &longer,
        ] {
            assert_eq!(own_path(path), "/", "{path}");
        }
    }
}
