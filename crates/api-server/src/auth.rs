//! Verification of credentials: tokens and the keys that sign them. Without I/O, except for the keys of an issuer.
//!
//! Invariant: no error and no log has any part of a token, or of a key.

mod caller;
mod issuer;
mod issuer_keys;
mod jwt;
mod keys;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use model::Error;
use model::ids::{ClusterId, InfraEnvId};
use model::time::Timestamp;
use rules::input::cloud_token;
use secrecy::SecretString;
use serde_json::{Value, json};
use uuid::Uuid;

pub(crate) use caller::{
    ADMINISTRATOR, AgentToken, Caller, OwnedResource, ResourceToken, TokenUser,
};
pub(crate) use issuer_keys::KEYS;
pub(crate) use jwt::TOKEN_BYTES;
pub(crate) use keys::{KeyTexts, LocalKeys};

use crate::operations::access::Scheme;
use crate::settings::{AuthType, Settings};
use issuer::TokenIssuer;
use jwt::{Token, TokenClaims};

/// Claim that names an infra-env. Source: assisted-service, internal/gencrypto/token.go, as the next one.
const INFRA_ENV: &str = "infra_env_id";
/// Claim that names a cluster.
const CLUSTER: &str = "cluster_id";
/// Claim with the generation of an infra-env's tokens.
const GENERATION: &str = "generation";
/// Claim with the scheme of a token for all resources.
/// Source: assisted-service, pkg/auth/agent_local_authz_handler.go.
const AUTH_SCHEME: &str = "auth_scheme";

/// Scheme of the code in a log-in link, which opens no operation by itself.
const LOG_IN_CODE: &str = "logInCode";

/// The verification that AUTH_TYPE chooses.
#[derive(Debug)]
pub(crate) struct Authentication {
    kind: AuthType,
    keys: Option<LocalKeys>,
    issuer: Option<TokenIssuer>,
}

/// A valid code of a log-in link. It may have been used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogInCode {
    pub(crate) id: Uuid,
    /// Name of the user that it logs in.
    pub(crate) user: String,
    pub(crate) expires_at: Timestamp,
}

/// Tokens of an infra-env's URLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UrlTokens {
    /// URLs have none.
    None,
    /// `api_key`, signed by the key of the installation.
    ApiKeys,
    /// `image_token`, signed by the key of the infra-env, with an expiry.
    ImageTokens,
}

/// Validity of the tokens of an infra-env.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenValidity {
    /// As in [`ResourceToken`].
    pub(crate) generation: i64,
    /// Units: seconds since 1970.
    pub(crate) expires_s: i64,
}

/// A refusal of credentials.
///
/// Source: assisted-service, pkg/auth: 401 for missing, forged and expired tokens.
pub(crate) fn unauthenticated(reason: impl Into<String>) -> Error {
    Error::Unauthenticated {
        reason: reason.into(),
    }
}

/// A refusal of valid credentials.
pub(crate) fn forbidden(reason: impl Into<String>) -> Error {
    Error::Forbidden {
        reason: reason.into(),
    }
}

impl Authentication {
    /// Parses the keys of the settings.
    ///
    /// Errors: Invalid – a key, or the keys of the issuer.
    pub(crate) async fn open(settings: &Settings) -> Result<Self, Error> {
        let texts = KeyTexts::of(settings);
        let keys = (!texts.public.is_empty()).then(|| LocalKeys::parse(&texts));
        let issuer = match settings.auth_type {
            AuthType::Oidc | AuthType::Rhsso => Some(TokenIssuer::open(settings).await?),
            _ => None,
        };
        Ok(Self {
            kind: settings.auth_type,
            keys: keys.transpose()?,
            issuer,
        })
    }

    /// Whether every caller is the administrator.
    pub(crate) fn is_off(&self) -> bool {
        self.kind == AuthType::None
    }

    /// The user of an `Authorization` header.
    ///
    /// Errors: Unauthenticated; Forbidden – a token of another kind.
    pub(crate) async fn user(&self, header: &str, now_s: i64) -> Result<Caller, Error> {
        if let Some(issuer) = &self.issuer {
            let user = issuer.user(bearer(header), now_s).await?;
            return Ok(Caller::User(Arc::new(user)));
        }
        let claims = self.signed_here(bearer(header), now_s)?;
        expect_scheme(&claims, Scheme::User)?;
        let name = claims.text("sub").map(str::to_owned);
        Ok(Caller::Operator(
            name.map_or(Cow::Borrowed(ADMINISTRATOR), Cow::Owned),
        ))
    }

    /// The agent of an `X-Secret-Key` header.
    ///
    /// Errors: as [`Self::user`].
    pub(crate) fn agent(&self, token: &str, now_s: i64) -> Result<Caller, Error> {
        if self.agents_have_pull_secrets() {
            if token.len() > TOKEN_BYTES {
                return Err(unauthenticated("the token is longer than 8 KiB"));
            }
            return Ok(Caller::Agent(AgentToken::PullSecret(token.into())));
        }
        let claims = self.signed_here(token, now_s)?;
        if let Some(token) = resource_token(&claims)? {
            return Ok(Caller::Agent(AgentToken::Of(token)));
        }
        expect_scheme(&claims, Scheme::Agent)?;
        Ok(Caller::Agent(AgentToken::Any))
    }

    /// The holder of a URL with `api_key`.
    ///
    /// Errors: as [`Self::user`].
    pub(crate) fn url(&self, token: &str, now_s: i64) -> Result<Caller, Error> {
        let claims = self.signed_here(token, now_s)?;
        match resource_token(&claims)? {
            Some(token) => Ok(Caller::Url(token)),
            None => Err(wrong_kind(&claims, Scheme::Url)),
        }
    }

    /// A program that follows an installation.
    ///
    /// Errors: as [`Self::user`].
    pub(crate) fn watcher(&self, header: &str, now_s: i64) -> Result<Caller, Error> {
        let claims = self.signed_here(bearer(header), now_s)?;
        expect_scheme(&claims, Scheme::Watcher)?;
        Ok(Caller::Watcher)
    }

    /// The code of a log-in link.
    ///
    /// Errors: as [`Self::user`].
    pub(crate) fn log_in_code(&self, code: &str, now_s: i64) -> Result<LogInCode, Error> {
        let claims = self.signed_here(code, now_s)?;
        let malformed = || unauthenticated("the code is not one of a log-in link");
        if claims.text(AUTH_SCHEME) != Some(LOG_IN_CODE) {
            return Err(malformed());
        }
        let id = claims.text("jti").map(Uuid::parse_str);
        let id = id.and_then(Result::ok).ok_or_else(malformed)?;
        let expires_at = claims.expires_at()?.ok_or_else(malformed)?;
        let user = claims.text("sub").ok_or_else(malformed)?.to_owned();
        Ok(LogInCode {
            id,
            user,
            expires_at,
        })
    }

    /// A token of the user of that name.
    ///
    /// Errors: Internal – the settings have no private key.
    pub(crate) fn user_token(&self, name: &str, expires_s: i64) -> Result<String, Error> {
        let missing = || Error::internal("signing a token", "EC_PUBLIC_KEY_PEM is empty");
        let keys = self.keys.as_ref().ok_or_else(missing)?;
        jwt::sign(keys.signing()?, &user_claims(name, expires_s))
    }

    /// Whether agents are known by their pull secret: a token issuer issues nothing for agents.
    pub(crate) fn agents_have_pull_secrets(&self) -> bool {
        self.issuer.is_some() && self.keys.is_none()
    }

    /// Tokens of an infra-env's URLs.
    pub(crate) fn url_tokens(&self) -> UrlTokens {
        match self.kind {
            AuthType::None | AuthType::AgentInstallerLocal => UrlTokens::None,
            AuthType::Local => UrlTokens::ApiKeys,
            AuthType::Oidc | AuthType::Rhsso => UrlTokens::ImageTokens,
        }
    }

    /// The token of the agents that boot the image of an infra-env; none if they need none, or bring their own.
    /// Source: assisted-service, internal/cluster/auth.go, AgentToken.
    ///
    /// Errors: Conflict – the pull secret has none; Internal – signing failed.
    pub(crate) fn agent_token(
        &self,
        id: InfraEnvId,
        pull_secret: &str,
        validity: TokenValidity,
    ) -> Result<Option<SecretString>, Error> {
        let token = match self.kind {
            AuthType::None | AuthType::AgentInstallerLocal => return Ok(None),
            _ if self.agents_have_pull_secrets() => {
                let missing = "the pull secret has no token of cloud.openshift.com for agents";
                cloud_token(pull_secret).ok_or_else(|| Error::conflict(missing))?
            }
            _ => self.infra_env_token(id, validity)?,
        };
        Ok(Some(token.into()))
    }

    /// A token for one infra-env.
    ///
    /// Errors: Internal – signing failed.
    pub(crate) fn infra_env_token(
        &self,
        id: InfraEnvId,
        validity: TokenValidity,
    ) -> Result<String, Error> {
        let missing = || Error::internal("signing a token", "EC_PUBLIC_KEY_PEM is empty");
        let keys = self.keys.as_ref().ok_or_else(missing)?;
        let claims = json!({
            INFRA_ENV: id, GENERATION: validity.generation, "exp": validity.expires_s,
        });
        jwt::sign(keys.signing()?, &claims)
    }

    /// The claims of a token that this installation's key signed.
    fn signed_here(&self, token: &str, now_s: i64) -> Result<TokenClaims, Error> {
        let Some(keys) = &self.keys else {
            return Err(unauthenticated("this server has no key for such tokens"));
        };
        let claims = Token::parse(token)?.verified(&["ES256"], keys.public())?;
        claims.check_times(now_s)?;
        Ok(claims)
    }
}

/// A token of the administrator under that name.
///
/// Errors: Invalid – a key; Internal – the settings have no private key.
pub(crate) fn user_token(settings: &Settings, name: &str, expires_s: i64) -> Result<String, Error> {
    let keys = LocalKeys::parse(&KeyTexts::of(settings))?;
    jwt::sign(keys.signing()?, &user_claims(name, expires_s))
}

fn user_claims(name: &str, expires_s: i64) -> Value {
    json!({ AUTH_SCHEME: Scheme::User.name(), "sub": name, "exp": expires_s })
}

/// The code of a log-in link for the user of that name.
///
/// Errors: as [`user_token`].
pub(crate) fn log_in_code(
    settings: &Settings,
    name: &str,
    id: Uuid,
    expires_s: i64,
) -> Result<String, Error> {
    let keys = LocalKeys::parse(&KeyTexts::of(settings))?;
    let claims = json!({ AUTH_SCHEME: LOG_IN_CODE, "sub": name, "jti": id, "exp": expires_s });
    jwt::sign(keys.signing()?, &claims)
}

/// A token for the image of an infra-env.
pub(crate) fn image_token(id: InfraEnvId, key: &[u8], expires_s: i64) -> String {
    jwt::sign_with_secret(key, &json!({ "sub": id, "exp": expires_s }))
}

/// The infra-env that a token of an image names, before its verification.
///
/// Errors: Unauthenticated.
pub(crate) fn subject_of_image_token(token: &str) -> Result<InfraEnvId, Error> {
    let subject = Token::parse(token)?.unverified("sub")?;
    let id = Uuid::parse_str(&subject);
    id.map(InfraEnvId)
        .map_err(|_| unauthenticated("the token does not name an infra-env"))
}

/// Verifies a token of an image by the key of its infra-env.
///
/// Errors: Unauthenticated.
pub(crate) fn verify_image_token(token: &str, key: &[u8], now_s: i64) -> Result<(), Error> {
    let claims = Token::parse(token)?.verified_by_secret(key)?;
    if !claims.has("exp") {
        return Err(unauthenticated("the token is not valid: it has no expiry"));
    }
    claims.check_times(now_s)
}

/// The token of a header, whose scheme may be absent as agent-based installers send it.
fn bearer(header: &str) -> &str {
    match header.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
        _ => header,
    }
}

fn resource_token(claims: &TokenClaims) -> Result<Option<ResourceToken>, Error> {
    let generation = claims.number(GENERATION)?.unwrap_or(0);
    let resource = resource_of(claims)?;
    Ok(resource.map(|resource| ResourceToken {
        resource,
        generation,
    }))
}

fn resource_of(claims: &TokenClaims) -> Result<Option<OwnedResource>, Error> {
    let id = |name: &str| {
        let parsed = claims.text(name).map(Uuid::parse_str);
        parsed
            .transpose()
            .map_err(|_| unauthenticated(format!("the token's {name} is not an id")))
    };
    if let Some(id) = id(INFRA_ENV)? {
        return Ok(Some(OwnedResource::InfraEnv(InfraEnvId(id))));
    }
    Ok(id(CLUSTER)?.map(|id| OwnedResource::Cluster(ClusterId(id))))
}

fn expect_scheme(claims: &TokenClaims, expected: Scheme) -> Result<(), Error> {
    if claims.text(AUTH_SCHEME) == Some(expected.name()) {
        return Ok(());
    }
    Err(wrong_kind(claims, expected))
}

fn wrong_kind(claims: &TokenClaims, expected: Scheme) -> Error {
    let known = |name: &&str| Scheme::ALL.iter().any(|one| one.name() == *name);
    let found = claims.text(AUTH_SCHEME).filter(known);
    let found = found.unwrap_or("one infra-env or cluster");
    let expected = expected.name();
    forbidden(format!("the token is for {found}, not for {expected}"))
}
