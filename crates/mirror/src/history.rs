//! What was carried before: which images a run leaves out, what it remembers for the next one, and what it may do in a target
//! that others have filled.
//!
//! Metadata is kept by whoever runs (in a folder or in an image), in each archive, and in each target. The one invariant: it is
//! written after what it tells of.
//!
//! Source: the peer's v1, whose sets are continued here, and ours there.

mod association;
mod previous_runs;
mod prune;
mod sequence;
mod store;

pub use association::held;
pub(crate) use association::repository_in;
pub(crate) use previous_runs::without;
pub use previous_runs::{Next, PlannedRun, PreviousRuns};
pub use prune::{Pruning, prune};
pub use sequence::{SAME_SEQUENCE, Step, step};
pub use store::Store;
pub(crate) use store::stored;

#[cfg(test)]
mod tests;
