//! The door in front of `/v2/`.

use std::net::IpAddr;

use axum::http::HeaderValue;
use service::Error;

use super::access::Access;
use super::credentials::Credentials;
use super::issuer::Issuer;
use super::users::Users;
use crate::error::RegistryError;
use crate::settings::Settings;

/// Authenticates requests. Clones share their caches.
#[derive(Debug, Clone)]
pub(crate) enum Gate {
    /// By passwords.
    Users(Users),
    /// By tokens of an external token service.
    Issuer(Issuer),
}

impl Gate {
    /// The gate that the settings ask for, if any. Its files are read again whenever they change.
    ///
    /// Errors: a file that cannot be used, by its variable; a realm that cannot stand in a header.
    pub(crate) async fn open(settings: &Settings) -> Result<Option<Self>, Error> {
        if let Some(issuer) = Issuer::open(settings).await? {
            return Ok(Some(Self::Issuer(issuer)));
        }
        Ok(Users::open(settings).await?.map(Self::Users))
    }

    /// Authenticates a request; the policy or the token decides on its access.
    ///
    /// Errors: wrong credentials, none where there have to be some, too many wrong ones before.
    pub(crate) async fn admit(
        &self,
        credentials: Credentials,
        address: IpAddr,
    ) -> Result<Access, RegistryError> {
        match self {
            Self::Users(users) => users.admit(credentials, address).await,
            Self::Issuer(issuer) => issuer.admit(&credentials).await,
        }
    }

    /// The challenge to browsers, which know nothing but passwords.
    pub(crate) fn basic(&self) -> Option<HeaderValue> {
        match self {
            Self::Users(users) => Some(users.basic()),
            Self::Issuer(_) => None,
        }
    }
}
