//! JSON Web Tokens. Source: RFC 7515, RFC 7519, RFC 8725.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use chrono::DateTime;
use model::Error;
use model::time::Timestamp;
use oci::jws::{self, PublicKey, SigningKey};
use ring::hmac;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::unauthenticated;

/// Longest token. Units: bytes.
pub(crate) const TOKEN_BYTES: usize = 8 << 10;
/// Longest text of a claim. Units: bytes.
const TEXT_BYTES: usize = 1024;
const SECRET_ALGORITHM: &str = "HS256";
/// Accepted difference of clocks for the start of a token's time. Units: seconds.
const LEEWAY_S: f64 = 60.0;

/// A token before its verification. Not printable, so that no log has one.
pub(super) struct Token<'a> {
    header: TokenHeader,
    /// The signed part.
    message: &'a str,
    claims: &'a str,
    signature: Vec<u8>,
}

#[derive(Deserialize)]
struct TokenHeader {
    alg: String,
    kid: Option<String>,
    /// Extensions that the receiver has to understand: none is.
    crit: Option<Value>,
}

/// Claims of a verified token.
pub(super) struct TokenClaims(Map<String, Value>);

impl<'a> Token<'a> {
    /// Errors: Unauthenticated – too long, or malformed.
    pub(super) fn parse(text: &'a str) -> Result<Self, Error> {
        if text.len() > TOKEN_BYTES {
            return Err(wrong("it is longer than 8 KiB"));
        }
        let mut parts = text.split('.');
        let (Some(header), Some(claims), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            // Opaque tokens of other issuers, or something else that was pasted.
            return Err(wrong("it is not a JWT of three parts"));
        };
        let parsed: TokenHeader = decoded(header)?;
        if parsed.crit.is_some() {
            return Err(wrong("it has critical extensions"));
        }
        Ok(Self {
            header: parsed,
            message: &text[..header.len() + 1 + claims.len()],
            claims,
            signature: jws::decode(signature).map_err(|_| wrong("it is not base64url"))?,
        })
    }

    /// Errors: Unauthenticated – it names no key.
    pub(super) fn key_id(&self) -> Result<&str, Error> {
        let id = self.header.kid.as_deref();
        id.ok_or_else(|| wrong("it does not name its key"))
    }

    /// A claim before the verification, to find the key.
    ///
    /// Errors: Unauthenticated – it is absent.
    pub(super) fn unverified(&self, name: &str) -> Result<String, Error> {
        let claims = TokenClaims(decoded(self.claims)?);
        let text = claims.text(name).map(str::to_owned);
        text.ok_or_else(|| wrong("it does not name its subject"))
    }

    /// The claims, if the holder of the secret `key` signed them, with `HS256`.
    ///
    /// Errors: Unauthenticated.
    pub(super) fn verified_by_secret(self, key: &[u8]) -> Result<TokenClaims, Error> {
        if self.header.alg != SECRET_ALGORITHM {
            return Err(wrong("its algorithm is not accepted"));
        }
        let key = hmac::Key::new(hmac::HMAC_SHA256, key);
        hmac::verify(&key, self.message.as_bytes(), &self.signature)
            .map_err(|_| wrong("its signature does not fit"))?;
        decoded(self.claims).map(TokenClaims)
    }

    /// The claims, if `key` signed them with one of `algorithms`, which also has to fit the kind of key.
    ///
    /// Errors: Unauthenticated.
    pub(super) fn verified(
        self,
        algorithms: &[&str],
        key: &PublicKey,
    ) -> Result<TokenClaims, Error> {
        let algorithm = self.header.alg.as_str();
        if !algorithms.contains(&algorithm) {
            return Err(wrong("its algorithm is not accepted"));
        }
        key.verify(algorithm, self.message.as_bytes(), &self.signature)
            .map_err(|_| wrong("its signature does not fit"))?;
        decoded(self.claims).map(TokenClaims)
    }
}

impl TokenClaims {
    /// A claim that is a text: neither empty nor long, and without control characters, which no name has and the
    /// database does not store.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let fits = |text: &&str| {
            (1..=TEXT_BYTES).contains(&text.len()) && !text.contains(char::is_control)
        };
        self.0.get(name)?.as_str().filter(fits)
    }

    /// A claim that is a whole number; none if absent.
    ///
    /// Errors: Unauthenticated.
    pub(super) fn number(&self, name: &str) -> Result<Option<i64>, Error> {
        let value = self.0.get(name);
        let number = value.map(|value| {
            value
                .as_i64()
                .ok_or_else(|| wrong("its numbers are malformed"))
        });
        number.transpose()
    }

    /// Whether it is present.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Whether it is present and false, also as a text, as some issuers write it.
    pub(super) fn is_false(&self, name: &str) -> bool {
        let value = self.0.get(name);
        value.is_some_and(|value| *value == false || value == "false")
    }

    /// Whether `audience` is one of `aud`.
    pub(super) fn is_for(&self, audience: &str) -> bool {
        match self.0.get("aud") {
            Some(Value::Array(several)) => several.iter().any(|one| one == audience),
            Some(one) => one == audience,
            None => false,
        }
    }

    /// Checks `exp` and `nbf`, if present.
    ///
    /// Errors: Unauthenticated.
    pub(super) fn check_times(&self, now_s: i64) -> Result<(), Error> {
        #[expect(clippy::cast_precision_loss, reason = "the clock is far below 2^53")]
        let now = now_s as f64;
        if self.time("exp")?.is_some_and(|end| now >= end) {
            return Err(wrong("it has expired: request a new one"));
        }
        if self
            .time("nbf")?
            .is_some_and(|start| now < start - LEEWAY_S)
        {
            return Err(wrong("it is not valid yet"));
        }
        Ok(())
    }

    /// Its expiry, if it has one.
    ///
    /// Errors: Unauthenticated.
    pub(super) fn expires_at(&self) -> Result<Option<Timestamp>, Error> {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "saturates, and parts of seconds go"
        )]
        let time = |seconds: f64| DateTime::from_timestamp(seconds as i64, 0);
        let malformed = || wrong("its times are malformed");
        let seconds = self.time("exp")?;
        seconds.map(|it| time(it).ok_or_else(malformed)).transpose()
    }

    /// Units: seconds since 1970.
    fn time(&self, name: &str) -> Result<Option<f64>, Error> {
        let value = self.0.get(name);
        let time = value.map(|value| {
            value
                .as_f64()
                .ok_or_else(|| wrong("its times are malformed"))
        });
        time.transpose()
    }
}

/// A token `ES256`.
///
/// Errors: Internal – signing failed.
pub(super) fn sign(key: &SigningKey, claims: &Value) -> Result<String, Error> {
    let message = message("ES256", claims);
    let signature = key.sign(message.as_bytes())?;
    Ok(format!("{message}.{}", BASE64.encode(signature)))
}

/// A token `HS256`.
pub(super) fn sign_with_secret(key: &[u8], claims: &Value) -> String {
    let message = message(SECRET_ALGORITHM, claims);
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    let signature = hmac::sign(&key, message.as_bytes());
    format!("{message}.{}", BASE64.encode(signature))
}

fn message(algorithm: &str, claims: &Value) -> String {
    let header = serde_json::json!({ "alg": algorithm, "typ": "JWT" });
    let encode = |value: &Value| BASE64.encode(value.to_string());
    format!("{}.{}", encode(&header), encode(claims))
}

fn decoded<T: DeserializeOwned>(part: &str) -> Result<T, Error> {
    let json = jws::decode(part).map_err(|_| wrong("it is not base64url"))?;
    serde_json::from_slice(&json).map_err(|_| wrong("it is not JSON"))
}

fn wrong(problem: &str) -> Error {
    unauthenticated(format!("the token is not valid: {problem}"))
}
