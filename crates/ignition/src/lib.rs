//! Ignition configurations: records that keep what they do not know, data URLs, merging, validation, and the
//! archive in which a configuration travels inside a boot image.
//!
//! No network and no files here. The one invariant: a configuration that was parsed and written again says the
//! same to Ignition, members unknown to this crate included.

pub mod archive;
mod build;
pub mod config;
pub mod cpio;
pub mod data_url;
mod error;
mod merge;
mod validate;

pub use config::{
    Config, Directory, Dropin, File, Link, Mode, Passwd, Proxy, Resource, Storage, Systemd, Unit,
    User, Version,
};
pub use error::Error;
pub use merge::merge;
