//! Past mirrors: the images that a run leaves out, the metadata for the next one, and the checks of a target that others
//! have filled.
//!
//! Metadata is kept in the workspace or an image, in each archive, and in each target. The one invariant: it is written
//! after the content that it lists.
//!
//! Source: the peer's v1; either tool continues the sets of the other.

mod association;
mod blob_list;
mod metadata_file;
mod previous_runs;
mod prune;
mod runs;
mod sequence;
mod store;

pub use association::held;
pub(crate) use association::{layers, name, place, repository_in};
pub(crate) use blob_list::{BlobList, carried_extra, time_of};
pub(crate) use previous_runs::without;
pub use previous_runs::{NextMetadata, PlannedRun, PreviousRuns};
pub use prune::{Pruning, prune};
pub use sequence::{SAME_SEQUENCE, SequenceStep, step};
pub use store::MetadataStore;
pub(crate) use store::stored;

#[cfg(test)]
mod tests;
