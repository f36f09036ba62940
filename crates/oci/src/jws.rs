//! Public keys and signatures of JOSE. Source: RFC 7517, RFC 7518.

mod certificates;
mod der;
mod signing;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::Error;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, UnparsedPublicKey, VerificationAlgorithm,
};
use serde::Deserialize;
use serde_json::json;

use crate::Digest;

pub use certificates::Certificates;
pub use signing::SigningKey;

/// A public key as JSON (JWK).
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Jwk {
    /// `EC`, `RSA` or `OKP`.
    pub kty: String,
    /// The curve.
    #[serde(default)]
    pub crv: String,
    /// Key id.
    #[serde(default)]
    pub kid: String,
    #[serde(default)]
    x: String,
    #[serde(default)]
    y: String,
    #[serde(default)]
    n: String,
    #[serde(default)]
    e: String,
}

/// A public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    kind: KeyKind,
    /// A point, or RSA's `RSAPublicKey`.
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyKind {
    P256,
    P384,
    Ed25519,
    Rsa,
}

/// The signature algorithms by name: kind of key and verification.
static ALGORITHMS: &[(&str, KeyKind, &(dyn VerificationAlgorithm + Sync))] = &[
    ("ES256", KeyKind::P256, &ECDSA_P256_SHA256_FIXED),
    ("ES384", KeyKind::P384, &ECDSA_P384_SHA384_FIXED),
    ("EdDSA", KeyKind::Ed25519, &ED25519),
    ("RS256", KeyKind::Rsa, &RSA_PKCS1_2048_8192_SHA256),
    ("RS384", KeyKind::Rsa, &RSA_PKCS1_2048_8192_SHA384),
    ("RS512", KeyKind::Rsa, &RSA_PKCS1_2048_8192_SHA512),
    ("PS256", KeyKind::Rsa, &RSA_PSS_2048_8192_SHA256),
    ("PS384", KeyKind::Rsa, &RSA_PSS_2048_8192_SHA384),
    ("PS512", KeyKind::Rsa, &RSA_PSS_2048_8192_SHA512),
];

/// The kinds of keys by their algorithm in certificates.
static SPKI_ALGORITHMS: &[(&[u8], KeyKind)] = &[
    (
        b"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07",
        KeyKind::P256,
    ),
    (
        b"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x22",
        KeyKind::P384,
    ),
    (b"\x06\x03\x2b\x65\x70", KeyKind::Ed25519),
    (
        b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00",
        KeyKind::Rsa,
    ),
];

impl PublicKey {
    /// The key that a JWK describes.
    ///
    /// Errors: Invalid – unsupported kind, or damaged.
    pub fn parse(jwk: &Jwk) -> Result<Self, Error> {
        let point = |kind, length| {
            let (x, y) = (decode(&jwk.x)?, decode(&jwk.y)?);
            if x.len() != length || y.len() != length {
                return Err(wrong("a coordinate has another length than the curve's"));
            }
            let bytes = [&[4], x.as_slice(), &y].concat();
            Ok(Self { kind, bytes })
        };
        match (jwk.kty.as_str(), jwk.crv.as_str()) {
            ("EC", "P-256") => point(KeyKind::P256, 32),
            ("EC", "P-384") => point(KeyKind::P384, 48),
            ("OKP", "Ed25519") => Ok(Self {
                kind: KeyKind::Ed25519,
                bytes: decode(&jwk.x)?,
            }),
            ("RSA", _) => Ok(Self {
                kind: KeyKind::Rsa,
                bytes: der::rsa_public_key(&decode(&jwk.n)?, &decode(&jwk.e)?),
            }),
            (kty, crv) => Err(wrong(format!(
                "keys of kind {:?} are not supported",
                format!("{kty} {crv}").trim()
            ))),
        }
    }

    /// The key of a certificate: its `SubjectPublicKeyInfo`. Source: RFC 5280, 4.1.
    ///
    /// Errors: Invalid – unsupported kind, or damaged.
    pub fn from_spki(spki: &[u8]) -> Result<Self, Error> {
        let (content, _) = der::take(der::SEQUENCE, spki)?;
        let (algorithm, bits) = der::take(der::SEQUENCE, content)?;
        let kind = SPKI_ALGORITHMS
            .iter()
            .find(|(known, _)| *known == algorithm)
            .ok_or_else(|| wrong("certificates with such keys are not supported"))?
            .1;
        let (bits, _) = der::take(der::BIT_STRING, bits)?;
        let bytes = bits.strip_prefix(&[0]).unwrap_or(bits).to_vec();
        Ok(Self { kind, bytes })
    }

    /// The thumbprint, the default id of a key. Source: RFC 7638.
    pub fn thumbprint(&self) -> String {
        let coordinates = || {
            let point = self.bytes.get(1..).unwrap_or_default();
            let (x, y) = point.split_at(point.len() / 2);
            (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y))
        };
        // Members are sorted, without white space.
        let members = match self.kind {
            KeyKind::P256 | KeyKind::P384 => {
                let crv = if self.kind == KeyKind::P256 {
                    "P-256"
                } else {
                    "P-384"
                };
                let (x, y) = coordinates();
                json!({"crv": crv, "kty": "EC", "x": x, "y": y})
            }
            KeyKind::Ed25519 => {
                json!({"crv": "Ed25519", "kty": "OKP", "x": URL_SAFE_NO_PAD.encode(&self.bytes)})
            }
            KeyKind::Rsa => {
                let [n, e] = der::rsa_public_key_parts(&self.bytes)
                    .unwrap_or_default()
                    .map(|number| URL_SAFE_NO_PAD.encode(number));
                json!({"e": e, "kty": "RSA", "n": n})
            }
        };
        let digest = Digest::sha256(members.to_string().as_bytes());
        URL_SAFE_NO_PAD.encode(hex::decode(digest.hex()).unwrap_or_default())
    }

    /// Verifies a signature of `message`.
    ///
    /// Errors: Invalid – it does not match, or the algorithm does not fit the key.
    pub fn verify(&self, algorithm: &str, message: &[u8], signature: &[u8]) -> Result<(), Error> {
        let known = ALGORITHMS
            .iter()
            .find(|(name, kind, _)| *name == algorithm && *kind == self.kind);
        let Some((_, _, verification)) = known else {
            return Err(wrong(format!(
                "{algorithm:?} is not an algorithm for this key"
            )));
        };
        UnparsedPublicKey::new(*verification, &self.bytes)
            .verify(message, signature)
            .map_err(|_| wrong("it does not match what it signs"))
    }
}

/// Decodes base64url without padding, as JOSE uses it.
///
/// Errors: Invalid.
pub fn decode(text: &str) -> Result<Vec<u8>, Error> {
    URL_SAFE_NO_PAD
        .decode(text)
        .map_err(|error| wrong(format!("it is not base64url without padding: {error}")))
}

pub(crate) fn wrong(reason: impl Into<String>) -> Error {
    Error::invalid("signature", reason)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(jwk: serde_json::Value) -> Result<PublicKey, Error> {
        PublicKey::parse(&serde_json::from_value(jwk).unwrap())
    }

    /// Source: RFC 7515, A.3.
    #[test]
    fn the_example_for_elliptic_curves() {
        let jwk = json!({"kty": "EC", "crv": "P-256",
            "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
            "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"});
        let message = b"eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
        let signature = decode(
            "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
        )
        .unwrap();
        let key = key(jwk).unwrap();
        key.verify("ES256", message, &signature).unwrap();
        key.verify("RS256", message, &signature).unwrap_err();
        key.verify("none", message, b"").unwrap_err();
        key.verify("ES256", b"another", &signature).unwrap_err();
        key.verify("ES256", message, &signature[1..]).unwrap_err();
    }

    /// Source: RFC 7515, A.2.
    #[test]
    fn the_example_for_rsa() {
        let jwk = json!({"kty": "RSA", "e": "AQAB",
            "n": "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"});
        let message = b"eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
        let signature = decode(
            "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw",
        )
        .unwrap();
        let key = key(jwk).unwrap();
        key.verify("RS256", message, &signature).unwrap();
        key.verify("PS256", message, &signature).unwrap_err();
    }

    /// Source: RFC 8037, A.4.
    #[test]
    fn the_example_for_edwards_curves() {
        let jwk = json!({"kty": "OKP", "crv": "Ed25519",
            "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
        let message = b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
        let signature = decode(
            "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
        )
        .unwrap();
        key(jwk)
            .unwrap()
            .verify("EdDSA", message, &signature)
            .unwrap();
    }

    /// Source: RFC 7638, 3.1.
    #[test]
    fn the_example_for_thumbprints() {
        let jwk = json!({"kty": "RSA", "e": "AQAB",
            "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"});
        let thumbprint = key(jwk).unwrap().thumbprint();
        assert_eq!(thumbprint, "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
    }

    #[test]
    fn malformed_keys_are_refused() {
        for jwk in [
            json!({"kty": "EC", "crv": "P-521", "x": "AA", "y": "AA"}),
            json!({"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}),
            json!({"kty": "EC", "crv": "P-256", "x": "?", "y": "AA"}),
            json!({"kty": "oct", "k": "AA"}),
        ] {
            key(jwk.clone()).expect_err(&jwk.to_string());
        }
    }
}
