//! Base images: their parts, and customising.

mod base;
mod customise;
mod iso9660;
mod nmstatectl;
mod squashfs;

pub use base::{BaseImage, BaseImageError};
pub use customise::{CustomiseError, full_iso, pxe_initrd};
pub(crate) use nmstatectl::needs_nmstatectl;
pub use nmstatectl::nmstatectl_archive;
