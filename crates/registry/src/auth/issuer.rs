//! Tokens that another server gives, and clients bring along. Source: distribution, "Token Authentication
//! Specification".

mod jwt;
mod keys;

use std::sync::Arc;

use axum::http::HeaderValue;
use service::Error;

use concurrency::WatchedFile;

use super::access::Access;
use super::credentials::Credentials;
use crate::error::RegistryError;
use crate::observe;
use crate::settings::Settings;
use jwt::{Claims, Expected, Jwt};
use keys::Keys;

/// Knows whose tokens count. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Issuer(Arc<IssuerInner>);

#[derive(Debug)]
struct IssuerInner {
    realm: Realm,
    expected: Expected,
    keys: WatchedFile<Keys>,
}

/// Where tokens are given.
#[derive(Debug)]
enum Realm {
    Url(String),
    /// On the host that the client reached.
    Here(String),
}

impl Issuer {
    /// The issuer that the settings name, if any.
    ///
    /// Errors: a file of keys that cannot be used, by its variable.
    pub(super) async fn open(settings: &Settings) -> Result<Option<Self>, Error> {
        let bundle = settings.registry_auth_token_rootcertbundle.as_ref();
        let jwks = settings.registry_auth_token_jwks.as_ref();
        let (variable, path, parse): (_, _, fn(&[u8]) -> _) = match (bundle, jwks) {
            (Some(path), _) => ("ROOTCERTBUNDLE", path, |bytes| {
                Keys::of_certificates(std::str::from_utf8(bytes)?)
            }),
            (None, Some(path)) => ("JWKS", path, |bytes| {
                Keys::of_jwks(std::str::from_utf8(bytes)?)
            }),
            (None, None) => return Ok(None),
        };
        let keys = WatchedFile::open(path, parse).await.map_err(|e| {
            let path = path.display();
            Error::new(format!("reading REGISTRY_AUTH_TOKEN_{variable} {path}"), e)
        })?;
        let realm = if settings.registry_auth_token_autoredirect {
            Realm::Here(settings.registry_auth_token_autoredirectpath.clone())
        } else {
            Realm::Url(
                settings
                    .registry_auth_token_realm
                    .clone()
                    .unwrap_or_default(),
            )
        };
        let or_empty = |text: &Option<String>| text.clone().unwrap_or_default();
        Ok(Some(Self(Arc::new(IssuerInner {
            realm,
            expected: Expected {
                issuer: or_empty(&settings.registry_auth_token_issuer),
                service: or_empty(&settings.registry_auth_token_service),
                algorithms: settings.registry_auth_token_signingalgorithms.0.clone(),
            },
            keys,
        }))))
    }

    /// Errors: no token, or one that does not count here.
    pub(super) async fn admit(&self, credentials: &Credentials) -> Result<Access, RegistryError> {
        let Credentials::Bearer(token) = credentials else {
            return Err(RegistryError::unauthorized());
        };
        let keys = self.0.keys.get().await;
        match self.verified(token, &keys) {
            Ok(claims) => {
                let user = claims.subject().map(Into::into);
                Ok(Access::by_token(user, claims.access))
            }
            Err(error) => {
                tracing::debug!(%error, "a token does not count");
                observe::auth_failed("wrong");
                Err(RegistryError::unauthorized())
            }
        }
    }

    fn verified(&self, token: &str, keys: &Keys) -> Result<Claims, model::Error> {
        let now = u64::try_from(service::clock::now().timestamp()).unwrap_or_default();
        let token = Jwt::parse(token)?;
        let expected = &self.0.expected;
        token.verify(expected, &keys.candidates(token.header(), now)?)?;
        token.claims(expected, now)
    }

    /// The challenge for a token with `scope`, and the reason why the client's own token, if any, does not suffice.
    pub(crate) fn challenge(
        &self,
        origin: Option<&str>,
        scope: &str,
        lack: Option<Lack>,
    ) -> Option<HeaderValue> {
        let IssuerInner {
            realm, expected, ..
        } = &*self.0;
        let realm = match realm {
            Realm::Url(url) => url.clone(),
            Realm::Here(path) => format!("{}{path}", origin?),
        };
        let service = &expected.service;
        let scope = Some(scope).filter(|scope| !scope.is_empty());
        let parts = [
            ("realm", Some(realm.as_str())),
            ("service", Some(service)),
            ("scope", scope),
            ("error", lack.map(Lack::as_str)),
        ];
        let parts = parts
            .into_iter()
            .filter_map(|(name, value)| Some(format!("{name}=\"{}\"", value?)));
        let parts: Vec<_> = parts.collect();
        HeaderValue::from_str(&format!("Bearer {}", parts.join(","))).ok()
    }
}

/// Why a token is not enough. Source: RFC 6750, 3.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lack {
    /// It does not count.
    Token,
    /// It does not grant that.
    Scope,
}

impl Lack {
    fn as_str(self) -> &'static str {
        match self {
            Self::Token => "invalid_token",
            Self::Scope => "insufficient_scope",
        }
    }
}
