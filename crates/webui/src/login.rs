//! Log-in of people: sessions, and the bearer tokens of the requests that the UI sends to the installer API.
//!
//! A session is its tokens, sealed (AEAD) into HttpOnly cookies by a key that all replicas share: any replica serves any
//! request, a restart ends no session, and there is no store to bound, replicate or back up. Scripts and the wire see
//! random characters. The price: a stolen cookie works until its session ends or the provider ends the tokens, as a
//! stolen session id would, but a log-out here cannot recall it; SESSION_LIFETIME bounds that.
//!
//! The flow is written with the packages of this server: the crate `oauth2` brings in more than it may compile, and the
//! exchange of a code is one form. Invariant: no log, no error text and no URL of ours has a token, and the provider's
//! codes are in the URL of its redirect alone.

mod cookies;
mod failure;
mod gate;
mod pages;
mod provider;
mod provider_client;
mod routes;
mod seal;
mod session;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{ConnectInfo, Extension, Request, State};
use axum::response::Response;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt as _, Collected, Limited};
use net::resolve::Resolver;
use secrecy::ExposeSecret as _;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use service::Error;
use service::forward::{self, Forward};
use service::limits::{Bound, Limit, Share};
use service::server::{ClientAddress, ClientQuota};

use crate::connector::{self, Connector};
use crate::settings::{AuthType, Settings};
use cookies::{Cookies, SESSION_BYTES};
use failure::LogInFailure;
use provider::{ClientRegistration, Provider};
use provider_client::{ProviderClient, REQUESTS};
use seal::{SealPurpose, SealingKey};
use session::{REFRESHES, Refreshes, Session};

pub(crate) use gate::gate;
pub(crate) use routes::routes;

/// Log-ins of one client that end at the provider at a time; a session needs one more request in some minutes.
const EXCHANGES_OF_CLIENT: usize = 8;
/// Time for a log-in at the provider.
const LOG_IN_TIME: Duration = Duration::from_mins(10);
/// Largest form. Units: bytes. A token has at most 8 KiB.
const FORM_BYTES: usize = 16 << 10;
/// Longest response with the API's reason of a refusal. Units: bytes.
const REFUSAL_BYTES: usize = 4 << 10;
/// Longest path that a log-in returns to. Units: bytes.
const PATH_BYTES: usize = 1024;
/// Operation that any user may call; it checks tokens.
const CHECK_PATH: &str = "/api/assisted-install/v2/component-versions";
/// Path of the API server that exchanges codes of log-in links. Not below `/api`, which this server forwards.
const CODE_PATH: &str = "/log-in-codes";

/// The log-in of this server.
pub(crate) struct LogIn {
    key: SealingKey,
    cookies: Cookies,
    /// None: people bring tokens.
    provider: Option<Arc<Provider>>,
    refreshes: Refreshes,
    session_lifetime_s: i64,
    /// Origin of this server for browsers; none: the host that they name.
    base_url: Option<String>,
    /// File with the token of browsers on this machine, which bring none.
    loopback_token_file: Option<PathBuf>,
    api: Forward,
    /// Log-ins that end at the provider.
    exchanges: ClientQuota,
}

/// Origin of a request, for the forwarded check of a token.
struct RequestOrigin {
    peer: SocketAddr,
    client: ClientAddress,
}

/// A session, and whether its cookies are to be renewed.
struct CurrentSession {
    session: Arc<Session>,
    is_renewed: bool,
}

/// Log-ins that end at the provider, by clients.
fn exchanges() -> ClientQuota {
    ClientQuota::new(0, EXCHANGES_OF_CLIENT)
}

/// Limits of the log-in.
pub(crate) fn limits() -> Vec<Limit> {
    let session = Bound::Bytes(SESSION_BYTES as u64);
    let requests = Bound::Count(REQUESTS as u64, "requests");
    let refreshes = Bound::Count(REFRESHES, "refreshes");
    vec![
        Limit::fixed(
            "form of a log-in",
            Bound::Bytes(FORM_BYTES as u64),
            "request",
            "413",
        ),
        Limit::fixed(
            "time for a log-in",
            Bound::Time(LOG_IN_TIME),
            "log-in",
            "400",
        ),
        Limit::fixed(
            "path after a log-in",
            Bound::Bytes(PATH_BYTES as u64),
            "log-in",
            "the first page",
        ),
        Limit::fixed("sealed tokens of a session", session, "session", "502"),
        Limit::fixed(
            "requests to the OpenID provider in flight",
            requests,
            "server",
            "503",
        )
        .shared(Share::of(
            "client address",
            Bound::Count(EXCHANGES_OF_CLIENT as u64, "log-ins"),
            "503",
        )),
        Limit::fixed(
            "remembered refreshes of sessions",
            refreshes,
            "server",
            "the refresh token is used again",
        )
        .unshared("derived, evicted"),
    ]
}

impl LogIn {
    /// The log-in of these settings; none while callers are not authenticated.
    ///
    /// Errors: an unreadable file of certificates.
    pub(crate) fn open(
        settings: &Settings,
        names: &Resolver,
        api: Forward,
    ) -> Result<Option<Arc<Self>>, Error> {
        if settings.auth_type == AuthType::None {
            return Ok(None);
        }
        let secret = settings.session_key.expose_secret();
        let key = if secret.is_empty() {
            tracing::info!("sessions end with this process: SESSION_KEY is empty");
            SealingKey::random()
        } else {
            SealingKey::of_secret(secret)
        };
        let base_url = settings.base_url();
        let is_secure = base_url
            .as_deref()
            .is_some_and(|url| url.starts_with("https:"));
        let lifetime_s = i64::try_from(settings.session_lifetime.as_secs());
        Ok(Some(Arc::new(Self {
            key,
            cookies: Cookies { is_secure },
            provider: provider(settings, names)?.map(Arc::new),
            refreshes: Refreshes::default(),
            session_lifetime_s: lifetime_s.unwrap_or(i64::MAX / 2),
            base_url,
            loopback_token_file: settings
                .loopback_log_in_token_file
                .clone()
                .filter(|_| !settings.has_provider()),
            api,
            exchanges: exchanges(),
        })))
    }

    /// The session of a request, refreshed if needed; none if it has none, or it has ended.
    ///
    /// Errors: ProviderAway, Busy – it cannot be refreshed now.
    async fn session(&self, headers: &HeaderMap) -> Result<Option<CurrentSession>, LogInFailure> {
        let now_s = now_s();
        let sealed = self.cookies.session(headers);
        let session = sealed.and_then(|text| self.opened(SealPurpose::Session, &text));
        let Some(session) = session.filter(|session: &Session| now_s < session.ends_s) else {
            return Ok(None);
        };
        let refreshed = match &self.provider {
            Some(provider) => self.refreshes.refreshed(&session, provider, now_s).await,
            None => Ok(None),
        };
        let current = match refreshed {
            Ok(Some(session)) => CurrentSession {
                session,
                is_renewed: true,
            },
            Ok(None) => CurrentSession {
                session: Arc::new(session),
                is_renewed: false,
            },
            Err(failure @ (LogInFailure::ProviderAway(_) | LogInFailure::Busy)) => {
                return Err(failure);
            }
            Err(failure) => {
                tracing::info!(reason = failure.text().reason, "session ended");
                return Ok(None);
            }
        };
        Ok(current.session.is_usable(now_s).then_some(current))
    }

    /// Stores a session in the cookies of a response.
    ///
    /// Errors: TooLarge.
    fn store(&self, session: &Session, response: &mut HeaderMap) -> Result<(), LogInFailure> {
        let sealed = self.sealed(SealPurpose::Session, session);
        if sealed.len() > SESSION_BYTES {
            tracing::warn!(
                bytes = sealed.len(),
                "tokens of a session are too long for cookies"
            );
            return Err(LogInFailure::TooLarge);
        }
        let seconds = session.ends_s.saturating_sub(now_s());
        self.cookies.set_session(response, &sealed, seconds);
        Ok(())
    }

    fn renew(&self, current: &CurrentSession, response: &mut Response) {
        if current.is_renewed {
            // Too long ones stay as they are: the old refresh token is tried again.
            let _ = self.store(&current.session, response.headers_mut());
        }
    }

    fn sealed<T: Serialize>(&self, purpose: SealPurpose, value: &T) -> String {
        let plain = serde_json::to_vec(value).expect("texts and numbers have a JSON form");
        self.key.seal(purpose, &plain)
    }

    fn opened<T: DeserializeOwned>(&self, purpose: SealPurpose, sealed: &str) -> Option<T> {
        serde_json::from_slice(&self.key.open(purpose, sealed)?).ok()
    }

    /// Checks a token by a request to the API.
    ///
    /// Errors: TokenRefused; ApiUnavailable.
    async fn check_token(&self, token: &str, origin: &RequestOrigin) -> Result<(), LogInFailure> {
        let malformed =
            || LogInFailure::TokenRefused("it has characters that no token has".to_owned());
        let bearer = bearer(token).ok_or_else(malformed)?;
        let request = Request::builder()
            .uri(CHECK_PATH)
            .header(header::HOST, self.api.upstream().authority())
            .header(header::AUTHORIZATION, bearer)
            .body(Body::empty());
        let request = request.map_err(|_| malformed())?;
        let (state, client) = (State(self.api.clone()), Extension(origin.client));
        let response = forward::forward(state, ConnectInfo(origin.peer), client, request).await;
        match response.status() {
            status if status.is_success() => Ok(()),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Err(LogInFailure::TokenRefused(refusal(response).await))
            }
            status => Err(LogInFailure::ApiUnavailable(status)),
        }
    }

    /// Exchanges the code of a log-in link for a token, at the API.
    ///
    /// Errors: TokenRefused; ApiUnavailable.
    async fn redeem_code(
        &self,
        code: &str,
        origin: &RequestOrigin,
    ) -> Result<String, LogInFailure> {
        #[derive(Deserialize)]
        struct IssuedToken {
            token: String,
        }
        let body = serde_json::json!({ "code": code }).to_string();
        let request = Request::builder()
            .method(Method::POST)
            .uri(CODE_PATH)
            .header(header::HOST, self.api.upstream().authority())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::CONTENT_LENGTH, body.len())
            .body(Body::from(body));
        let unavailable = LogInFailure::ApiUnavailable;
        let request = request.map_err(|_| unavailable(StatusCode::INTERNAL_SERVER_ERROR))?;
        let (state, client) = (State(self.api.clone()), Extension(origin.client));
        let response = forward::forward(state, ConnectInfo(origin.peer), client, request).await;
        match response.status() {
            StatusCode::OK => {}
            status if status.is_client_error() => {
                return Err(LogInFailure::TokenRefused(refusal(response).await));
            }
            status => return Err(unavailable(status)),
        }
        let body = Limited::new(response.into_body(), FORM_BYTES)
            .collect()
            .await;
        let body = body.map(Collected::to_bytes).unwrap_or_default();
        let issued: Result<IssuedToken, _> = serde_json::from_slice(&body);
        issued
            .map(|issued| issued.token)
            .map_err(|_| unavailable(StatusCode::BAD_GATEWAY))
    }
}

fn provider(settings: &Settings, names: &Resolver) -> Result<Option<Provider>, Error> {
    if !settings.has_provider() {
        return Ok(None);
    }
    let wrong = |reason: String| Error::new("reading OIDC_CA_FILE", reason);
    let authorities = settings
        .oidc_ca_file
        .as_ref()
        .map(std::fs::read)
        .transpose();
    let authorities = authorities.map_err(|error| wrong(error.to_string()))?;
    let tls = net::trust::client_config(authorities.as_deref(), false);
    let tls = tls.map_err(|error| wrong(error.to_string()))?;
    let registration = ClientRegistration {
        issuer: settings.oidc_issuer.clone(),
        id: settings.oidc_client_id.clone(),
        secret: settings.oidc_client_secret.clone(),
        scopes: settings.oidc_scopes.clone(),
        base_url: settings.base_url().unwrap_or_default(),
    };
    let client = ProviderClient::new(Connector::new(connector::http1(tls), names.clone()));
    Ok(Some(Provider::new(registration, client)))
}

/// The reason of a refusal by the API, which has no part of a token.
async fn refusal(response: Response) -> String {
    #[derive(Deserialize)]
    struct Refusal {
        message: String,
    }
    let body = Limited::new(response.into_body(), REFUSAL_BYTES).collect();
    let body = body.await.map(Collected::to_bytes).unwrap_or_default();
    match serde_json::from_slice(&body) {
        Ok(Refusal { message }) => message,
        Err(_) => "without a reason".to_owned(),
    }
}

fn bearer(token: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn now_s() -> i64 {
    service::clock::now().timestamp()
}

#[cfg(test)]
mod tests {
    use super::*;

    // share: requests to the OpenID provider in flight
    #[test]
    fn the_log_ins_of_a_client_leave_requests_to_others() {
        let client = |last| ClientAddress {
            ip: [192, 0, 2, last].into(),
            is_forwarded: false,
        };
        let exchanges = exchanges();
        let own: Vec<_> = (0..EXCHANGES_OF_CLIENT)
            .map(|_| exchanges.acquire_for(client(1)).unwrap())
            .collect();
        assert!(exchanges.acquire_for(client(1)).is_err());
        assert!(exchanges.acquire_for(client(2)).is_ok());
        drop(own);
        assert!(exchanges.acquire_for(client(1)).is_ok());
    }
}
