//! The ClusterServiceVersion that is served for a bundle which carries only what its pages show.

mod escape;
mod metadata;
mod write;

pub(crate) use escape::{Escape, to_json};
pub(crate) use metadata::Metadata;
pub(crate) use write::{Around, write};
