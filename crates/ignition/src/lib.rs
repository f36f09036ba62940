//! Ignition configurations of versions 3.0 to 3.6: one table of all members, and all that walks it – the strict check
//! with line and column, validation, merging, conversion – besides typed records, data URLs, the configuration of a node
//! and of the live system that installs it, and the archive of a configuration inside a boot image.
//!
//! No network and no files here. Two invariants: the verdict on a configuration is Ignition's own, and a configuration
//! that is parsed and written again means the same to Ignition. Members that Ignition would ignore are reported, never
//! carried along.

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
mod foreign;
pub mod live_installer;
mod member_tree;
mod merge;
pub mod node;
mod path;
mod problem;
mod redact;
pub mod schema;
mod shape;
mod summary;
mod validate;
mod version;

pub use config::{
    Directory, Dropin, HttpHeader, IgnitionConfig, IgnitionFile, IgnitionProxy, Link, Mode, Passwd,
    Resource, SpecVersion, Storage, Systemd, Unit, User,
};
pub use document::ConfigDocument;
pub use error::Error;
pub use live_installer::{DiskPath, LiveInstaller};
pub use member_tree::MemberTree;
pub use merge::merge;
pub use node::NodeConfig;
pub use problem::{IgnitionProblem, MAX_PROBLEMS, ProblemClass, ProblemList};
pub use redact::redacted;
pub use summary::ConfigSummary;
