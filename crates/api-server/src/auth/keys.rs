//! The installation's own pair of keys.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::Error;
use oci::jws::{PublicKey, SigningKey};
use secrecy::ExposeSecret as _;

use crate::settings::Settings;

const PUBLIC_KEY: &str = "EC_PUBLIC_KEY_PEM";
const PRIVATE_KEY: &str = "EC_PRIVATE_KEY_PEM";

/// The texts of the settings; empty if absent. Not printable, as they have the private key.
pub(crate) struct KeyTexts<'a> {
    pub(crate) public: &'a str,
    pub(crate) private: &'a str,
}

/// Keys of tokens that this installation issues.
#[derive(Debug)]
pub(crate) struct LocalKeys {
    public: PublicKey,
    signing: Option<SigningKey>,
}

impl<'a> KeyTexts<'a> {
    pub(crate) fn of(settings: &'a Settings) -> Self {
        Self {
            public: settings.ec_public_key_pem.trim(),
            private: settings.ec_private_key_pem.expose_secret().trim(),
        }
    }
}

impl LocalKeys {
    /// Parses PEM texts, or their base64: files of variables and units of systemd have single lines.
    /// Source: assisted-service, pkg/auth/agent_local_authenticator.go.
    ///
    /// Errors: Invalid – names the variable.
    pub(crate) fn parse(texts: &KeyTexts<'_>) -> Result<Self, Error> {
        let refuse = |variable: &str, error: &Error| Error::invalid(variable, error.to_string());
        let pem = pem(texts.public).map_err(|error| refuse(PUBLIC_KEY, &error))?;
        let public = PublicKey::from_pem(&pem).map_err(|error| refuse(PUBLIC_KEY, &error))?;
        let signing = (!texts.private.is_empty())
            .then(|| self::pem(texts.private).and_then(|pem| SigningKey::from_pem(&pem, &public)));
        let signing = signing.transpose();
        Ok(Self {
            signing: signing.map_err(|error| refuse(PRIVATE_KEY, &error))?,
            public,
        })
    }

    pub(super) fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Errors: Internal – the settings have no private key.
    pub(super) fn signing(&self) -> Result<&SigningKey, Error> {
        let missing = || Error::internal("signing a token", format!("{PRIVATE_KEY} is empty"));
        self.signing.as_ref().ok_or_else(missing)
    }
}

fn pem(text: &str) -> Result<String, Error> {
    if text.trim().is_empty() {
        let reason = "is not set: `atoll token keys` makes a pair; that of an installation is in its settings";
        return Err(Error::invalid("key", reason));
    }
    if text.starts_with("-----") {
        return Ok(text.to_owned());
    }
    let base64: String = text.split_whitespace().collect();
    let bytes = STANDARD.decode(base64).ok();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    text.ok_or_else(|| Error::invalid("key", "is neither PEM nor its base64"))
}
