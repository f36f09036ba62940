//! Live images as input: opened, and the bytes of their parts.

use std::path::Path;

use image_service::content::{ContentPieces, Piece};
use image_service::image::BaseImage;
use service::{Error, ResultExt as _};
use sha2::{Digest as _, Sha256};

/// Opens a live image.
///
/// Errors: it is none.
pub(crate) fn open(path: &Path) -> Result<BaseImage, Error> {
    BaseImage::open(path).doing("opening the image")
}

/// A part of an image as content of its own.
pub(super) fn of(piece: Piece) -> ContentPieces {
    let mut content = ContentPieces::new();
    content.push(piece);
    content
}

/// The SHA-256 in hexadecimal.
pub(super) fn sha256_of(piece: Piece) -> Result<String, Error> {
    let mut hash = Sha256::new();
    let read = of(piece).for_each_chunk(|chunk| {
        hash.update(chunk);
        Ok(())
    });
    read.doing("reading the image")?;
    Ok(hex::encode(hash.finalize()))
}
