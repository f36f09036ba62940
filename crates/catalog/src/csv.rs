//! The ClusterServiceVersion that is served for a bundle which carries only what its pages show.

mod face;
mod json;
mod metadata;
mod quoted;
#[cfg(test)]
mod tests;
mod write;

pub use face::Face;
pub(crate) use json::to_json;
pub(crate) use metadata::Metadata;
use quoted::Quoted;
pub(crate) use write::write;
