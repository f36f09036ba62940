//! The single writer of a store: one thread checks and makes all changes.
//!
//! Waiting changes are committed as a group: temporary files, one fsync of the journal, renames, one transaction of
//! the index, acknowledgements. Checkpoints sync the file system and truncate the journal.

mod checkpoint;
mod clock;
mod commit;
mod commit_loop;
mod errors;
mod handle;
mod recover;
mod removal;
mod shared;

pub(super) use clock::{nanos, now};
pub(super) use errors::{ended, full};
pub(super) use handle::Committer;
pub(super) use shared::{Job, SharedState};
