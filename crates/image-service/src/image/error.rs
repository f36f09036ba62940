//! Errors of customised images.

use super::iso_edit::EditError;
use crate::content::Overlap;

/// Reason why an image cannot be customised.
#[derive(Debug, thiserror::Error)]
pub enum CustomiseError {
    /// The packed configuration is larger than its area.
    #[error(
        "the packed ignition of {size} bytes exceeds the embed area of {room}; shorten the ignition config override or other parts of the discovery ignition"
    )]
    IgnitionTooLarge {
        /// Units: bytes.
        size: u64,
        /// Units: bytes.
        room: u64,
    },
    /// The kernel arguments are longer than their area.
    #[error(
        "the kernel arguments of {size} characters, with the image's own, exceed the embed area of {room}; remove some"
    )]
    KargsTooLong {
        /// Units: bytes.
        size: usize,
        /// Units: bytes.
        room: usize,
    },
    /// A kernel argument with a control character, which would end the line.
    #[error("kernel argument {0:?} holds a control character")]
    KargsNotPrintable(String),
    /// A kernel argument to replace that does not have its form.
    #[error(
        "{0:?} is no replacement of a kernel argument: write it as KEY=OLD=NEW, as in console=ttyS0=ttyS1"
    )]
    MalformedReplacement(String),
    /// The image has no embed area for kernel arguments.
    #[error("the image has no area for kernel arguments; remove them, or use a newer OS image")]
    NoKargsArea,
    /// The configuration cannot be packed.
    #[error("the ignition cannot be packed")]
    Ignition(#[from] ignition::Error),
    /// Files of the image cannot be moved or left out.
    #[error(transparent)]
    Layout(#[from] EditError),
    /// The configuration of a boot loader has no kernel arguments of a live image.
    #[error(
        "the image has no boot loader configuration with coreos.liveiso, so it has no minimal form; use full.iso"
    )]
    NoLoaderConfig,
    /// The image's areas contradict each other.
    #[error("the image's embed areas overlap")]
    Areas(#[from] Overlap),
}
