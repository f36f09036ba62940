//! The OpenID provider: discovery, authorization code flow with PKCE, refresh, log-out.
//!
//! Source: RFC 6749, RFC 7636, OpenID Connect Core 1.0, Discovery 1.0, RP-Initiated Logout 1.0. The ID token comes from the
//! token endpoint itself, so that TLS authenticates it (Core §3.1.3.7, number 6) and its signature need not be verified;
//! the API server verifies that of the access token.

use std::sync::Arc;
use std::time::{Duration, Instant};

use data_encoding::{BASE64, BASE64URL_NOPAD};
use http::{HeaderValue, StatusCode};
use ring::digest;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Mutex;
use url::{Url, form_urlencoded};

use super::failure::LogInFailure;
use super::provider_client::{ProviderClient, ProviderResponse};

/// Path of the description below the issuer.
const DISCOVERY: &str = "/.well-known/openid-configuration";
/// Age at which a description is fetched again.
const FRESH: Duration = Duration::from_hours(1);
/// Time for which a failure is not tried again: requests without a session cause attempts.
const FAILURE_REST: Duration = Duration::from_secs(2);
/// Longest issuer that a failure names. Units: bytes.
const ISSUER_BYTES: usize = 256;
/// Accepted difference of clocks. Units: seconds.
const LEEWAY_S: i64 = 60;

/// This server as a client of the provider.
pub(super) struct ClientRegistration {
    pub(super) issuer: String,
    pub(super) id: String,
    /// Empty for public clients.
    pub(super) secret: SecretString,
    pub(super) scopes: String,
    /// The origin of this server for browsers.
    pub(super) base_url: String,
}

/// An OpenID provider.
pub(super) struct Provider {
    registration: ClientRegistration,
    client: ProviderClient,
    known: Mutex<Option<Discovery>>,
}

/// The last result of discovery.
struct Discovery {
    at: Instant,
    result: Result<Arc<ProviderMetadata>, LogInFailure>,
}

/// The provider's description of itself.
#[derive(Debug, Deserialize)]
struct ProviderMetadata {
    issuer: String,
    authorization_endpoint: Url,
    token_endpoint: Url,
    end_session_endpoint: Option<Url>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// Whether it names itself in each authorization response. Source: RFC 9207, section 3.
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

/// Secrets of one log-in.
pub(super) struct FlowSecrets<'a> {
    pub(super) state: &'a str,
    pub(super) nonce: &'a str,
    /// PKCE code verifier.
    pub(super) verifier: &'a str,
}

/// Tokens that the provider issued. Not printable, so that no log has one.
#[derive(Deserialize)]
pub(super) struct IssuedTokens {
    pub(super) access_token: String,
    pub(super) refresh_token: Option<String>,
    /// Validity of the access token. Units: seconds.
    pub(super) expires_in: Option<i64>,
    id_token: Option<String>,
}

#[derive(Deserialize)]
struct TokenError {
    error: String,
}

impl Provider {
    pub(super) fn new(registration: ClientRegistration, client: ProviderClient) -> Self {
        Self {
            registration,
            client,
            known: Mutex::default(),
        }
    }

    /// The provider's page for a new log-in.
    ///
    /// Errors: those of discovery.
    pub(super) async fn authorization(&self, flow: &FlowSecrets<'_>) -> Result<Url, LogInFailure> {
        let mut url = self.metadata().await?.authorization_endpoint.clone();
        let hash = digest::digest(&digest::SHA256, flow.verifier.as_bytes());
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.registration.id)
            .append_pair("redirect_uri", &self.redirect_uri())
            .append_pair("scope", &self.registration.scopes)
            .append_pair("state", flow.state)
            .append_pair("nonce", flow.nonce)
            .append_pair("code_challenge", &BASE64URL_NOPAD.encode(hash.as_ref()))
            .append_pair("code_challenge_method", "S256");
        Ok(url)
    }

    /// Checks that an authorization response, which names `issuer`, comes from this provider: the code of another one would
    /// leave for the wrong token endpoint. Source: RFC 9207, section 2.4.
    ///
    /// Errors: ProviderInvalid – it names another issuer, or none although this provider always names itself; those of
    /// discovery.
    pub(super) async fn check_response(&self, issuer: Option<&str>) -> Result<(), LogInFailure> {
        match issuer {
            Some(issuer) if issuer == self.registration.issuer => Ok(()),
            Some(_) => Err(invalid("its answer to the log-in has another issuer (iss)")),
            None => {
                let metadata = self.metadata().await?;
                if metadata.authorization_response_iss_parameter_supported {
                    return Err(invalid("its answer to the log-in has no issuer (iss)"));
                }
                Ok(())
            }
        }
    }

    /// Exchanges a code; returns the tokens and the user's name.
    ///
    /// Errors: CodeRefused; ClockSkew; ProviderInvalid – the ID token does not fit; those of discovery.
    pub(super) async fn exchange(
        &self,
        code: &str,
        flow: &FlowSecrets<'_>,
        now_s: i64,
    ) -> Result<(IssuedTokens, String), LogInFailure> {
        let redirect_uri = self.redirect_uri();
        let tokens = self
            .tokens(&[
                ("grant_type", "authorization_code"),
                ("code", code),
                ("redirect_uri", &redirect_uri),
                ("code_verifier", flow.verifier),
            ])
            .await?;
        let missing = || invalid("it has no ID token: the scope openid is required");
        let claims = claims(tokens.id_token.as_deref().ok_or_else(missing)?);
        let claims = claims.ok_or_else(|| invalid("its ID token is malformed"))?;
        self.check(&claims, flow.nonce, now_s)?;
        Ok((tokens, user_name(&claims)))
    }

    /// New tokens for a refresh token.
    ///
    /// Errors: CodeRefused – it is not valid any more; those of discovery.
    pub(super) async fn refresh(&self, refresh_token: &str) -> Result<IssuedTokens, LogInFailure> {
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh_token),
        ];
        self.tokens(&form).await
    }

    /// The provider's page that ends its own session, if it has one.
    pub(super) async fn end_session(&self) -> Option<Url> {
        let mut url = self.metadata().await.ok()?.end_session_endpoint.clone()?;
        let back = format!("{}/logout", self.registration.base_url);
        url.query_pairs_mut()
            .append_pair("client_id", &self.registration.id)
            .append_pair("post_logout_redirect_uri", &back);
        Some(url)
    }

    async fn tokens(&self, parameters: &[(&str, &str)]) -> Result<IssuedTokens, LogInFailure> {
        let metadata = self.metadata().await?;
        let mut form: Vec<(&str, &str)> = parameters.to_vec();
        let secret = self.registration.secret.expose_secret();
        let methods = metadata.token_endpoint_auth_methods_supported.as_ref();
        let by_basic = methods.is_none_or(|all| all.iter().any(|one| one == "client_secret_basic"));
        let mut authorization = None;
        if !secret.is_empty() && by_basic {
            authorization = basic(&self.registration.id, secret);
        } else {
            form.push(("client_id", &self.registration.id));
            if !secret.is_empty() {
                form.push(("client_secret", secret));
            }
        }
        let encoded = encoded(&form);
        let url = &metadata.token_endpoint;
        let response = self.client.post(url, encoded, authorization).await?;
        if response.status == StatusCode::OK {
            let tokens = serde_json::from_slice(&response.body);
            return tokens.map_err(|error: serde_json::Error| {
                // The place alone: its text may quote a token.
                let place = format!("line {}, column {}", error.line(), error.column());
                invalid(format!(
                    "the token endpoint's answer has no access token, or is malformed at {place}"
                ))
            });
        }
        let refused: Option<TokenError> = serde_json::from_slice(&response.body).ok();
        match refused {
            Some(TokenError { error }) if response.status.is_client_error() => {
                let code = LogInFailure::code(&error);
                tracing::info!(code, "OpenID provider refused a code or refresh token");
                Err(LogInFailure::CodeRefused(code))
            }
            _ => Err(unexpected("the token endpoint", &response)),
        }
    }

    async fn metadata(&self) -> Result<Arc<ProviderMetadata>, LogInFailure> {
        let mut known = self.known.lock().await;
        let previous = known.as_ref().and_then(|last| {
            let rest = if last.result.is_ok() {
                FRESH
            } else {
                FAILURE_REST
            };
            (last.at.elapsed() < rest).then(|| last.result.clone())
        });
        if let Some(result) = previous {
            return result;
        }
        let fetched = self.discover().await.map(Arc::new);
        let result = match (fetched, known.take()) {
            // Endpoints seldom change: the known ones are good while the provider restarts.
            (
                Err(_),
                Some(Discovery {
                    result: Ok(known), ..
                }),
            ) => Ok(known),
            (fetched, _) => fetched,
        };
        *known = Some(Discovery {
            at: Instant::now(),
            result: result.clone(),
        });
        result
    }

    async fn discover(&self) -> Result<ProviderMetadata, LogInFailure> {
        let issuer = &self.registration.issuer;
        let url = format!("{}{DISCOVERY}", issuer.trim_end_matches('/'));
        let url = Url::parse(&url).map_err(|error| invalid(format!("OIDC_ISSUER: {error}")))?;
        let response = self.client.get(&url).await?;
        if response.status != StatusCode::OK {
            return Err(unexpected(url.as_str(), &response));
        }
        let metadata: ProviderMetadata = serde_json::from_slice(&response.body)
            .map_err(|error| invalid(format!("{url}: {error}")))?;
        if metadata.issuer != *issuer {
            return Err(invalid(another_issuer(&url, &metadata.issuer)));
        }
        let endpoints = [&metadata.authorization_endpoint, &metadata.token_endpoint];
        let endpoints = endpoints.into_iter().chain(&metadata.end_session_endpoint);
        for endpoint in endpoints {
            let is_safe = endpoint.scheme() == "https"
                || (endpoint.scheme() == "http" && url.scheme() == "http");
            if !is_safe {
                return Err(invalid(format!("{url} has an endpoint without TLS")));
            }
        }
        Ok(metadata)
    }

    /// Source: OpenID Connect Core 1.0, §3.1.3.7.
    fn check(&self, claims: &Value, nonce: &str, now_s: i64) -> Result<(), LogInFailure> {
        let id = &self.registration.id;
        let is_us = |audience: &Value| audience.as_str() == Some(id);
        let audience = &claims["aud"];
        let several = audience.as_array();
        if claims["iss"].as_str() != Some(&self.registration.issuer) {
            return Err(invalid("its ID token has another issuer"));
        }
        if !several.map_or_else(|| is_us(audience), |all| all.iter().any(is_us)) {
            return Err(invalid("its ID token is for another client"));
        }
        if claims.get("azp").is_some_and(|party| !is_us(party)) {
            return Err(invalid("its ID token was requested by another client"));
        }
        if claims["nonce"].as_str() != Some(nonce) {
            return Err(invalid("its ID token is of another log-in (nonce)"));
        }
        let Some(expires_s) = claims["exp"].as_f64() else {
            return Err(invalid("its ID token has no expiry"));
        };
        let issued_s = claims["iat"].as_f64().unwrap_or_default();
        let (ahead_s, behind_s) = (seconds(issued_s) - now_s, now_s - seconds(expires_s));
        if ahead_s > LEEWAY_S {
            return Err(LogInFailure::ClockSkew(ahead_s));
        }
        if behind_s > LEEWAY_S {
            return Err(LogInFailure::ClockSkew(-behind_s));
        }
        Ok(())
    }

    fn redirect_uri(&self) -> String {
        format!("{}/login/callback", self.registration.base_url)
    }
}

/// The claims of a token, without any verification.
pub(super) fn claims(token: &str) -> Option<Value> {
    let payload = token.split('.').nth(1)?.trim_end_matches('=');
    let payload = BASE64URL_NOPAD.decode(payload.as_bytes()).ok()?;
    serde_json::from_slice(&payload).ok()
}

/// The name of the user that claims describe; may be empty.
pub(super) fn user_name(claims: &Value) -> String {
    let names = ["preferred_username", "username", "email", "name", "sub"];
    let found = names.iter().find_map(|name| claims[name].as_str());
    found.unwrap_or_default().chars().take(100).collect()
}

/// The date of a claim; beyond all dates for numbers that are none.
#[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
pub(super) fn seconds(date: f64) -> i64 {
    date.clamp(0.0, 1e12) as i64
}

/// Source: RFC 6749 §2.3.1.
fn basic(id: &str, secret: &str) -> Option<HeaderValue> {
    let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encode(id), encode(secret));
    let value = format!("Basic {}", BASE64.encode(pair.as_bytes()));
    let mut value = HeaderValue::from_str(&value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn encoded(form: &[(&str, &str)]) -> String {
    let mut encoded = form_urlencoded::Serializer::new(String::new());
    encoded.extend_pairs(form).finish()
}

fn unexpected(place: &str, response: &ProviderResponse) -> LogInFailure {
    let reason = format!("{place} answered {}", response.status);
    tracing::warn!(reason, "OpenID provider failed");
    if response.status.is_server_error() || response.status == StatusCode::TOO_MANY_REQUESTS {
        LogInFailure::ProviderAway(reason)
    } else {
        invalid(reason)
    }
}

/// Names the other issuer, since it often differs by a slash alone.
fn another_issuer(url: &Url, found: &str) -> String {
    let is_url = found.len() <= ISSUER_BYTES && Url::parse(found).is_ok();
    let found = if is_url { found } else { "no URL" };
    format!("{url} describes another issuer ({found})")
}

fn invalid(reason: impl Into<String>) -> LogInFailure {
    LogInFailure::ProviderInvalid(reason.into())
}
