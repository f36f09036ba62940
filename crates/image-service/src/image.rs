//! Base images: their parts, and customising.

mod base;
mod customise;
mod iso9660;

pub use base::{BaseImage, BaseImageError};
pub use customise::{CustomiseError, full_iso, pxe_initrd};
