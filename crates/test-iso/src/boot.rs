//! Boot parts for firmware: the boot catalog, a loader and an EFI partition. All valid; the loaders halt.

use crate::records::le32;

/// Boot catalog of images with isolinux.
pub(super) const CATALOG_X86: &str = "isolinux/boot.cat";
/// Boot catalog of images that boot by EFI only.
pub(super) const CATALOG_EFI: &str = "boot.catalog";
/// The BIOS loader.
pub(super) const LOADER: &str = "isolinux/isolinux.bin";
/// The boot image of s390x.
pub(super) const S390X_IMAGE: &str = "images/cdboot.img";
/// The EFI partition.
pub(super) const EFI_IMAGE: &str = "images/efiboot.img";

const PLATFORM_BIOS: u8 = 0;
const PLATFORM_EFI: u8 = 0xef;

/// Jumps over the boot information table, then halts for ever.
pub(super) fn loader() -> Vec<u8> {
    let mut code = vec![0; 2048];
    code[..2].copy_from_slice(&[0xeb, 0x3e]);
    code[0x40..0x44].copy_from_slice(&[0xfa, 0xf4, 0xeb, 0xfc]);
    code
}

/// Fills the boot information table in: where the descriptor and the loader are, and a checksum.
pub(super) fn patch_loader(code: &mut [u8], sector: u32) {
    let sum = code[64..]
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
        .fold(0, u32::wrapping_add);
    let length = u32::try_from(code.len()).unwrap_or(u32::MAX);
    for (index, value) in [16, sector, length, sum].into_iter().enumerate() {
        code[8 + index * 4..][..4].copy_from_slice(&le32(value));
    }
}

/// A catalog with an entry for each of the two ways to boot: sector of the BIOS loader, sector and length of the
/// EFI partition.
pub(super) fn catalog(bios: Option<u32>, efi: (u32, u32)) -> Vec<u8> {
    let (efi_sector, efi_length) = efi;
    let count = u16::try_from(efi_length.div_ceil(2048) * 4).unwrap_or(u16::MAX);
    let efi_entry = entry(count, efi_sector);
    let mut bytes = validation(if bios.is_some() {
        PLATFORM_BIOS
    } else {
        PLATFORM_EFI
    });
    if let Some(sector) = bios {
        bytes.extend(entry(4, sector));
        let mut section = vec![0x91, PLATFORM_EFI, 1, 0];
        section.resize(32, 0);
        bytes.extend(section);
    }
    bytes.extend(efi_entry);
    bytes.resize(2048, 0);
    bytes
}

fn validation(platform: u8) -> Vec<u8> {
    let mut bytes = vec![1, platform];
    bytes.resize(30, 0);
    bytes.extend([0x55, 0xaa]);
    let sum = bytes
        .chunks_exact(2)
        .map(|word| u16::from_le_bytes([word[0], word[1]]))
        .fold(0, u16::wrapping_add);
    bytes[28..30].copy_from_slice(&sum.wrapping_neg().to_le_bytes());
    bytes
}

/// A bootable entry without emulation. `count` is in units of 512 bytes.
fn entry(count: u16, sector: u32) -> Vec<u8> {
    let mut bytes = vec![0x88, 0, 0, 0, 0, 0];
    bytes.extend(count.to_le_bytes());
    bytes.extend(le32(sector));
    bytes.resize(32, 0);
    bytes
}

const FAT_SECTOR: usize = 512;
const FAT_SECTORS: u8 = 128;

/// A FAT12 file system with the configuration that leads the boot loader to the image's own.
pub(super) fn efi_image(volume_id: &str, vendor: &str) -> Vec<u8> {
    let config = format!(
        "search --label \"{volume_id}\" --set root --no-floppy\nset prefix=($root)/EFI/{vendor}\nconfigfile $prefix/grub.cfg\n"
    );
    let mut image = vec![0; usize::from(FAT_SECTORS) * FAT_SECTOR];
    image[..11].copy_from_slice(b"\xeb\x3c\x90mkfs.fat");
    // 512-byte sectors, one a cluster, one reserved, two tables, 16 entries in the root, media, one sector a table.
    let geometry = [
        0,
        2,
        1,
        1,
        0,
        2,
        16,
        0,
        FAT_SECTORS,
        0,
        0xf8,
        1,
        0,
        32,
        0,
        8,
        0,
    ];
    image[11..28].copy_from_slice(&geometry);
    image[36..39].copy_from_slice(&[0x80, 0, 0x29]);
    image[43..62].copy_from_slice(b"EFIBOOT    FAT12   ");
    image[510..512].copy_from_slice(&[0x55, 0xaa]);
    // The file takes the one cluster after the two that every table begins with.
    for table in [1, 2] {
        image[table * FAT_SECTOR..][..5].copy_from_slice(&[0xf8, 0xff, 0xff, 0xff, 0x0f]);
    }
    let root = &mut image[3 * FAT_SECTOR..][..32];
    root[..12].copy_from_slice(b"GRUB    CFG\x20");
    root[26] = 2;
    root[28..32].copy_from_slice(&le32(u32::try_from(config.len()).unwrap_or(u32::MAX)));
    image[4 * FAT_SECTOR..][..config.len()].copy_from_slice(config.as_bytes());
    image
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_validation_entry_sums_to_zero() {
        let bytes = catalog(Some(30), (40, 65536));
        let sum = bytes[..32]
            .chunks_exact(2)
            .map(|word| u16::from_le_bytes([word[0], word[1]]))
            .fold(0, u16::wrapping_add);
        assert_eq!(sum, 0);
        assert_eq!(bytes[32..44], [0x88, 0, 0, 0, 0, 0, 4, 0, 30, 0, 0, 0]);
        assert_eq!(bytes[96..108], [0x88, 0, 0, 0, 0, 0, 128, 0, 40, 0, 0, 0]);
    }
}
