//! Ignition configurations: records that keep unknown members, data URLs, merging, validation, and the
//! archive of a configuration inside a boot image.
//!
//! No network and no files here. The one invariant: a configuration that is parsed and written again means the
//! same to Ignition, members unknown to this crate included.

pub mod archive;
mod build;
pub mod butane;
pub mod config;
mod contents;
mod convert;
pub mod cpio;
pub mod data_url;
mod document;
mod error;
mod member_tree;
mod merge;
pub mod node;
mod path;
mod problem;
pub mod schema;
mod shape;
mod summary;
pub mod tree;
mod validate;
mod version;

pub use config::{
    Directory, Dropin, HttpHeader, IgnitionConfig, IgnitionFile, IgnitionProxy, Link, Mode, Passwd,
    Resource, SpecVersion, Storage, Systemd, Unit, User,
};
pub use document::ConfigDocument;
pub use error::Error;
pub use member_tree::MemberTree;
pub use merge::merge;
pub use node::NodeConfig;
pub use problem::{IgnitionProblem, MAX_PROBLEMS, ProblemClass, ProblemList};
pub use summary::ConfigSummary;
