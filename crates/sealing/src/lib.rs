//! Secrets at rest: sealed with a key of `SECRETS_KEY_FILE` (AES-256-GCM), bound to the place where they are stored.
//!
//! Without a key file everything is stored as it is. Plain values are read with and without one; a task seals them,
//! and those of older keys, with the first key of the file. The one invariant: a sealed value opens only in the place
//! for which it was sealed, so that a writer of the database cannot move it to another one.

mod envelope;
mod key_set;
mod members;

use std::path::Path;
use std::sync::Arc;

use concurrency::WatchedFile;
use service::Error;

pub use envelope::{SealError, SecretPlace};
pub use key_set::{KeyId, KeySet};
pub use members::SecretTable;

/// The key file, reloaded when it changes.
#[derive(Debug, Clone, Default)]
pub struct Keyring(Option<Arc<WatchedFile<KeySet>>>);

impl Keyring {
    /// The keys of `path`; none for no file.
    ///
    /// Errors: the file cannot be read, or holds no valid key.
    pub async fn open(path: Option<&Path>) -> Result<Self, Error> {
        let Some(path) = path else {
            return Ok(Self::default());
        };
        let file = WatchedFile::open(path, KeySet::parse).await;
        let file = file.map_err(|error| {
            let doing = format!("reading SECRETS_KEY_FILE {}", path.display());
            Error::new(doing, error)
        })?;
        Ok(Self(Some(Arc::new(file))))
    }

    /// The keys now; empty without a key file.
    pub async fn keys(&self) -> KeySet {
        match &self.0 {
            Some(file) => file.get().await.as_ref().clone(),
            None => KeySet::default(),
        }
    }
}
