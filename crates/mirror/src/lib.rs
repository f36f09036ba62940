//! The mirroring tool: what an image set names is found, planned, packed into archives or copied, and published.
//!
//! What runs is planned first: each image with its reason, each byte with its way. The one invariant: nothing gets a name
//! that others read before it is whole and has its digest.

pub mod archive;
pub mod attached;
pub mod blobs;
pub mod config;
pub mod content;
pub mod deletion;
pub mod derive;
pub mod fetch;
mod folder;
pub mod gather;
pub mod helm;
pub mod history;
mod inside;
mod mistakes;
pub mod names;
pub mod older;
pub mod operators;
mod parallel;
pub mod platform;
pub mod presence;
pub mod progress;
pub mod publish;
pub mod results;
pub mod run;
pub mod section;
mod single;
pub mod survey;
pub mod updates;
pub mod workspace;

pub use model::Error;
