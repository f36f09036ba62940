//! Public keys and signatures of JOSE. Source: RFC 7517, RFC 7518.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::Error;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, UnparsedPublicKey, VerificationAlgorithm,
};
use serde::Deserialize;

/// A public key as JSON has it.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Jwk {
    /// `EC`, `RSA` or `OKP`.
    pub kty: String,
    /// The curve.
    #[serde(default)]
    pub crv: String,
    /// What others call it.
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
pub struct Key {
    kind: Kind,
    /// A point, or RSA's `RSAPublicKey`.
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    P256,
    P384,
    Ed25519,
    Rsa,
}

/// Which kind of key makes signatures of which name, and how they are verified.
static ALGORITHMS: &[(&str, Kind, &(dyn VerificationAlgorithm + Sync))] = &[
    ("ES256", Kind::P256, &ECDSA_P256_SHA256_FIXED),
    ("ES384", Kind::P384, &ECDSA_P384_SHA384_FIXED),
    ("EdDSA", Kind::Ed25519, &ED25519),
    ("RS256", Kind::Rsa, &RSA_PKCS1_2048_8192_SHA256),
    ("RS384", Kind::Rsa, &RSA_PKCS1_2048_8192_SHA384),
    ("RS512", Kind::Rsa, &RSA_PKCS1_2048_8192_SHA512),
    ("PS256", Kind::Rsa, &RSA_PSS_2048_8192_SHA256),
    ("PS384", Kind::Rsa, &RSA_PSS_2048_8192_SHA384),
    ("PS512", Kind::Rsa, &RSA_PSS_2048_8192_SHA512),
];

impl Key {
    /// The key that a JWK describes.
    ///
    /// Errors: Invalid – of a kind that is not known here, or damaged.
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
            ("EC", "P-256") => point(Kind::P256, 32),
            ("EC", "P-384") => point(Kind::P384, 48),
            ("OKP", "Ed25519") => Ok(Self {
                kind: Kind::Ed25519,
                bytes: decode(&jwk.x)?,
            }),
            ("RSA", _) => Ok(Self {
                kind: Kind::Rsa,
                bytes: rsa_public_key(&decode(&jwk.n)?, &decode(&jwk.e)?),
            }),
            (kty, crv) => Err(wrong(format!(
                "keys of kind {:?} are not known here",
                format!("{kty} {crv}").trim()
            ))),
        }
    }

    /// Whether the key signed `message`, as `algorithm` does.
    ///
    /// Errors: Invalid – it did not, or the algorithm is not the key's.
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

/// Decodes what stands in JOSE: base64url without padding.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, Error> {
    URL_SAFE_NO_PAD
        .decode(text)
        .map_err(|_| wrong("it is not base64url without padding"))
}

pub(crate) fn wrong(reason: impl Into<String>) -> Error {
    Error::invalid("signature", reason)
}

/// `SEQUENCE { INTEGER n, INTEGER e }`. Source: RFC 8017, A.1.1.
fn rsa_public_key(n: &[u8], e: &[u8]) -> Vec<u8> {
    let integer = |bytes: &[u8]| {
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        // Positive numbers begin with a zero bit.
        element(2, &[&[0], &bytes[zeros..]].concat())
    };
    element(0x30, &[integer(n), integer(e)].concat())
}

/// Tag, length, content. Source: X.690; lengths up to 65 535.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let content = match content {
        // The zero only where the sign would be read wrong.
        [0, first, ..] if tag == 2 && first & 0x80 == 0 => &content[1..],
        content => content,
    };
    let length = content.len().to_be_bytes();
    let [.., high, low] = length;
    let head = match content.len() {
        0..0x80 => vec![tag, low],
        0x80..0x100 => vec![tag, 0x81, low],
        _ => vec![tag, 0x82, high, low],
    };
    [head, content.to_vec()].concat()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(jwk: serde_json::Value) -> Result<Key, Error> {
        Key::parse(&serde_json::from_value(jwk).unwrap())
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

    #[test]
    fn what_is_no_key() {
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
