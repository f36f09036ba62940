//! In-memory state of open uploads: the lock of the writer, and the hash so far.
//!
//! A cache: without it, finishing an upload hashes its bytes again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Mutex as AsyncMutex;
use uuid::Uuid;

/// Idle uploads whose hash is kept; each costs about 300 bytes.
const SESSION_LIMIT: usize = 1024;

/// State of open uploads by id; the store defines `S`.
#[derive(Debug)]
pub(super) struct Sessions<S>(Mutex<SessionTable<S>>);

#[derive(Debug)]
struct SessionTable<S> {
    entries: HashMap<Uuid, SessionEntry<S>>,
    clock: u64,
}

#[derive(Debug)]
struct SessionEntry<S> {
    session: Arc<AsyncMutex<S>>,
    used: u64,
}

impl<S> Default for Sessions<S> {
    fn default() -> Self {
        Self(Mutex::new(SessionTable {
            entries: HashMap::new(),
            clock: 0,
        }))
    }
}

impl<S: Default> Sessions<S> {
    /// The session of `upload`. Its lock is held while bytes are written.
    pub(super) fn get(&self, upload: Uuid) -> Arc<AsyncMutex<S>> {
        self.insert(upload, S::default())
    }

    /// Returns the existing session, or adds `session`.
    pub(super) fn insert(&self, upload: Uuid, session: S) -> Arc<AsyncMutex<S>> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.clock += 1;
        let used = table.clock;
        if table.entries.len() >= SESSION_LIMIT && !table.entries.contains_key(&upload) {
            table.drop_oldest_idle();
        }
        let entry = table.entries.entry(upload).or_insert_with(|| SessionEntry {
            session: Arc::new(AsyncMutex::new(session)),
            used,
        });
        entry.used = used;
        Arc::clone(&entry.session)
    }

    pub(super) fn forget(&self, upload: Uuid) {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.entries.remove(&upload);
    }
}

impl<S> SessionTable<S> {
    fn drop_oldest_idle(&mut self) {
        let oldest = self
            .entries
            .iter()
            .filter(|(_, entry)| Arc::strong_count(&entry.session) == 1)
            .min_by_key(|(_, entry)| entry.used)
            .map(|(upload, _)| *upload);
        if let Some(upload) = oldest {
            self.entries.remove(&upload);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_sessions_are_bounded_and_busy_ones_stay() {
        let sessions = Sessions::<()>::default();
        let busy = sessions.get(Uuid::from_u128(1));
        for n in 2..3 * SESSION_LIMIT as u128 {
            sessions.get(Uuid::from_u128(n));
        }
        assert_eq!(sessions.0.lock().unwrap().entries.len(), SESSION_LIMIT);
        assert!(Arc::ptr_eq(&busy, &sessions.get(Uuid::from_u128(1))));
    }
}
