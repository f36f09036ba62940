//! Secrets for a registry: a login, which is user and password, or a token.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretString};

/// A user of a registry.
#[derive(Debug, Clone)]
pub struct Login {
    /// Name.
    pub user: String,
    /// Password or token.
    pub password: SecretString,
}

impl Login {
    /// The value of `Authorization`, by the scheme Basic.
    pub fn basic(&self) -> String {
        let pair = format!("{}:{}", self.user, self.password.expose_secret());
        format!("Basic {}", STANDARD.encode(pair))
    }
}

/// The secret for a registry.
#[derive(Debug, Clone)]
pub(crate) enum RegistrySecret {
    Login(Login),
    /// A refresh token of OAuth 2, which the registry's token service exchanges.
    IdentityToken(SecretString),
}
