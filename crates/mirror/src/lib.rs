//! The mirroring tool: an image set is selected, resolved, planned, packed into archives or copied, and published.
//!
//! Runs are planned first: each image with its reason, each byte with its source. The one invariant: content gets a name
//! that others read only when it is complete and has its digest.

mod additional_images;
pub mod archive;
pub mod attached;
pub mod blobs;
pub mod build_image;
pub mod carry_in;
pub mod config;
pub mod content;
pub mod deletion;
pub mod fetch;
mod folder;
pub mod helm;
pub mod history;
mod image_source;
mod json_path;
mod mistakes;
pub mod names;
pub mod older;
pub mod operators;
mod parallel;
pub mod platform;
pub mod progress;
pub mod publish;
pub mod resolve;
pub mod results;
pub mod run;
pub mod section;
pub mod select;
pub mod target_name;
mod target_view;
pub mod updates;
pub mod verify_target;
pub mod workspace;

pub use model::Error;
