//! Tokens for tests: a pair of keys, and JSON Web Tokens with any header and claims.

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use oci::jws::{PublicKey, SigningKey};
use rcgen::KeyPair;
use serde_json::{Value, json};

/// A new pair of keys of the curve P-256.
#[derive(Debug)]
pub struct TokenKey {
    /// The public key as PEM.
    pub public_pem: String,
    /// The private key as PEM.
    pub private_pem: String,
    point: Vec<u8>,
    signing: SigningKey,
}

impl TokenKey {
    /// Errors: those of the libraries.
    pub fn new() -> Result<Self> {
        let pair = KeyPair::generate()?;
        let (public_pem, private_pem) = (pair.public_key_pem(), pair.serialize_pem());
        let public = PublicKey::from_pem(&public_pem)?;
        Ok(Self {
            signing: SigningKey::from_pem(&private_pem, &public)?,
            point: pair.public_key_raw().to_vec(),
            public_pem,
            private_pem,
        })
    }

    /// The public key as the set of a token issuer.
    pub fn jwks(&self, id: &str) -> Value {
        let (x, y) = self.point[1..].split_at(32);
        let (x, y) = (BASE64.encode(x), BASE64.encode(y));
        json!({ "keys": [{ "kty": "EC", "crv": "P-256", "use": "sig", "kid": id, "x": x, "y": y }] })
    }

    /// A token `ES256`.
    ///
    /// Errors: those of the libraries.
    pub fn sign(&self, claims: &Value) -> Result<String> {
        self.sign_as(&json!({ "alg": "ES256" }), claims)
    }

    /// A token `ES256` that names its key.
    ///
    /// Errors: those of the libraries.
    pub fn sign_with_id(&self, id: &str, claims: &Value) -> Result<String> {
        self.sign_as(&json!({ "alg": "ES256", "kid": id }), claims)
    }

    /// A token with any header, signed as `ES256`.
    ///
    /// Errors: those of the libraries.
    pub fn sign_as(&self, header: &Value, claims: &Value) -> Result<String> {
        let message = message(header, claims);
        let signature = self.signing.sign(message.as_bytes())?;
        Ok(format!("{message}.{}", BASE64.encode(signature)))
    }
}

/// The signed part of a token.
pub fn message(header: &Value, claims: &Value) -> String {
    let encode = |value: &Value| BASE64.encode(value.to_string());
    format!("{}.{}", encode(header), encode(claims))
}
