//! One change of a cluster at a time inside this process, before it takes a connection.
//!
//! The database's lock would do, but each waiting request would hold a connection meanwhile, and a hundred hosts
//! that answer at once would leave none for anybody else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;
use uuid::Uuid;

/// Entries above which the unused ones are dropped.
const SWEEP_ABOVE: usize = 256;

/// Queues by id.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<HashMap<Uuid, Weak<tokio::sync::Mutex<()>>>>);

impl Turns {
    /// Waits until nobody else has the turn on `id`.
    pub(super) async fn take(&self, id: Uuid) -> OwnedMutexGuard<()> {
        let queue = {
            let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if queues.len() > SWEEP_ABOVE {
                queues.retain(|_, queue| queue.strong_count() > 0);
            }
            queues.get(&id).and_then(Weak::upgrade).unwrap_or_else(|| {
                let queue = Arc::new(tokio::sync::Mutex::new(()));
                queues.insert(id, Arc::downgrade(&queue));
                queue
            })
        };
        queue.lock_owned().await
    }
}
