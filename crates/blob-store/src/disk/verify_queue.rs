//! Queue of content to verify: a range of it was read before it was verified.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use oci::Digest;

/// Content beyond this bound is verified by the next scrub, or when it is read whole.
const LIMIT: usize = 1024;

/// A queue without duplicates, with at most one worker.
#[derive(Debug, Default)]
pub(super) struct VerifyQueue(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    order: VecDeque<Digest>,
    known: HashSet<Digest>,
    is_worked_on: bool,
}

impl VerifyQueue {
    /// Adds content. Returns whether the caller has to start the worker.
    pub(super) fn add(&self, canonical: &Digest) -> bool {
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.order.len() < LIMIT && queue.known.insert(canonical.clone()) {
            queue.order.push_back(canonical.clone());
        }
        !std::mem::replace(&mut queue.is_worked_on, true)
    }

    /// The next content; `None` ends the worker.
    pub(super) fn next(&self) -> Option<Digest> {
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = queue.order.pop_front();
        match &next {
            Some(next) => drop(queue.known.remove(next)),
            None => queue.is_worked_on = false,
        }
        next
    }
}
