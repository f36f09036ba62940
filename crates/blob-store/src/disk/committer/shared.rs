//! State that the committing thread shares with readers, and the jobs of the thread.

use std::sync::atomic::AtomicBool;

use tokio::sync::oneshot;

use crate::Result;
use crate::disk::adoption_progress::Adoption;
use crate::disk::change::JournalEntry;
use crate::disk::examine::DamagedContent;
use crate::disk::index::ContentIndex;
use crate::disk::layout::FolderLayout;
use crate::disk::reserve::Reserve;
use crate::disk::writable::WriteSide;
use crate::verified::Verified;
use oci::{Digest, Repository};

/// State of the committing thread that readers use, too.
#[derive(Debug)]
pub(in crate::disk) struct SharedState {
    pub(in crate::disk) layout: FolderLayout,
    pub(in crate::disk) index: ContentIndex,
    pub(in crate::disk) verified: Verified,
    /// Progress of the comparison of the folder with the index.
    pub(in crate::disk) adoption: Adoption,
    /// A part of the folder could not be read: no garbage is collected.
    pub(in crate::disk) is_incomplete: AtomicBool,
    pub(in crate::disk) write_side: WriteSide,
    pub(in crate::disk) reserve: Reserve,
    /// The reason, if the store is read-only.
    pub(in crate::disk) read_only: Option<String>,
}

impl SharedState {
    /// Makes the index durable, except in a read-only store.
    pub(in crate::disk) fn sync_index(&self) -> Result<()> {
        if self.read_only.is_some() {
            return Ok(());
        }
        self.index.sync(&self.layout.temporary())
    }
}

/// A job of the thread.
pub(in crate::disk) enum Job {
    Commit(JournalEntry, oneshot::Sender<Result<()>>),
    /// Adopts a repository; the reply says whether it differed.
    Adopt(Repository, oneshot::Sender<Result<bool>>),
    /// Removes content that no repository has; the reply lists the removed digests.
    RemoveContent(Vec<Digest>, oneshot::Sender<Vec<Digest>>),
    /// Removes a repository without content; the reply says whether it was removed.
    RemoveIfEmpty {
        repository: Repository,
        is_dry: bool,
        done: oneshot::Sender<bool>,
    },
    /// Quarantines damaged content; the reply says whether it was set aside.
    Quarantine(DamagedContent, oneshot::Sender<Result<bool>>),
}
