//! Authentication: tokens and logins are cached for each repository and action.

use std::sync::PoisonError;

use model::Error;
use net::redirect;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Response, StatusCode, Url};
use secrecy::ExposeSecret as _;
use serde::Deserialize;

use super::addresses::Scope;
use super::body::collect;
use super::challenge::{self, Challenge};
use super::{Client, error, origin};
use crate::credentials::{FoundSecret, RegistrySecret};

/// Name of this client for token services.
const CLIENT_ID: &str = "atoll";
/// Limit of cached tokens.
const ACCESS_LIMIT: usize = 4096;
/// Units: bytes. Largest token response; with scopes for many repositories, a token takes some thousands.
const TOKEN_LIMIT_BYTES: usize = 64 << 10;

/// A token response: either name, or both with one value. Source: distribution, token specification.
#[derive(Deserialize)]
struct TokenResponse {
    token: Option<String>,
    access_token: Option<String>,
}

impl TokenResponse {
    fn token(self) -> Option<String> {
        let token = self.token.filter(|it| !it.is_empty());
        token.or(self.access_token).filter(|it| !it.is_empty())
    }
}

impl Client {
    pub(super) fn access(&self, scope: &Scope) -> Option<HeaderValue> {
        let access = self.0.access.lock().unwrap_or_else(PoisonError::into_inner);
        access.get(scope).cloned()
    }

    /// Removes a cached header that the registry refuses.
    pub(super) fn forget_access(&self, scope: &Scope) {
        let mut access = self.0.access.lock().unwrap_or_else(PoisonError::into_inner);
        access.remove(scope);
    }

    /// Answers the challenge of a 401 response and caches the header.
    pub(super) async fn log_in(
        &self,
        scope: &Scope,
        demand: &Response,
    ) -> Result<HeaderValue, Error> {
        let headers = demand.headers().get_all(reqwest::header::WWW_AUTHENTICATE);
        let challenge = challenge::parse(headers.iter().filter_map(|value| value.to_str().ok()))
            .ok_or_else(|| {
                let place = scope.place();
                let reason = format!("{place} requires an unsupported authentication scheme");
                Error::Unauthenticated { reason }
            })?;
        let found = self.secret(scope).await;
        let token = self.0.credentials.token();
        let text = match (challenge, &found.secret) {
            (_, None) if token.is_some() => {
                let token = token.map_or("", |it| it.expose_secret());
                format!("Bearer {token}")
            }
            (Challenge::Basic, Some(RegistrySecret::Login(login))) => login.basic(),
            (Challenge::Basic, Some(RegistrySecret::IdentityToken(_))) => {
                let reason = format!(
                    "{} takes passwords, and the login for it is an identity token: log in with a password",
                    scope.place()
                );
                return Err(Error::Unauthenticated { reason });
            }
            (Challenge::Basic, None) => {
                let (place, remarks) = (scope.place(), found.remarks());
                let reason = format!(
                    "{place} requires authentication, and the pull secret has none for it{remarks}"
                );
                return Err(Error::Unauthenticated { reason });
            }
            (
                Challenge::Bearer {
                    realm,
                    service,
                    scope: asked,
                },
                secret,
            ) => {
                let scope_text = asked.unwrap_or_else(|| scope.text());
                if secret.is_some() && !self.is_insecure(&scope.registry) {
                    by_tls(scope, demand.url(), &realm)?;
                }
                format!(
                    "Bearer {}",
                    self.token(scope, &realm, service, &scope_text, &found)
                        .await?
                )
            }
        };
        let mut access = HeaderValue::from_str(&text).map_err(|_| {
            error::protocol_error(scope.place(), "its token is no valid header value")
        })?;
        access.set_sensitive(true);
        let mut known = self.0.access.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= ACCESS_LIMIT {
            known.clear();
        }
        known.insert(scope.clone(), access.clone());
        Ok(access)
    }

    /// The secret for a scope.
    pub(super) async fn secret(&self, scope: &Scope) -> FoundSecret {
        let credentials = &self.0.credentials;
        credentials
            .find(&scope.registry, scope.repository.as_ref())
            .await
    }

    /// A token of the registry's token service. Source: distribution, token specification; an identity token is exchanged by
    /// OAuth 2.
    async fn token(
        &self,
        scope: &Scope,
        realm: &str,
        service: Option<String>,
        asked: &str,
        found: &FoundSecret,
    ) -> Result<String, Error> {
        let service = service.map(|service| ("service", service));
        let request = if let Some(RegistrySecret::IdentityToken(token)) = &found.secret {
            let fields = [
                ("grant_type", "refresh_token"),
                ("refresh_token", token.expose_secret()),
                ("client_id", CLIENT_ID),
                ("scope", asked),
            ];
            let fields = fields
                .into_iter()
                .chain(service.as_ref().map(|(name, it)| (*name, it.as_str())));
            let form = url::form_urlencoded::Serializer::new(String::new())
                .extend_pairs(fields)
                .finish();
            let form_type = "application/x-www-form-urlencoded";
            self.0
                .http
                .post(realm)
                .header(CONTENT_TYPE, form_type)
                .body(form)
        } else {
            let request = self.0.http.get(realm).query(&[("scope", asked)]);
            let request = request.query(&service.into_iter().collect::<Vec<_>>());
            match &found.secret {
                Some(RegistrySecret::Login(login)) => request
                    .query(&[("account", &login.user)])
                    .header(AUTHORIZATION, login.basic()),
                _ => request,
            }
        };
        let place = scope.place();
        let answer = match request.build() {
            Ok(request) => redirect::send(&self.0.http, request).await,
            Err(failure) => Err(failure),
        };
        let redirect::RedirectedResponse {
            response,
            is_foreign,
        } = answer.map_err(|e| self.unreachable(&place, e))?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED if is_foreign => return Err(elsewhere(scope, &response)),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(denied(scope, found)),
            _ => return Err(error::refused(&scope.registry, response, "token", asked).await),
        }
        let bytes = collect(&place, response, TOKEN_LIMIT_BYTES).await?;
        // Without the parser's message, which could quote parts of a secret.
        let granted = serde_json::from_slice::<TokenResponse>(&bytes).ok();
        let token = granted.and_then(TokenResponse::token);
        token.ok_or_else(|| {
            error::protocol_error(&place, "its token server answers without a token")
        })
    }
}

/// The registry refuses the login.
pub(super) fn denied(scope: &Scope, found: &FoundSecret) -> Error {
    let who = match &found.secret {
        Some(RegistrySecret::Login(login)) => format!("user {}", login.user),
        Some(RegistrySecret::IdentityToken(_)) => "the identity token".to_owned(),
        None => "anonymous users".to_owned(),
    };
    let (place, remarks) = (scope.place(), found.remarks());
    Error::Unauthenticated {
        reason: format!("{place} refuses {who}; check its entry in the pull secret{remarks}"),
    }
}

/// Another server demands a login after a redirect of the registry. It is not trusted, and gets none.
pub(super) fn elsewhere(scope: &Scope, response: &Response) -> Error {
    let place = scope.place();
    let origin = response.url().origin().ascii_serialization();
    Error::Unauthenticated {
        reason: format!(
            "{place} redirects to {origin}, which requires authentication; logins are sent only to their own registry"
        ),
    }
}

/// Refuses to send the login of a TLS registry in clear.
fn by_tls(scope: &Scope, asked: &Url, realm: &str) -> Result<(), Error> {
    match realm.parse() {
        Ok(realm) if origin::is_downgrade(asked, &realm) => {
            let host = realm.host_str().unwrap_or_default();
            let place = scope.place();
            let reason = format!(
                "{place} wants the login sent in clear to {host}; that is done for insecure registries only"
            );
            Err(Error::Unauthenticated { reason })
        }
        _ => Ok(()),
    }
}
