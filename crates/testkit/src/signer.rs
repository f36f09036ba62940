//! Release signatures for tests: keys, claims and signatures.

use oci::Digest;
pub use pgp::crypto::hash::HashAlgorithm;

use pgp::composed::{
    ArmorOptions, KeyType, MessageBuilder, SecretKeyParamsBuilder, SignedPublicKey,
    SignedSecretKey, SubkeyParamsBuilder,
};
use pgp::types::{CompressionAlgorithm, Password, SigningKey};
use rand08::rngs::OsRng;
use serde_json::{Value, json};

/// A key, and another one below it.
#[derive(Debug)]
pub struct Signer(pub SignedSecretKey);

impl Signer {
    /// A new one.
    pub fn new() -> anyhow::Result<Self> {
        let subkey = SubkeyParamsBuilder::default()
            .key_type(KeyType::Ed25519Legacy)
            .can_sign(true)
            .build()?;
        let key = SecretKeyParamsBuilder::default()
            .key_type(KeyType::Ed25519Legacy)
            .can_certify(true)
            .can_sign(true)
            .primary_user_id("maker <maker@example.org>".into())
            .subkey(subkey)
            .build()?;
        Ok(Self(key.generate(OsRng)?))
    }

    /// The public keys, as `gpg --export --armor` writes them.
    pub fn public(&self) -> anyhow::Result<Vec<u8>> {
        let public = SignedPublicKey::from(self.0.clone());
        Ok(public.to_armored_bytes(ArmorOptions::default())?)
    }

    /// A signature of the release image with that digest.
    pub fn sign(&self, digest: &Digest) -> anyhow::Result<Vec<u8>> {
        signed(&self.0.primary_key, HashAlgorithm::Sha256, &claim(digest))
    }
}

/// Signed claim that the image with that digest is a release.
pub fn claim(digest: &Digest) -> Value {
    json!({
        "critical": {
            "type": "atomic container signature",
            "image": {"docker-manifest-digest": digest},
            "identity": {"docker-reference": "up.example/release:1"},
        },
        "optional": {"creator": "test"},
    })
}

/// A claim with its signature, compressed as `gpg` does.
pub fn signed(
    key: &impl SigningKey,
    hash: HashAlgorithm,
    claim: &Value,
) -> anyhow::Result<Vec<u8>> {
    let mut message = MessageBuilder::from_bytes("", claim.to_string().into_bytes());
    message.compression(CompressionAlgorithm::ZIP);
    message.sign(key, Password::empty(), hash);
    Ok(message.to_vec(OsRng)?)
}
