//! Runs: an image set goes to its destination in seven stages, each of which takes the record of the stage before it.
//!
//! | stage | module | record |
//! |---|---|---|
//! | 1 select | `run::select` | `SetSelection`: catalogs, releases, charts, images with their reasons |
//! | 2 resolve | `run::resolve` | `ResolvedImages`: digests, manifests, blobs |
//! | 3 subtract | `run::subtract` | `RemainingImages`: without the images of previous runs |
//! | 4 attach | `run::attach` | `AttachedImages`: with signatures and other attached artifacts |
//! | 5 plan | `run::plan` | [`PreparedRun`], then [`ArchivesPlan`], [`CopyPlan`] or [`Publication`] |
//! | 6 transfer | `run::transfer` | `CompleteArchives`, or [`RunOutcome`] |
//! | 7 record | `run::record` | metadata in stores and target |
//!
//! Stages 1 to 5 change nothing outside of the workspace. A run from archives begins with stage 5.

mod attach;
mod boot_images;
mod explain;
mod outcome;
mod plan;
mod push;
mod record;
mod resolve;
mod select;
mod setup;
mod stages;
mod subtract;
mod tags;
#[cfg(test)]
mod tests;
mod transfer;
mod vanishing;

pub use explain::{manifest_mapping, mapping, publication_mapping, reasons};
pub use outcome::RunOutcome;
pub use plan::{
    ArchivesPlan, CopyPlan, PlannedArchives, PlannedCopy, PlannedPublication, PreparedCatalog,
    PreparedRun, Publication, archives as plan_archives, copy as plan_copy,
    publication as plan_publication,
};
pub use push::push_catalogs;
pub use setup::{CatalogForm, RunContext, Sources, V2Archives};
pub use stages::{
    ArchiveOutput, archived_results, copy, prepare, publish, write_archives,
    write_available_archives,
};
pub use vanishing::{vanishing_by_copy, vanishing_by_publication};
