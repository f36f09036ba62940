//! Users of a token issuer.
//!
//! Source: OpenID Connect Core 1.0; assisted-service, pkg/auth/rhsso_authenticator.go, for the names of claims.

use std::collections::BTreeSet;

use model::Error;

use super::caller::TokenUser;
use super::issuer_keys::IssuerKeys;
use super::jwt::{Token, TokenClaims};
use super::unauthenticated;
use crate::operations::access::Role;
use crate::settings::Settings;

/// Accepted signatures: those that issuers have to support, and the short ones.
const ALGORITHMS: &[&str] = &["RS256", "ES256"];
/// Domain of a user without e-mail address. Source: assisted-service, pkg/ocm/utils.go.
const UNKNOWN_DOMAIN: &str = "Unknown";
/// Claims with the name of a user. Source: assisted-service, pkg/auth/rhsso_authenticator.go.
const NAMES: [&str; 2] = ["username", "preferred_username"];
/// A claim that users of some issuers choose by themselves. Source: OpenID Connect Core 1.0, 5.1 and 5.7.
const EMAIL: &str = "email";

/// An issuer of tokens for users.
#[derive(Debug)]
pub(super) struct TokenIssuer {
    keys: IssuerKeys,
    /// Required `iss`; any if empty.
    name: String,
    /// Required `aud`; any if empty.
    audience: String,
    /// Claim with the name of a user; that of [`NAMES`] if empty.
    username_claim: String,
    administrators: BTreeSet<String>,
    observers: BTreeSet<String>,
}

impl TokenIssuer {
    /// Errors: Invalid – the keys of the settings.
    pub(super) async fn open(settings: &Settings) -> Result<Self, Error> {
        let names = |list: &[String]| list.iter().cloned().collect();
        if let Some(warning) = settings.username_warning() {
            tracing::warn!(
                "{warning}: set OIDC_USERNAME_CLAIM to a claim that the issuer alone changes, such as sub"
            );
        }
        Ok(Self {
            keys: IssuerKeys::open(settings).await?,
            name: settings.oidc_issuer.clone(),
            audience: settings.oidc_audience.clone(),
            username_claim: settings.oidc_username_claim.clone(),
            administrators: names(&settings.admin_users.0),
            observers: names(&settings.read_only_admin_users.0),
        })
    }

    /// The user of a token.
    ///
    /// Errors: Unauthenticated; Unavailable – the keys were never loaded.
    pub(super) async fn user(&self, token: &str, now_s: i64) -> Result<TokenUser, Error> {
        let token = Token::parse(token)?;
        let key = self.keys.find(token.key_id()?).await?;
        let claims = token.verified(ALGORITHMS, &key)?;
        claims.check_times(now_s)?;
        if !claims.has("exp") {
            return Err(wrong("it has no expiry"));
        }
        if !self.name.is_empty() && claims.text("iss") != Some(&self.name) {
            return Err(wrong("another issuer made it"));
        }
        if !self.audience.is_empty() && !claims.is_for(&self.audience) {
            return Err(wrong("it is for another audience"));
        }
        self.named_user(&claims)
    }

    fn named_user(&self, claims: &TokenClaims) -> Result<TokenUser, Error> {
        let name = self.name_of(claims)?;
        let domain = claims.text(EMAIL).and_then(|email| email.rsplit_once('@'));
        let role = if self.administrators.contains(name) {
            Role::Admin
        } else if self.observers.contains(name) {
            Role::ReadOnlyAdmin
        } else {
            Role::User
        };
        Ok(TokenUser {
            name: name.to_owned(),
            org_id: claims.text("org_id").unwrap_or_default().to_owned(),
            email_domain: domain
                .map_or(UNKNOWN_DOMAIN, |(_, domain)| domain)
                .to_owned(),
            role,
        })
    }

    fn name_of<'a>(&self, claims: &'a TokenClaims) -> Result<&'a str, Error> {
        let claim = self.username_claim.as_str();
        if claim.is_empty() {
            let name = NAMES.iter().find_map(|claim| claims.text(claim));
            let missing =
                "it has no username or preferred_username: OIDC_USERNAME_CLAIM names another claim";
            return name.ok_or_else(|| wrong(missing));
        }
        if claim == EMAIL && claims.is_false("email_verified") {
            return Err(wrong("its email is not verified"));
        }
        let name = claims.text(claim);
        name.ok_or_else(|| wrong(&format!("it has no {claim} (OIDC_USERNAME_CLAIM)")))
    }
}

fn wrong(problem: &str) -> Error {
    unauthenticated(format!("the token is not valid: {problem}"))
}

#[cfg(test)]
#[path = "issuer_tests.rs"]
mod tests;
