//! Keys of a key file: one per line, the first seals, all open.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use concurrency::BoxError;
use ring::aead::{AES_256_GCM, LessSafeKey, UnboundKey};
use ring::digest::{SHA256, digest};

/// Units: bytes.
const KEY_BYTES: usize = 32;
/// Most keys of a file: one, and those of rotations in progress.
const MAX_KEYS: usize = 64;

/// Name of a key: the start of a hash of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyId(pub(crate) [u8; KeyId::BYTES]);

impl KeyId {
    /// Units: bytes.
    pub(crate) const BYTES: usize = 8;

    fn of(key: &[u8]) -> Self {
        let hash = digest(&SHA256, &[b"atoll secret key ", key].concat());
        let mut id = [0; Self::BYTES];
        id.copy_from_slice(&hash.as_ref()[..Self::BYTES]);
        Self(id)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

pub(crate) struct SecretKey {
    pub(crate) id: KeyId,
    pub(crate) key: LessSafeKey,
}

/// The keys; without any nothing is sealed. Copies share them.
#[derive(Clone, Default)]
pub struct KeySet(Arc<[SecretKey]>);

/// The keys stay out of logs.
impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ids()).finish()
    }
}

impl KeySet {
    /// Reads lines of base64, 32 bytes each; empty ones and those with `#` are skipped.
    ///
    /// Errors: no key, too many, or a line that is none. The text of the line is not repeated.
    pub fn parse(bytes: &[u8]) -> Result<Self, BoxError> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is no text")?;
        let mut keys: Vec<SecretKey> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let number = index + 1;
            let key = BASE64.decode(line).unwrap_or_default();
            if key.len() != KEY_BYTES {
                return Err(format!(
                    "line {number} is no key: write {KEY_BYTES} random bytes in base64, or use \
                     `atoll secrets rotate-key`"
                )
                .into());
            }
            let id = KeyId::of(&key);
            let unbound = UnboundKey::new(&AES_256_GCM, &key)
                .map_err(|_| format!("line {number} is no key of AES-256"))?;
            if keys.iter().any(|known| known.id == id) {
                return Err(format!("line {number} repeats a key").into());
            }
            keys.push(SecretKey {
                id,
                key: LessSafeKey::new(unbound),
            });
        }
        match keys.len() {
            0 => Err("it has no key: create one with `atoll secrets rotate-key`".into()),
            1..=MAX_KEYS => Ok(Self(keys.into())),
            count => Err(format!("it has {count} keys, the limit is {MAX_KEYS}").into()),
        }
    }

    /// The key that seals; none without a key file.
    pub(crate) fn active(&self) -> Option<&SecretKey> {
        self.0.first()
    }

    /// Id of the key that seals.
    pub fn active_id(&self) -> Option<KeyId> {
        self.active().map(|key| key.id)
    }

    pub(crate) fn find(&self, id: KeyId) -> Option<&SecretKey> {
        self.0.iter().find(|key| key.id == id)
    }

    /// Ids of all keys.
    pub fn ids(&self) -> impl Iterator<Item = KeyId> {
        self.0.iter().map(|key| key.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_files_are_lines_of_base64() {
        let key = |byte: u8| BASE64.encode([byte; KEY_BYTES]);
        let file = format!("# newest first\n{}\n\n{}\n", key(1), key(2));
        let keys = KeySet::parse(file.as_bytes()).unwrap();
        assert_eq!(keys.ids().count(), 2);
        assert_eq!(keys.active_id(), Some(KeyId::of(&[1; KEY_BYTES])));
        assert_eq!(keys.active_id().unwrap().to_string().len(), 16);
        for (wrong, part) in [
            (String::new(), "no key"),
            ("abc".to_owned(), "line 1 is no key"),
            (format!("{}\n{}", key(1), key(1)), "line 2 repeats"),
            (BASE64.encode([1; 31]), "line 1 is no key"),
        ] {
            let error = KeySet::parse(wrong.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let shown = format!("{keys:?}");
        assert!(!shown.contains(&key(1)), "{shown}");
    }

    #[test]
    fn rotations_are_bounded() {
        let file = |count: usize| {
            let lines = (0..count).map(|index| BASE64.encode([u8::try_from(index).unwrap(); 32]));
            lines.collect::<Vec<_>>().join("\n")
        };
        KeySet::parse(file(MAX_KEYS).as_bytes()).unwrap();
        let error = KeySet::parse(file(MAX_KEYS + 1).as_bytes()).unwrap_err();
        assert!(error.to_string().contains("limit"), "{error}");
    }
}
