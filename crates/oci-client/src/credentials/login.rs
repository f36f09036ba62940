//! A login: user and password.

use secrecy::SecretString;

/// A user of a registry.
#[derive(Debug, Clone)]
pub struct Login {
    /// Name.
    pub user: String,
    /// Password or token.
    pub password: SecretString,
}
