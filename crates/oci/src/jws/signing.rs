//! ECDSA keys as PEM text, and signatures with them. Source: RFC 5915, RFC 5958, RFC 7468.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::Error;
use p256::ecdsa::Signature;
use p256::ecdsa::signature::Signer as _;

use super::{KeyKind, PublicKey, der, wrong};

const PUBLIC_KEY: &str = "PUBLIC KEY";
const PRIVATE_KEY: &str = "PRIVATE KEY";

/// A private key of the curve P-256, for `ES256`. A message has one signature: tokens are in images, whose bytes must be
/// the same in every request for a part of them, and ring makes another signature each time.
///
/// Source: RFC 6979.
#[derive(Debug)]
pub struct SigningKey(p256::ecdsa::SigningKey);

impl PublicKey {
    /// The key of a PEM block `PUBLIC KEY`, also with the kind of key before that label, as assisted-service writes it.
    ///
    /// Errors: Invalid – no such block, unsupported kind, or damaged.
    pub fn from_pem(pem: &str) -> Result<Self, Error> {
        Self::from_spki(&block(pem, PUBLIC_KEY)?)
    }
}

impl SigningKey {
    /// The key of a PEM block `EC PRIVATE KEY` or `PRIVATE KEY`, which belongs to `public`.
    ///
    /// Errors: Invalid – no such block, another curve than P-256, damaged, or the key of another pair.
    pub fn from_pem(pem: &str, public: &PublicKey) -> Result<Self, Error> {
        if public.kind != KeyKind::P256 {
            return Err(wrong("only keys of the curve P-256 sign"));
        }
        let der = block(pem, PRIVATE_KEY)?;
        let no_pair = || wrong("the private key and the public key are no pair");
        let number = private_number(&der)?;
        let key = p256::ecdsa::SigningKey::from_slice(number).map_err(|_| no_pair())?;
        let point = key.verifying_key().to_encoded_point(false);
        if point.as_bytes() != public.bytes {
            return Err(no_pair());
        }
        Ok(Self(key))
    }

    /// The signature `ES256` of `message`.
    ///
    /// Errors: Internal – signing failed.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let signature: Result<Signature, _> = self.0.try_sign(message);
        let signature = signature.map_err(|error| Error::internal("signing", error))?;
        Ok(signature.to_vec())
    }
}

/// The private number of an `ECPrivateKey`, which `PrivateKeyInfo` wraps.
fn private_number(bytes: &[u8]) -> Result<&[u8], Error> {
    let (content, _) = der::take(der::SEQUENCE, bytes)?;
    let (_version, rest) = der::take(der::INTEGER, content)?;
    if let Ok((number, _)) = der::take(der::OCTET_STRING, rest) {
        return Ok(number);
    }
    let (_algorithm, rest) = der::take(der::SEQUENCE, rest)?;
    let (inner, _) = der::take(der::OCTET_STRING, rest)?;
    let (content, _) = der::take(der::SEQUENCE, inner)?;
    let (_version, rest) = der::take(der::INTEGER, content)?;
    der::take(der::OCTET_STRING, rest).map(|(number, _)| number)
}

/// The content of the first block whose label ends with `label`.
fn block(pem: &str, label: &str) -> Result<Vec<u8>, Error> {
    let missing = || {
        wrong(format!(
            "there is no PEM block {label:?}: give the whole key, which begins with -----BEGIN {label}----- or has the \
             kind of key before that label; `atoll token keys` makes a pair"
        ))
    };
    let mut rest = pem;
    while let Some((_, after)) = rest.split_once("-----BEGIN ") {
        let (found, after) = after.split_once("-----").ok_or_else(missing)?;
        let (body, after) = after.split_once("-----END ").ok_or_else(missing)?;
        if found.ends_with(label) {
            let base64: String = body.split_whitespace().collect();
            return STANDARD
                .decode(base64)
                .map_err(|_| wrong(format!("the PEM block {found:?} is not base64")));
        }
        rest = after;
    }
    Err(missing())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Written by openssl 3: `ecparam -name prime256v1 -genkey`, `pkcs8 -topk8 -nocrypt`, `ec -pubout`.
    const SEC1: &str = "-----BEGIN EC PARAMETERS-----\n\
        BggqhkjOPQMBBw==\n\
        -----END EC PARAMETERS-----\n\
        -----BEGIN EC PRIVATE KEY-----\n\
        MHcCAQEEIJ+vybWgOQfC+CnEdbzj8WaxftvirEaRY+zo9wfzxrfcoAoGCCqGSM49\n\
        AwEHoUQDQgAEJVDWCdpeHNz7E4H+F8O7TXIFrdLvh/nygRnOs6lE3HZ8zI/GaAE+\n\
        j1mgexoCm3dmGp8z++QvoVAo1dZhe6kO7A==\n\
        -----END EC PRIVATE KEY-----\n";
    const PKCS8: &str = "-----BEGIN PRIVATE KEY-----\n\
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgn6/JtaA5B8L4KcR1\n\
        vOPxZrF+2+KsRpFj7Oj3B/PGt9yhRANCAAQlUNYJ2l4c3PsTgf4Xw7tNcgWt0u+H\n\
        +fKBGc6zqUTcdnzMj8ZoAT6PWaB7GgKbd2YanzP75C+hUCjV1mF7qQ7s\n\
        -----END PRIVATE KEY-----\n";
    const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\n\
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEJVDWCdpeHNz7E4H+F8O7TXIFrdLv\n\
        h/nygRnOs6lE3HZ8zI/GaAE+j1mgexoCm3dmGp8z++QvoVAo1dZhe6kO7A==\n\
        -----END PUBLIC KEY-----\n";
    const OTHER: &str = "-----BEGIN PUBLIC KEY-----\n\
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEQXlv1Mjsi5s2CbNcHvjlnBnezsFc\n\
        WawM1YJdKr2bj3NBHf3RLd91zwHvPCDVY7UoSNYgP42jFuhfFd3lLzJb6g==\n\
        -----END PUBLIC KEY-----\n";

    #[test]
    fn both_forms_of_a_private_key_sign() {
        let public = PublicKey::from_pem(PUBLIC).unwrap();
        for private in [SEC1, PKCS8] {
            let key = SigningKey::from_pem(private, &public).unwrap();
            let signature = key.sign(b"a message").unwrap();
            public.verify("ES256", b"a message", &signature).unwrap();
            public.verify("ES256", b"another", &signature).unwrap_err();
        }
    }

    /// Source: RFC 6979, A.2.5, P-256 with SHA-256.
    #[test]
    fn a_message_has_one_signature() {
        let bytes = |hex: &str| hex::decode(hex).unwrap();
        let number = bytes("c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721");
        let key = SigningKey(p256::ecdsa::SigningKey::from_slice(&number).unwrap());
        let expected = bytes(
            "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716\
             f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8",
        );
        assert_eq!(key.sign(b"sample").unwrap(), expected);
    }

    #[test]
    fn labels_name_the_kind_of_key() {
        let labelled = PUBLIC.replace("PUBLIC KEY", "EC PUBLIC KEY");
        assert_eq!(
            PublicKey::from_pem(&labelled).unwrap(),
            PublicKey::from_pem(PUBLIC).unwrap()
        );
    }

    #[test]
    fn keys_of_another_pair_are_refused() {
        let other = PublicKey::from_pem(OTHER).unwrap();
        SigningKey::from_pem(SEC1, &other).unwrap_err();
        SigningKey::from_pem(PUBLIC, &other).unwrap_err();
        PublicKey::from_pem(SEC1).unwrap_err();
    }

    proptest! {
        #[test]
        fn anything_is_read_or_refused(text in "[-BEGIN A-Z]{0,60}", bytes: Vec<u8>) {
            block(&text, PRIVATE_KEY).ok();
            private_number(&bytes).ok();
        }
    }
}
