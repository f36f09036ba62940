//! Keyrings of trusted keys.

use std::io::Read as _;

use pgp::composed::{
    Deserializable as _, Message, SignedPublicKey, SignedPublicSubKey, VerificationResult,
};
use pgp::crypto::hash::HashAlgorithm;
use pgp::packet::{Signature, SignatureType};
use pgp::types::VerifyingKey;

use model::Error;

/// Units: bytes. Largest signed content; release signatures take a thousandth of it.
const CONTENT_LIMIT_BYTES: u64 = 1 << 20;
/// Limit of nested compressions.
const COMPRESSIONS: usize = 2;
/// Header of an armored key.
const ARMOR: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----";

/// Trusted public keys.
#[derive(Debug, Clone)]
pub struct Keyring(Vec<SignedPublicKey>);

impl Keyring {
    /// Reads public keys as written by `gpg --export`, with `--armor` or without.
    ///
    /// Errors: Invalid – no key.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let wrong = |reason: String| Error::invalid("keyring", reason);
        let mut keys = Vec::new();
        for block in blocks(bytes) {
            let read = SignedPublicKey::from_reader_many(block);
            let (found, _) = read.map_err(|e| wrong(format!("expected public keys: {e}")))?;
            for key in found {
                keys.push(key.map_err(|e| wrong(format!("one of its keys cannot be read: {e}")))?);
            }
        }
        if keys.is_empty() {
            return Err(wrong(
                "it has no key: `gpg --export --armor` writes some".to_owned(),
            ));
        }
        Ok(Self(keys))
    }

    /// The signed content, if a trusted key signed it.
    ///
    /// Errors: the reason of its refusal.
    pub(super) fn content(&self, signed: &[u8]) -> Result<Vec<u8>, String> {
        let unreadable = |e: pgp::errors::Error| format!("it is no signed message: {e}");
        let mut message = Message::from_bytes(signed).map_err(unreadable)?;
        for _ in 0..COMPRESSIONS {
            if message.is_compressed() {
                message = message.decompress().map_err(unreadable)?;
            }
        }
        if !message.is_signed() {
            return Err("it is not signed".to_owned());
        }
        let mut content = Vec::new();
        let mut limited = (&mut message).take(CONTENT_LIMIT_BYTES + 1);
        let read = limited.read_to_end(&mut content);
        read.map_err(|e| format!("it cannot be read: {e}"))?;
        if content.len() as u64 > CONTENT_LIMIT_BYTES {
            return Err(format!("it is longer than {CONTENT_LIMIT_BYTES} bytes"));
        }
        let verified = message.verify_nested(&self.signers());
        let verified = verified.map_err(|e| format!("it cannot be verified: {e}"))?;
        let counts = |result: &VerificationResult| match result {
            VerificationResult::Valid(signature) => is_strong(signature),
            VerificationResult::Invalid => false,
        };
        if verified.iter().any(counts) {
            return Ok(content);
        }
        Err("no key of the keyring has signed it".to_owned())
    }

    /// The keys that may sign: the keys of the ring, and their subkeys for signatures.
    fn signers(&self) -> Vec<&dyn VerifyingKey> {
        let mut signers: Vec<&dyn VerifyingKey> = Vec::new();
        let is_valid = |key: &&SignedPublicKey| key.details.revocation_signatures.is_empty();
        for key in self.0.iter().filter(is_valid) {
            signers.push(&key.primary_key);
            for subkey in &key.public_subkeys {
                if may_sign(key, subkey) {
                    signers.push(&subkey.key);
                }
            }
        }
        signers
    }
}

/// Whether a subkey is bound to the key, for signatures.
fn may_sign(key: &SignedPublicKey, subkey: &SignedPublicSubKey) -> bool {
    let mut signatures = subkey.signatures.iter();
    // A revocation among the bindings makes them fail.
    subkey.verify_bindings(&key.primary_key).is_ok()
        && signatures.any(|signature| signature.key_flags().sign())
}

/// Whether it signs a document, with a collision-resistant hash.
fn is_strong(signature: &Signature) -> bool {
    let is_document = matches!(
        signature.typ(),
        Some(SignatureType::Binary | SignatureType::Text)
    );
    let is_safe = matches!(
        signature.hash_alg(),
        Some(
            HashAlgorithm::Sha256
                | HashAlgorithm::Sha384
                | HashAlgorithm::Sha512
                | HashAlgorithm::Sha3_256
                | HashAlgorithm::Sha3_512
        )
    );
    is_document && is_safe
}

/// Splits armored keys, of which a file may have several.
fn blocks(bytes: &[u8]) -> Vec<&[u8]> {
    let Some(text) = str::from_utf8(bytes).ok().filter(|it| it.contains(ARMOR)) else {
        return vec![bytes];
    };
    let mut starts: Vec<usize> = text.match_indices(ARMOR).map(|(at, _)| at).collect();
    starts.push(text.len());
    let pairs = starts.windows(2);
    pairs.map(|pair| &bytes[pair[0]..pair[1]]).collect()
}
