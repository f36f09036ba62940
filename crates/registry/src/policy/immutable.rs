//! Tags that stay where they were pushed first: whoever looks and pushes has to be alone meanwhile.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use oci::Repository;
use tokio::sync::{Mutex, MutexGuard};

/// Repositories that can be pushed to at the same time, as far as such tags are meant.
const TURNS: usize = 64;

/// One turn at a time in each repository.
#[derive(Debug)]
pub(crate) struct Turns([Mutex<()>; TURNS]);

impl Default for Turns {
    fn default() -> Self {
        Self([const { Mutex::const_new(()) }; TURNS])
    }
}

impl Turns {
    /// The turn of whoever changes such tags of `repository`.
    pub(crate) async fn take(&self, repository: &Repository) -> MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        repository.hash(&mut hasher);
        let place = usize::try_from(hasher.finish() % TURNS as u64).unwrap_or_default();
        self.0[place].lock().await
    }
}
