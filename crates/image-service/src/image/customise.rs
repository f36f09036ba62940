//! Discovery images: base images with ignition and kernel arguments, as a list of pieces to stream.

use bytes::Bytes;
use ignition::archive;

use super::base::{BaseImage, KargsArea};
use crate::content::{ImageContent, Overlap, Overlay, Piece};

/// Reason why an image cannot be customised.
#[derive(Debug, thiserror::Error)]
pub enum CustomiseError {
    /// The packed configuration is larger than its area.
    #[error(
        "the packed ignition of {size} bytes exceeds the embed area of {room}; shorten the ignition config override or other parts of the discovery ignition"
    )]
    IgnitionTooLarge {
        /// Units: bytes.
        size: usize,
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
    /// The image has no embed area for kernel arguments.
    #[error(
        "the image has no area for kernel arguments; remove them from the infra-env or use a newer OS image"
    )]
    NoKargsArea,
    /// The configuration cannot be packed.
    #[error("the ignition cannot be packed")]
    Ignition(#[from] ignition::Error),
    /// The image's areas contradict each other.
    #[error("the image's embed areas overlap")]
    Areas(#[from] Overlap),
}

/// A whole image with `ignition` in it and `kargs` added to every boot loader's line.
///
/// Errors: when one of them does not fit.
pub fn full_iso(
    image: &BaseImage,
    ignition: &[u8],
    kargs: &[String],
) -> Result<ImageContent, CustomiseError> {
    let packed = archive::write(ignition)?;
    let area = &image.ignition;
    let room = area.end - area.start;
    let size = packed.len();
    let Some(rest) = room.checked_sub(size as u64) else {
        return Err(CustomiseError::IgnitionTooLarge { size, room });
    };
    let mut overlays = vec![
        Overlay {
            start: area.start,
            piece: Piece::Memory(packed.into()),
        },
        // The base image may contain an ignition already.
        Overlay {
            start: area.end - rest,
            piece: Piece::Zeros(rest),
        },
    ];
    if !kargs.is_empty() {
        if image.kargs.is_empty() {
            return Err(CustomiseError::NoKargsArea);
        }
        for area in &image.kargs {
            let piece = Piece::Memory(kargs_text(area, kargs)?);
            overlays.push(Overlay {
                start: area.start,
                piece,
            });
        }
    }
    Ok(ImageContent::overlaid(&image.whole(), overlays)?)
}

fn kargs_text(area: &KargsArea, kargs: &[String]) -> Result<Bytes, CustomiseError> {
    let mut text = area.text.clone();
    for karg in kargs {
        if karg.chars().any(char::is_control) {
            return Err(CustomiseError::KargsNotPrintable(karg.clone()));
        }
        text.push(' ');
        text.push_str(karg);
    }
    let mut bytes = text.into_bytes();
    // One byte is reserved for the end.
    let room = area.size.saturating_sub(1);
    if bytes.len() > room {
        let size = bytes.len();
        return Err(CustomiseError::KargsTooLong { size, room });
    }
    bytes.push(area.end);
    bytes.resize(area.size, area.pad);
    Ok(bytes.into())
}

/// The initrd with `ignition` and, if present, `ramdisk` and `nmstatectl` (archives already) appended. Source:
/// assisted-image-service.
///
/// Errors: when the configuration cannot be packed.
pub fn pxe_initrd(
    image: &BaseImage,
    ignition: &[u8],
    ramdisk: Option<Bytes>,
    nmstatectl: Option<Bytes>,
) -> Result<ImageContent, CustomiseError> {
    let mut content = ImageContent::new();
    content.push(image.initrd());
    content.align();
    content.push(Piece::Memory(archive::write(ignition)?.into()));
    for archive in [ramdisk, nmstatectl].into_iter().flatten() {
        content.push(Piece::Memory(archive));
        content.align();
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(size: usize) -> KargsArea {
        KargsArea {
            start: 0,
            size,
            text: "a".to_owned(),
            end: b'\n',
            pad: b'#',
        }
    }

    #[test]
    fn kernel_arguments_fill_their_area() {
        let kargs = ["b=1".to_owned(), "c".to_owned()];
        assert_eq!(
            kargs_text(&area(12), &kargs).unwrap().as_ref(),
            b"a b=1 c\n####"
        );
        assert_eq!(kargs_text(&area(8), &kargs).unwrap().as_ref(), b"a b=1 c\n");
        assert!(matches!(
            kargs_text(&area(7), &kargs),
            Err(CustomiseError::KargsTooLong { size: 7, room: 6 })
        ));
        assert!(kargs_text(&area(90), &["x\ny".to_owned()]).is_err());
    }

    #[test]
    fn too_large_an_ignition_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.iso");
        testkit::iso::write(&path, &testkit::iso::LiveImageOptions::small()).unwrap();
        let image = BaseImage::open(&path).unwrap();
        // Incompressible: a stream of hashes.
        let mut noise = Vec::new();
        let mut word: u64 = 1;
        while noise.len() < 300_000 {
            word = word
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            noise.extend(word.to_be_bytes()[..4].iter());
        }
        let error = full_iso(&image, &noise, &[]).unwrap_err();
        assert!(
            error.to_string().contains("embed area of 262144"),
            "{error}"
        );
    }
}
