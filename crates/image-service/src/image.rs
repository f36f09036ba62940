//! Base images: their parts, and customising.

pub(crate) mod agent;
mod base;
mod customise;
mod erofs;
mod error;
#[cfg(test)]
mod fuzz_tests;
mod iso9660;
mod iso_edit;
mod iso_map;
mod kargs;
mod minimal;
mod nmstatectl;
mod partition_table;
mod squashfs;

pub use base::{BaseImage, BaseImageError};
pub use customise::{InitrdArchives, customised, pristine, pxe_initrd};
pub use error::CustomiseError;
pub use kargs::KargsChange;
pub use minimal::minimal_iso;
pub(crate) use nmstatectl::needs_nmstatectl;
pub use nmstatectl::nmstatectl_archive;
