//! One token. Source: RFC 7515, RFC 7519.

use model::Error;
use oci::jws::{self, Jwk, PublicKey};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::auth::grants::Grants;

/// Units: seconds. How far clocks may be apart. Source: distribution.
const LEEWAY_S: f64 = 60.0;

/// Claims that tokens must have to be accepted.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) issuer: String,
    pub(super) service: String,
    /// How they may be signed; empty for all that is known.
    pub(super) algorithms: Vec<String>,
}

/// A token before its verification.
#[derive(Debug)]
pub(super) struct Jwt<'a> {
    header: Header,
    /// The signed part.
    message: &'a str,
    claims: &'a str,
    signature: Vec<u8>,
}

/// Says how a token is signed.
#[derive(Debug, Deserialize)]
pub(super) struct Header {
    alg: String,
    #[serde(default)]
    pub(super) kid: Option<String>,
    #[serde(default)]
    pub(super) jwk: Option<Jwk>,
    #[serde(default)]
    pub(super) x5c: Vec<String>,
}

/// Claims of a token.
#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    #[serde(default)]
    iss: String,
    #[serde(default)]
    sub: String,
    aud: Option<Audience>,
    /// Units: seconds since 1970.
    exp: Option<f64>,
    nbf: Option<f64>,
    #[serde(default)]
    pub(super) access: Grants,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

impl<'a> Jwt<'a> {
    /// Errors: Invalid – that is no token.
    pub(super) fn parse(text: &'a str) -> Result<Self, Error> {
        let parts: Vec<_> = text.split('.').collect();
        let [header, claims, signature] = parts[..] else {
            return Err(wrong("it has not three parts"));
        };
        Ok(Self {
            header: decoded(header)?,
            message: &text[..header.len() + 1 + claims.len()],
            claims,
            signature: jws::decode(signature)?,
        })
    }

    pub(super) fn header(&self) -> &Header {
        &self.header
    }

    /// Whether one of `keys` signed it. Errors: Invalid – none did, or not in a way that is wanted.
    pub(super) fn verify(&self, expected: &Expected, keys: &[PublicKey]) -> Result<(), Error> {
        let algorithm = &self.header.alg;
        if !expected.algorithms.is_empty() && !expected.algorithms.contains(algorithm) {
            return Err(wrong(format!("{algorithm:?} is not wanted")));
        }
        let message = self.message.as_bytes();
        let mut result = Err(wrong("its key is not known here"));
        for key in keys {
            result = key.verify(algorithm, message, &self.signature);
            if result.is_ok() {
                break;
            }
        }
        result
    }

    /// Its claims; call [`Jwt::verify`] first. Errors: Invalid – another audience or time.
    pub(super) fn claims(&self, expected: &Expected, now: u64) -> Result<Claims, Error> {
        let claims: Claims = decoded(self.claims)?;
        if claims.iss != expected.issuer {
            return Err(wrong(format!("{:?} gave it", claims.iss)));
        }
        let is_for_us = match &claims.aud {
            None => false,
            Some(Audience::One(name)) => *name == expected.service,
            Some(Audience::Several(names)) => names.contains(&expected.service),
        };
        if !is_for_us {
            return Err(wrong(format!("it is for {:?}", claims.aud)));
        }
        #[expect(clippy::cast_precision_loss, reason = "the clock is far below 2^53")]
        let now = now as f64;
        match (claims.exp, claims.nbf) {
            (None, _) => Err(wrong("it does not say until when it counts")),
            (Some(end), _) if now > end + LEEWAY_S => Err(wrong("it counts no more")),
            (_, Some(begin)) if now < begin - LEEWAY_S => Err(wrong("it does not count yet")),
            _ => Ok(claims),
        }
    }
}

impl Claims {
    /// The user that the token was issued to.
    pub(super) fn subject(&self) -> Option<&str> {
        Some(self.sub.as_str()).filter(|sub| !sub.is_empty())
    }
}

fn decoded<T: DeserializeOwned>(part: &str) -> Result<T, Error> {
    serde_json::from_slice(&jws::decode(part)?).map_err(|e| wrong(e.to_string()))
}

fn wrong(reason: impl Into<String>) -> Error {
    Error::invalid("token", reason)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn claims(body: &Value) -> Result<Claims, Error> {
        let expected = Expected {
            issuer: "us".to_owned(),
            service: "registry".to_owned(),
            algorithms: Vec::new(),
        };
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}.", encode(&json!({"alg": "ES256"})), encode(body));
        Jwt::parse(&text)?.claims(&expected, NOW)
    }

    #[test]
    fn tokens_for_others_and_for_other_times_do_not_count() {
        let good = json!({"iss": "us", "aud": ["x", "registry"], "exp": NOW - 59, "nbf": NOW + 59,
            "sub": "me", "iat": 1, "jti": "x"});
        let claims = |change: Value| {
            let mut body = good.clone();
            body.as_object_mut()
                .unwrap()
                .extend(change.as_object().unwrap().clone());
            super::tests::claims(&body)
        };
        assert_eq!(claims(json!({})).unwrap().subject(), Some("me"));
        assert_eq!(claims(json!({"sub": ""})).unwrap().subject(), None);
        claims(json!({"aud": "registry", "nbf": null})).unwrap();
        claims(json!({"exp": 2e9})).unwrap();
        for change in [
            json!({"iss": "them"}),
            json!({"aud": "x"}),
            json!({"aud": null}),
            json!({"exp": NOW - 61}),
            json!({"exp": null}),
            json!({"exp": "soon"}),
            json!({"nbf": NOW + 61}),
            json!({"access": "all"}),
        ] {
            claims(change.clone()).expect_err(&change.to_string());
        }
    }

    proptest! {
        #[test]
        fn anything_is_read_or_refused(text in "[a-zA-Z0-9_.-]{0,80}") {
            Jwt::parse(&text).ok();
        }
    }
}
