//! Base images: what is in them and how they are customised.

mod base;
mod customise;
mod iso9660;

pub use base::{BadImage, Image};
pub use customise::{CannotCustomise, full_iso, pxe_initrd};
