//! The state that the committing thread changes and readers look at, and the jobs of the thread.

use std::sync::atomic::AtomicBool;

use tokio::sync::oneshot;

use crate::Result;
use crate::disk::adoption::Adoption;
use crate::disk::change::Order;
use crate::disk::index::Index;
use crate::disk::layout::Layout;
use crate::disk::quarantine::Condemned;
use crate::disk::reserve::Reserve;
use crate::disk::writable::WriteSide;
use crate::verified::Verified;
use oci::{Digest, Repository};

/// What the thread works on, and readers look at.
#[derive(Debug)]
pub(in crate::disk) struct Shared {
    pub(in crate::disk) layout: Layout,
    pub(in crate::disk) index: Index,
    pub(in crate::disk) verified: Verified,
    /// How far the index is known to have what the folder has.
    pub(in crate::disk) adoption: Adoption,
    /// Something in the folder could not be read: nothing may be taken for garbage.
    pub(in crate::disk) is_unsure: AtomicBool,
    pub(in crate::disk) write_side: WriteSide,
    pub(in crate::disk) reserve: Reserve,
    /// Nothing is ever changed: why.
    pub(in crate::disk) read_only: Option<String>,
}

impl Shared {
    /// Makes the index durable, except where nothing is changed.
    pub(in crate::disk) fn sync_index(&self) -> Result<()> {
        if self.read_only.is_some() {
            return Ok(());
        }
        self.index.sync(&self.layout.temporary())
    }
}

/// What the thread is asked for.
pub(in crate::disk) enum Job {
    Commit(Order, oneshot::Sender<Result<()>>),
    /// The folder may have something else of this repository than the index; whether it had.
    Adopt(Repository, oneshot::Sender<Result<bool>>),
    /// Content, unless a repository has it; what was removed.
    RemoveContent(Vec<Digest>, oneshot::Sender<Vec<Digest>>),
    /// A repository without content; whether it was one.
    RemoveIfEmpty {
        repository: Repository,
        is_dry: bool,
        done: oneshot::Sender<bool>,
    },
    /// Damaged content; whether it was taken away.
    Quarantine(Condemned, oneshot::Sender<Result<bool>>),
}
