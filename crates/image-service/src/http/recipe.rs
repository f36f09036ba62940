//! The recipe of an image: everything that decides about its bytes.
//!
//! Equal settings give equal recipes, and equal recipes give equal bytes: in each replica, and after a restart. Secrets are in
//! it as digests only.

use bytes::Bytes;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::catalog::CatalogImage;
use crate::image::{BaseImage, InitrdArchives};

/// The writer of images: another one may write other bytes.
const WRITER: &str = concat!("atoll ", env!("CARGO_PKG_VERSION"));

/// SHA-256 of a recipe: the name and the entity tag of its image.
pub(super) type RecipeDigest = [u8; 32];

/// Kinds of composed images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum ImageKind {
    #[serde(rename = "full-iso")]
    Full,
    #[serde(rename = "minimal-iso")]
    Minimal,
    /// The initrd of a network boot.
    #[serde(rename = "pxe-initrd")]
    Initrd,
}

/// Content of `GET /recipes/{sha256}`, whose bytes have that checksum.
#[derive(Debug, Serialize)]
pub(super) struct Recipe<'a> {
    writer: &'static str,
    kind: ImageKind,
    base: RecipeBase<'a>,
    /// As the installer API sent it.
    ignition: RecipePart,
    /// Archives behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    ramdisk: Option<RecipePart>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nmstatectl: Option<RecipePart>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<RecipePart>,
    /// Those that are added to the base image's; of a network boot those of its script.
    kernel_arguments: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    rootfs_url: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct RecipeBase<'a> {
    version: &'a str,
    architecture: &'a str,
    volume_id: &'a str,
    /// Units: bytes.
    length: u64,
    /// Of its start, see [`BaseImage::fingerprint`].
    fingerprint: String,
    /// SHA-256 of `OS_IMAGES`.
    #[serde(skip_serializing_if = "str::is_empty")]
    sha256: &'a str,
}

#[derive(Debug, Serialize)]
struct RecipePart {
    /// Units: bytes.
    length: usize,
    sha256: String,
}

impl RecipePart {
    fn of(bytes: &[u8]) -> Self {
        Self {
            length: bytes.len(),
            sha256: hex::encode(Sha256::digest(bytes)),
        }
    }
}

impl<'a> Recipe<'a> {
    pub(super) fn new(
        kind: ImageKind,
        (entry, base): (&'a CatalogImage, &'a BaseImage),
        ignition: &[u8],
        archives: &InitrdArchives,
        kernel_arguments: &'a [String],
        rootfs_url: Option<&'a str>,
    ) -> Self {
        let part = |archive: &Option<Bytes>| archive.as_deref().map(RecipePart::of);
        Self {
            writer: WRITER,
            kind,
            base: RecipeBase {
                version: &entry.version,
                architecture: &entry.architecture,
                volume_id: &base.volume_id,
                length: base.length,
                fingerprint: hex::encode(base.fingerprint),
                sha256: &entry.sha256,
            },
            ignition: RecipePart::of(ignition),
            ramdisk: part(&archives.ramdisk),
            nmstatectl: part(&archives.nmstatectl),
            agent: part(&archives.agent),
            kernel_arguments,
            rootfs_url,
        }
    }

    /// The text, and its digest.
    ///
    /// Errors: none in practice; the format has no rule that a recipe could break.
    pub(super) fn text(&self) -> serde_json::Result<(Bytes, RecipeDigest)> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        let digest = Sha256::digest(&text).into();
        Ok((text.into(), digest))
    }
}
