//! Discovery images: base images with ignition and kernel arguments, as a list of pieces to stream.

use bytes::Bytes;
use ignition::archive;

use super::base::{BaseImage, KargsArea};
use super::error::CustomiseError;
use super::iso_edit::{IsoEdit, Replacement, edited};
use super::kargs::KargsChange;
use crate::content::{ContentPieces, Overlay, Piece, align};

/// A whole image with `ignition` and the archives in it, or with those that it has, and its kernel arguments changed.
///
/// Errors: when one of them does not fit.
pub fn customised(
    image: &BaseImage,
    ignition: Option<&[u8]>,
    archives: InitrdArchives,
    kargs: &KargsChange,
) -> Result<ContentPieces, CustomiseError> {
    let mut edit = IsoEdit::default();
    if let Some(ignition) = ignition {
        embed_ignition(&mut edit, image, ignition, archives)?;
    }
    if !kargs.is_empty() {
        if image.kargs.is_empty() {
            return Err(CustomiseError::NoKargsArea);
        }
        for area in &image.kargs {
            let piece = Piece::Memory(kargs_text(area, &kargs.apply(&area.text)?)?);
            edit.overlays.push(Overlay {
                start: area.start,
                piece,
            });
        }
    }
    match &image.map {
        Some(map) if !edit.replacements.is_empty() => Ok(edited(map, &image.whole(), edit)?),
        _ => Ok(ContentPieces::overlaid(&image.whole(), edit.overlays)?),
    }
}

/// The image as it was published: without ignition, and with its default kernel arguments if it records them.
///
/// Errors: when its areas contradict each other.
pub fn pristine(image: &BaseImage) -> Result<ContentPieces, CustomiseError> {
    let area = &image.ignition;
    let mut overlays = vec![Overlay {
        start: area.start,
        piece: Piece::Zeros(area.end - area.start),
    }];
    if let Some(text) = image.default_kernel_arguments() {
        for area in &image.kargs {
            let piece = Piece::Memory(kargs_text(area, &text)?);
            overlays.push(Overlay {
                start: area.start,
                piece,
            });
        }
    }
    Ok(ContentPieces::overlaid(&image.whole(), overlays)?)
}

/// Archives beside the ignition for early boot.
#[derive(Debug, Clone, Default)]
pub struct InitrdArchives {
    /// The ramdisk of the installer API, with static networks.
    pub ramdisk: Option<Bytes>,
    /// The program that applies its policies.
    pub nmstatectl: Option<Bytes>,
    /// The discovery agent, when it is inside the image.
    pub agent: Option<Bytes>,
}

impl InitrdArchives {
    fn append_to(self, content: &mut ContentPieces) {
        for archive in [self.ramdisk, self.nmstatectl, self.agent]
            .into_iter()
            .flatten()
        {
            content.push(Piece::Memory(archive));
            align(content);
        }
    }
}

/// Puts archives into the ignition area. When they are longer, the area's file is replaced with a longer one: boot loaders
/// load that file as an initrd of any length.
pub(super) fn embed_ignition(
    edit: &mut IsoEdit,
    image: &BaseImage,
    ignition: &[u8],
    archives: InitrdArchives,
) -> Result<(), CustomiseError> {
    let mut content = ContentPieces::new();
    content.push(Piece::Memory(archive::write(ignition)?.into()));
    archives.append_to(&mut content);
    let area = &image.ignition;
    let room = area.end - area.start;
    let size = content.length();
    if let Some(rest) = room.checked_sub(size) {
        // The base image may contain an ignition already.
        content.push(Piece::Zeros(rest));
        edit.overlays.extend(content.overlays(area.start));
        return Ok(());
    }
    let file = image.ignition_file.clone();
    let (Some(file), Some(_)) = (file, &image.map) else {
        return Err(CustomiseError::IgnitionTooLarge { size, room });
    };
    let step = (room / 4).max(1);
    content.push(Piece::Zeros(size.next_multiple_of(step) + step - size));
    edit.replacements.push(Replacement { file, content });
    Ok(())
}

/// The bytes of an area with other arguments.
fn kargs_text(area: &KargsArea, text: &str) -> Result<Bytes, CustomiseError> {
    let mut bytes = text.as_bytes().to_vec();
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

/// The initrd with `ignition` and the archives appended. Source: assisted-image-service.
///
/// Errors: when the configuration cannot be packed.
pub fn pxe_initrd(
    image: &BaseImage,
    ignition: &[u8],
    archives: InitrdArchives,
) -> Result<ContentPieces, CustomiseError> {
    let mut content = ContentPieces::new();
    content.push(image.initrd());
    align(&mut content);
    content.push(Piece::Memory(archive::write(ignition)?.into()));
    archives.append_to(&mut content);
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
        assert_eq!(
            kargs_text(&area(12), "a b=1 c").unwrap().as_ref(),
            b"a b=1 c\n####"
        );
        assert_eq!(
            kargs_text(&area(8), "a b=1 c").unwrap().as_ref(),
            b"a b=1 c\n"
        );
        assert!(matches!(
            kargs_text(&area(7), "a b=1 c"),
            Err(CustomiseError::KargsTooLong { size: 7, room: 6 })
        ));
    }
}
