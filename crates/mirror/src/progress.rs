//! Progress of a run.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Catalogs and release images are read.
    Selecting,
    /// The manifests of images are fetched.
    Surveying,
    /// Attached artifacts of images are listed.
    Attaching,
    /// Blobs are written into archive files.
    Packing,
    /// Images are sent to the target.
    Publishing,
    /// Content is compared with its digests.
    Verifying,
}

/// So much of something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// Images, or files.
    pub items: u64,
    /// Units: bytes.
    pub bytes: u64,
}

impl Amount {
    pub(crate) fn add(&mut self, other: Self) {
        self.items += other.items;
        self.bytes += other.bytes;
    }
}

/// Counters that a run moves and others read. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct RunProgress(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    phase: Mutex<Option<(Phase, Amount)>>,
    items: AtomicU64,
    bytes: AtomicU64,
    is_cancelled: AtomicBool,
}

impl RunProgress {
    /// Begins a phase with a total of `whole`.
    pub(crate) fn begin(&self, phase: Phase, whole: Amount) {
        let mut now = self.0.phase.lock().unwrap_or_else(PoisonError::into_inner);
        *now = Some((phase, whole));
        self.0.items.store(0, Ordering::Relaxed);
        self.0.bytes.store(0, Ordering::Relaxed);
    }

    /// Pauses reports until the next phase begins.
    pub fn rest(&self) {
        *self.0.phase.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(crate) fn add_items(&self, count: u64) {
        self.0.items.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn add_bytes(&self, count: u64) {
        self.0.bytes.fetch_add(count, Ordering::Relaxed);
    }

    /// Ends blocking work, such as a verification, at its next step; its result is incomplete then. Other work ends when its
    /// future is dropped.
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::Relaxed)
    }

    /// The phase, its total amount, and the amount done.
    pub fn now(&self) -> Option<(Phase, Amount, Amount)> {
        let phase = *self.0.phase.lock().unwrap_or_else(PoisonError::into_inner);
        let (phase, whole) = phase?;
        let done = Amount {
            items: self.0.items.load(Ordering::Relaxed),
            bytes: self.0.bytes.load(Ordering::Relaxed),
        };
        Some((phase, whole, done))
    }
}

impl Phase {
    /// The phase in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Selecting => "selecting",
            Self::Surveying => "surveying",
            Self::Attaching => "looking for signatures",
            Self::Packing => "packing",
            Self::Publishing => "publishing",
            Self::Verifying => "verifying",
        }
    }
}
