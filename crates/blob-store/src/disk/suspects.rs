//! Content that somebody read a part of before it was compared with its digest.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use oci::Digest;

/// What does not fit is compared by the next scrub, or when somebody reads it whole.
const LIMIT: usize = 1024;

/// A queue in which each content stands once, and whether somebody works on it.
#[derive(Debug, Default)]
pub(super) struct Suspects(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    order: VecDeque<Digest>,
    known: HashSet<Digest>,
    is_worked_on: bool,
}

impl Suspects {
    /// Adds content; whether nobody works on the queue, which whoever adds has to do then.
    pub(super) fn add(&self, canonical: &Digest) -> bool {
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.order.len() < LIMIT && queue.known.insert(canonical.clone()) {
            queue.order.push_back(canonical.clone());
        }
        !std::mem::replace(&mut queue.is_worked_on, true)
    }

    /// What is next; with nothing, the work has ended.
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
