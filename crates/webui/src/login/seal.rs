//! Sealing of cookies: AES-256-GCM under a key that all replicas share.

use data_encoding::BASE64URL_NOPAD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::digest;
use ring::rand::{SecureRandom as _, SystemRandom};

/// Use of a sealed text. It is authenticated, so that no cookie passes for one of another use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SealPurpose {
    /// Tokens of a person.
    Session,
    /// A log-in in progress.
    LogIn,
}

/// Seals and opens cookies.
pub(super) struct SealingKey(LessSafeKey);

impl SealPurpose {
    fn name(self) -> &'static [u8] {
        match self {
            Self::Session => b"atoll session 1",
            Self::LogIn => b"atoll log-in 1",
        }
    }
}

impl SealingKey {
    /// The key of a shared secret of any length.
    pub(super) fn of_secret(secret: &str) -> Self {
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(b"atoll webui cookies 1\0");
        context.update(secret.as_bytes());
        Self::of_bytes(context.finish().as_ref())
    }

    /// A key of this process alone.
    pub(super) fn random() -> Self {
        Self::of_bytes(&random_bytes::<32>())
    }

    fn of_bytes(bytes: &[u8]) -> Self {
        let key = UnboundKey::new(&AES_256_GCM, bytes).expect("a digest of SHA-256 has 32 bytes");
        Self(LessSafeKey::new(key))
    }

    /// The sealed text, in characters of cookies. Random nonces are safe for 2^32 texts of one key.
    pub(super) fn seal(&self, purpose: SealPurpose, plain: &[u8]) -> String {
        let nonce = random_bytes::<NONCE_LEN>();
        let mut sealed = plain.to_vec();
        let aad = Aad::from(purpose.name());
        self.0
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut sealed)
            .expect("cookies are far shorter than 64 GiB");
        BASE64URL_NOPAD.encode(&[&nonce[..], &sealed].concat())
    }

    /// The plain text; none if another key sealed it, if it was changed, or for another purpose.
    pub(super) fn open(&self, purpose: SealPurpose, sealed: &str) -> Option<Vec<u8>> {
        let bytes = BASE64URL_NOPAD.decode(sealed.as_bytes()).ok()?;
        let (nonce, rest) = bytes.split_first_chunk::<NONCE_LEN>()?;
        let mut rest = rest.to_vec();
        let aad = Aad::from(purpose.name());
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let plain = self.0.open_in_place(nonce, aad, &mut rest).ok()?;
        Some(plain.to_vec())
    }
}

/// Random text of 256 bits, for states, nonces and verifiers.
pub(super) fn random_text() -> String {
    BASE64URL_NOPAD.encode(&random_bytes::<32>())
}

fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .expect("the kernel's random source does not fail once it is seeded");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_key_and_purpose_open() {
        let key = SealingKey::of_secret("shared");
        let sealed = key.seal(SealPurpose::Session, b"tokens");
        let open = |key: &SealingKey, purpose, text: &str| key.open(purpose, text);
        let replica = SealingKey::of_secret("shared");
        assert_eq!(
            open(&replica, SealPurpose::Session, &sealed).unwrap(),
            b"tokens"
        );
        assert_eq!(open(&replica, SealPurpose::LogIn, &sealed), None);
        for other in [SealingKey::of_secret("other"), SealingKey::random()] {
            assert_eq!(open(&other, SealPurpose::Session, &sealed), None);
        }
    }

    #[test]
    fn each_changed_character_is_detected() {
        let key = SealingKey::random();
        let sealed = key.seal(SealPurpose::Session, b"tokens of a person");
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(key.open(SealPurpose::Session, &changed), None, "{at}");
        }
        for text in ["", "AAAA", "ä", &sealed[..sealed.len() - 4]] {
            assert_eq!(key.open(SealPurpose::Session, text), None, "{text}");
        }
    }
}
