//! Stage 6, transfer: bytes move, from registries or archives, into archives or a target.

mod archives;
mod built_image;
mod catalogs;
mod copy;
mod graph;
mod publication;

pub(super) use self::archives::{CompleteArchives, Transferred, archives};
pub(super) use self::catalogs::catalogs;
pub(super) use self::copy::copy;
pub(super) use self::publication::{boot_image_offers, publication};
