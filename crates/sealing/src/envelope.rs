//! Sealed values: `magic, key id, nonce, ciphertext with tag`; in text columns as base64 behind a prefix.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce};
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::key_set::{KeyId, KeySet};

/// First bytes of a sealed value. No text starts with a zero byte, and no file of an installation either.
const MAGIC: &[u8] = b"\0atoll-1";
/// Prefix of a sealed text.
const PREFIX: &str = "atoll-sealed:";
const HEAD: usize = MAGIC.len() + KeyId::BYTES + NONCE_LEN;

/// Where a value is stored: authenticated with it.
#[derive(Debug, Clone)]
pub struct SecretPlace {
    /// Table, or `files`.
    pub(crate) table: &'static str,
    /// Column or member of the record; of a file its name.
    pub(crate) column: String,
    /// Id of the row; of a file that of its cluster.
    pub(crate) row: String,
}

impl SecretPlace {
    pub fn new(table: &'static str, column: impl Into<String>, row: impl fmt::Display) -> Self {
        Self {
            table,
            column: column.into(),
            row: row.to_string(),
        }
    }

    fn associated_data(&self) -> Vec<u8> {
        [self.table, &self.column, &self.row]
            .join("\0")
            .into_bytes()
    }
}

impl fmt::Display for SecretPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} of {}", self.table, self.column, self.row)
    }
}

/// Reason why a value cannot be sealed or opened. Never holds the value.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SealError {
    /// The key is not in the file.
    #[error("{place} is sealed with the key {id}, which SECRETS_KEY_FILE does not have: add it")]
    UnknownKey {
        /// The value.
        place: String,
        /// The key.
        id: String,
    },
    /// It was changed, or sealed for another place.
    #[error("{0} does not open: it was changed, or moved from another place")]
    Damaged(String),
    /// No random numbers.
    #[error("the system has no random numbers")]
    Random,
}

impl KeySet {
    /// Seals bytes; returns them unchanged without a key.
    pub fn seal(&self, place: &SecretPlace, plain: &[u8]) -> Result<Vec<u8>, SealError> {
        let Some(active) = self.active() else {
            return Ok(plain.to_vec());
        };
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new()
            .fill(&mut nonce)
            .map_err(|_| SealError::Random)?;
        let mut sealed = Vec::with_capacity(HEAD + plain.len() + AES_256_GCM.tag_len());
        sealed.extend_from_slice(MAGIC);
        sealed.extend_from_slice(&active.id.0);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(plain);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let aad = Aad::from(place.associated_data());
        let tag = active
            .key
            .seal_in_place_separate_tag(nonce, aad, &mut sealed[HEAD..])
            .map_err(|_| SealError::Damaged(place.to_string()))?;
        sealed.extend_from_slice(tag.as_ref());
        Ok(sealed)
    }

    /// Opens stored bytes; plain ones are returned unchanged.
    ///
    /// Errors: `UnknownKey`, `Damaged`.
    pub fn open(&self, place: &SecretPlace, stored: Vec<u8>) -> Result<Vec<u8>, SealError> {
        let Some(id) = self.sealed_with(&stored) else {
            return Ok(stored);
        };
        let key = self.find(id).ok_or_else(|| SealError::UnknownKey {
            place: place.to_string(),
            id: id.to_string(),
        })?;
        let damaged = || SealError::Damaged(place.to_string());
        let (head, body) = stored.split_at(HEAD);
        let nonce =
            Nonce::try_assume_unique_for_key(&head[HEAD - NONCE_LEN..]).map_err(|_| damaged())?;
        let mut body = body.to_vec();
        let aad = Aad::from(place.associated_data());
        let opened = key.key.open_in_place(nonce, aad, &mut body);
        let length = opened.map_err(|_| damaged())?.len();
        body.truncate(length);
        Ok(body)
    }

    /// Seals a text.
    pub fn seal_text(&self, place: &SecretPlace, plain: &str) -> Result<String, SealError> {
        if self.active().is_none() || plain.is_empty() {
            return Ok(plain.to_owned());
        }
        let sealed = self.seal(place, plain.as_bytes())?;
        Ok(format!("{PREFIX}{}", BASE64.encode(sealed)))
    }

    /// Opens a stored text; a plain one is returned unchanged.
    ///
    /// Errors: as [`Self::open`].
    pub fn open_text(&self, place: &SecretPlace, stored: String) -> Result<String, SealError> {
        let Some(sealed) = self.decode(&stored) else {
            return Ok(stored);
        };
        let plain = self.open(place, sealed)?;
        String::from_utf8(plain).map_err(|_| SealError::Damaged(place.to_string()))
    }

    /// Whether stored bytes have to be sealed again: they are plain, or of an older key.
    pub fn is_outdated(&self, stored: &[u8]) -> bool {
        self.active().is_some() && self.sealed_with(stored) != self.active_id()
    }

    /// The same for a stored text.
    pub fn is_outdated_text(&self, stored: &str) -> bool {
        match self.decode(stored) {
            Some(sealed) => self.is_outdated(&sealed),
            None => self.active().is_some() && !stored.is_empty(),
        }
    }

    /// Whether a JSON text may hold a sealed text.
    pub fn may_be_sealed(&self, json: &str) -> bool {
        self.active().is_some() && json.contains(PREFIX)
    }

    /// The key of a sealed value. Without a key file nothing is sealed, even if a caller's text looks so.
    fn sealed_with(&self, stored: &[u8]) -> Option<KeyId> {
        self.active()?;
        let rest = stored.strip_prefix(MAGIC)?;
        if stored.len() < HEAD + AES_256_GCM.tag_len() {
            return None;
        }
        rest[..KeyId::BYTES].try_into().ok().map(KeyId)
    }

    fn decode(&self, stored: &str) -> Option<Vec<u8>> {
        let sealed = BASE64.decode(stored.strip_prefix(PREFIX)?).ok()?;
        self.sealed_with(&sealed).map(|_| sealed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> KeySet {
        let lines: Vec<String> = bytes
            .iter()
            .map(|byte| BASE64.encode([*byte; 32]))
            .collect();
        KeySet::parse(lines.join("\n").as_bytes()).unwrap()
    }

    fn place() -> SecretPlace {
        SecretPlace::new("clusters", "pull_secret", "1")
    }

    #[test]
    fn values_open_in_their_place_only() {
        let keys = keys(&[1]);
        let sealed = keys.seal_text(&place(), "secret").unwrap();
        assert!(sealed.starts_with(PREFIX) && !sealed.contains("secret"));
        assert_ne!(sealed, keys.seal_text(&place(), "secret").unwrap());
        assert_eq!(keys.open_text(&place(), sealed.clone()).unwrap(), "secret");
        for other in [
            SecretPlace::new("clusters", "pull_secret", "2"),
            SecretPlace::new("clusters", "token", "1"),
            SecretPlace::new("infra_envs", "pull_secret", "1"),
        ] {
            let error = keys.open_text(&other, sealed.clone()).unwrap_err();
            assert!(matches!(error, SealError::Damaged(_)), "{error}");
        }
        let sealed = keys.seal(&place(), &[7; 32]).unwrap();
        for at in HEAD..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(keys.open(&place(), changed).is_err());
        }
    }

    #[test]
    fn plain_values_are_read_and_outdated() {
        let keys = keys(&[1]);
        assert_eq!(keys.open_text(&place(), "{}".to_owned()).unwrap(), "{}");
        assert!(keys.is_outdated_text("{}"));
        assert!(!keys.is_outdated_text(""));
        assert!(keys.is_outdated(&[7; 32]));
        let sealed = keys.seal_text(&place(), "{}").unwrap();
        assert!(!keys.is_outdated_text(&sealed));
    }

    #[test]
    fn older_keys_open_and_are_replaced() {
        let old = keys(&[1]).seal_text(&place(), "secret").unwrap();
        let both = keys(&[2, 1]);
        assert_eq!(both.open_text(&place(), old.clone()).unwrap(), "secret");
        assert!(both.is_outdated_text(&old));
        let new = both.seal_text(&place(), "secret").unwrap();
        assert!(!both.is_outdated_text(&new));
        let error = keys(&[2]).open_text(&place(), old).unwrap_err();
        assert!(matches!(error, SealError::UnknownKey { .. }), "{error}");
        assert!(!error.to_string().contains("secret\""), "{error}");
    }

    #[test]
    fn without_keys_everything_stays_as_it_is() {
        let none = KeySet::default();
        assert_eq!(none.seal_text(&place(), "secret").unwrap(), "secret");
        assert_eq!(none.seal(&place(), b"secret").unwrap(), b"secret");
        let sealed = keys(&[1]).seal_text(&place(), "secret").unwrap();
        // A caller's own text may look sealed.
        assert_eq!(none.open_text(&place(), sealed.clone()).unwrap(), sealed);
        assert!(!none.is_outdated_text("secret"));
    }
}
