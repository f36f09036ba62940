//! The secret with user name and password of a BMC.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use super::api_groups::ApiGroups;
use super::node::RecordNode;

/// Longest user name or password. Units: bytes.
pub const MAX_CREDENTIAL: usize = 4096;

/// The credentials of a BMC, with the name of their secret.
#[derive(Debug, Clone)]
pub struct CredentialSecret {
    /// Name of the secret.
    pub name: String,
    /// Namespace; empty for none.
    pub namespace: String,
    /// User name.
    pub username: String,
    /// Password.
    pub password: SecretString,
}

/// The reason why a secret has no credentials; values are not repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// No such key.
    #[error("data.{0} is missing: add the key")]
    Missing(&'static str),
    /// Empty.
    #[error("data.{0} is empty: set it")]
    Empty(&'static str),
    /// Not base64.
    #[error("data.{0} is not base64: encode it, or use stringData")]
    Base64(&'static str),
    /// Not text.
    #[error("data.{0} is not UTF-8 text: encode the text as UTF-8")]
    Utf8(&'static str),
    /// Beyond the limit.
    #[error("data.{0} has more than {MAX_CREDENTIAL} bytes")]
    TooLong(&'static str),
}

impl CredentialSecret {
    /// Reads a Secret. Values of `stringData` win over those of `data`, as in a cluster.
    ///
    /// Errors: a key that is missing, empty, or not base64.
    pub fn read(record: &RecordNode<'_>) -> Result<Self, CredentialError> {
        Ok(Self {
            name: record.name().to_owned(),
            namespace: record.namespace().to_owned(),
            username: value(record, "username")?,
            password: value(record, "password")?.into(),
        })
    }

    /// The Secret, with its password in base64.
    pub fn to_record(&self) -> Value {
        let mut metadata = json!({ "name": self.name });
        if !self.namespace.is_empty() {
            metadata["namespace"] = json!(self.namespace);
        }
        json!({
            "apiVersion": ApiGroups::SECRET_VERSION,
            "kind": ApiGroups::SECRET,
            "type": "Opaque",
            "metadata": metadata,
            "data": {
                "username": STANDARD.encode(&self.username),
                "password": STANDARD.encode(self.password.expose_secret()),
            },
        })
    }
}

/// The bytes of a value of `data`. Source: Go's encoding/json, which skips line ends in base64.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    if text.contains(['\n', '\r']) {
        return STANDARD.decode(text.replace(['\n', '\r'], "")).ok();
    }
    STANDARD.decode(text).ok()
}

fn value(record: &RecordNode<'_>, key: &'static str) -> Result<String, CredentialError> {
    let plain = record.get(&["stringData", key]);
    let text = if plain.is_some() {
        record.text(&["stringData", key]).to_owned()
    } else if record.get(&["data", key]).is_some() {
        let bytes = decode(record.text(&["data", key])).ok_or(CredentialError::Base64(key))?;
        String::from_utf8(bytes).map_err(|_| CredentialError::Utf8(key))?
    } else {
        return Err(CredentialError::Missing(key));
    };
    match text.len() {
        0 => Err(CredentialError::Empty(key)),
        1..=MAX_CREDENTIAL => Ok(text),
        _ => Err(CredentialError::TooLong(key)),
    }
}
