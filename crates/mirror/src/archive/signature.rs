//! Signatures of archive sets: ed25519 over the bytes of the index, which has the digests of everything else.
//!
//! Keys have the format of `openssl genpkey -algorithm ed25519` and `openssl pkey -pubout`; `openssl pkeyutl -verify
//! -rawin` verifies the signature.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::Error;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{
    ED25519, ED25519_PUBLIC_KEY_LEN, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use secrecy::SecretString;

/// Units: bytes.
pub const SIGNATURE_BYTES: usize = 64;
/// DER prefix of a public key. Source: RFC 8410.
const KEY_INFO: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// DER prefix of a private key. Source: RFC 8410, section 7.
const PRIVATE_INFO: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];
/// Units: bytes.
const SEED_BYTES: usize = 32;
/// Units: characters. Source: RFC 7468.
const PEM_LINE: usize = 64;

/// Signs archive sets.
pub struct Signer(Ed25519KeyPair);

/// Verifies signatures of archive sets with one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verifier([u8; ED25519_PUBLIC_KEY_LEN]);

impl Signer {
    /// Parses a private key in PEM.
    ///
    /// Errors: Invalid.
    pub fn from_pem(pem: &[u8]) -> Result<Self, Error> {
        let wrong = || {
            let hint =
                "no ed25519 key in PKCS#8 and PEM; `openssl genpkey -algorithm ed25519` makes one";
            Error::invalid("private key", hint)
        };
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem).map_err(|_| wrong())?;
        // Keys of OpenSSL come without their public half.
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.secret_pkcs8_der());
        Ok(Self(pair.map_err(|_| wrong())?))
    }

    /// Generates a key, with its private half in PEM.
    ///
    /// Errors: Internal – the machine has no random numbers.
    pub fn generate() -> Result<(Self, SecretString), Error> {
        let failed = || Error::internal("making a key", "the machine gives no random numbers");
        let mut seed = [0; SEED_BYTES];
        SystemRandom::new().fill(&mut seed).map_err(|_| failed())?;
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| failed())?;
        let text = pem("PRIVATE KEY", &[&PRIVATE_INFO[..], &seed].concat());
        Ok((Self(pair), text.into()))
    }

    /// The verifier of its signatures.
    pub fn verifier(&self) -> Verifier {
        let mut key = [0; ED25519_PUBLIC_KEY_LEN];
        key.copy_from_slice(self.0.public_key().as_ref());
        Verifier(key)
    }

    /// The signature of these bytes.
    pub fn sign(&self, index: &[u8]) -> Vec<u8> {
        self.0.sign(index).as_ref().to_vec()
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signer")
    }
}

impl Verifier {
    /// Parses a public key in PEM.
    ///
    /// Errors: Invalid.
    pub fn from_pem(pem: &[u8]) -> Result<Self, Error> {
        let key = SubjectPublicKeyInfoDer::from_pem_slice(pem)
            .ok()
            .and_then(|der| der.as_ref().strip_prefix(&KEY_INFO)?.try_into().ok());
        key.map(Self).ok_or_else(|| {
            let hint =
                "no ed25519 key in PEM; `openssl pkey -in KEY -pubout` makes one of a private key";
            Error::invalid("public key", hint)
        })
    }

    /// The public key in PEM.
    pub fn to_pem(&self) -> String {
        pem("PUBLIC KEY", &[&KEY_INFO[..], &self.0].concat())
    }

    /// Whether the signature is of this key and these bytes.
    pub fn accepts(&self, index: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, self.0)
            .verify(index, signature)
            .is_ok()
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut lines = Vec::new();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, others) = rest.split_at(rest.len().min(PEM_LINE));
        lines.push(line);
        rest = others;
    }
    let body = lines.join("\n");
    format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    // Made by `openssl genpkey` and `openssl pkey -pubout`.
    const PRIVATE: &[u8] = b"-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIClrhw32fLDg6HwgWcy3x/EeeMnOpNXIDWBWEwq2WsUg\n-----END PRIVATE KEY-----\n";
    const PUBLIC: &[u8] = b"-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAFnCGWGB6kWWR4jfQOV/FOPl5U2rhDs/K+TnZY/OhdlU=\n-----END PUBLIC KEY-----\n";
    const SIGNED: &str = "bcaa55b7a83b0db680c0dab90328c78323368599068e2f539130588d81186193";

    #[test]
    fn keys_and_signatures_are_those_of_openssl() {
        let signer = Signer::from_pem(PRIVATE).unwrap();
        let verifier = Verifier::from_pem(PUBLIC).unwrap();
        assert_eq!(signer.verifier(), verifier);
        let signature = signer.sign(b"index\n");
        assert_eq!(oci::Digest::sha256(&signature).hex(), SIGNED);
        assert!(verifier.accepts(b"index\n", &signature));
        assert!(!verifier.accepts(b"index", &signature));
    }

    #[test]
    fn made_keys_are_read_again() {
        assert_eq!(
            Verifier::from_pem(PUBLIC).unwrap().to_pem().as_bytes(),
            PUBLIC
        );
        let (signer, text) = Signer::generate().unwrap();
        let text = text.expose_secret();
        let again = Signer::from_pem(text.as_bytes()).unwrap();
        assert_eq!(again.verifier(), signer.verifier());
        assert_ne!(Signer::generate().unwrap().0.verifier(), signer.verifier());
        let ours: Vec<_> = text.lines().map(str::len).collect();
        let theirs = str::from_utf8(PRIVATE).unwrap().lines().map(str::len);
        assert_eq!(ours, theirs.collect::<Vec<_>>());
    }

    #[test]
    fn other_things_are_no_keys() {
        for other in [b"".as_slice(), b"x", PUBLIC] {
            let error = Signer::from_pem(other).unwrap_err().to_string();
            assert!(error.contains("openssl genpkey"), "{error}");
        }
        assert!(Verifier::from_pem(PRIVATE).is_err());
    }
}
