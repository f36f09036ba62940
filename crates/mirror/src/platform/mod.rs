//! Releases of the platform: which ones a set names, what they consist of, and who signed them.

mod across;
mod graph;
mod payload;
mod select;
mod settings;
mod span;
mod updates;
mod wanted;

pub use graph::{Graph, Release};
pub use settings::Sources;
pub use updates::Updates;
pub use wanted::{Releases, releases};
