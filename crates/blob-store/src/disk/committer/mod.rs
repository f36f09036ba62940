//! The one thread that changes a store, so that every change is checked against what really is there.
//!
//! Changes that wait together are made together: written to the folder, promised by one sync of the journal, shown
//! by one transaction of the index, acknowledged. From time to time the medium catches up, and the journal starts
//! anew.

mod catch_up;
mod clock;
mod commit;
mod errors;
mod handle;
mod recover;
mod removal;
mod shared;
mod work;

pub(super) use clock::{nanos, now};
pub(super) use errors::{ended, full};
pub(super) use handle::Committer;
pub(super) use shared::{Job, Shared};
