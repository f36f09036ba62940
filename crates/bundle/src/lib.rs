//! The one file that is carried to a disconnected host: images, programs, settings and content.
//!
//! A plain tar. Its first member is the manifest, with the checksum, length and place of every other member; the second
//! one its signature. `assemble` selects the content and computes its closure, `writer` writes the file, `reader` verifies
//! and extracts it. Nothing here starts containers. The one invariant: every byte of the file is covered by the manifest, or
//! has the one value that the format allows, so that any damage is found before anything is extracted.

mod archives;
pub mod assemble;
pub mod closure;
mod framing;
mod images;
pub mod interpolation;
mod manifest;
mod payload;
mod reader;
mod references;
mod writer;

#[cfg(test)]
mod tests;

pub use archives::ArchivedImages;
pub use images::{ImageSet, blob_path, path_in_registry};
pub use manifest::{
    BundleManifest, BundleMember, BundledImage, ClosureImage, Encoding, FORMAT, ImageUse,
};
pub use reader::BundleFile;
pub use writer::{PlannedContent, write};
