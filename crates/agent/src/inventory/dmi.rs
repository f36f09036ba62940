//! The tables of the firmware: SMBIOS.
//!
//! Source: DMTF DSP0134; `/sys/firmware/dmi/tables/DMI` has the structures one after the other.

use crate::HostFiles;

const PROCESSOR: u8 = 4;
const MEMORY_DEVICE: u8 = 17;

/// One structure: its formatted area with the header, and its strings.
struct Structure<'a> {
    kind: u8,
    area: &'a [u8],
    strings: &'a [u8],
}

impl Structure<'_> {
    fn word(&self, offset: usize) -> Option<u16> {
        let bytes = self.area.get(offset..offset + 2)?;
        Some(u16::from_le_bytes(bytes.try_into().ok()?))
    }

    fn double_word(&self, offset: usize) -> Option<u32> {
        let bytes = self.area.get(offset..offset + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    /// The text that the byte at `offset` numbers, from 1.
    fn text(&self, offset: usize) -> Option<String> {
        let number = usize::from(*self.area.get(offset)?);
        let mut strings = self.strings.split(|byte| *byte == 0);
        let text = strings.nth(number.checked_sub(1)?)?;
        Some(String::from_utf8_lossy(text).trim().to_owned())
    }
}

struct Structures<'a>(&'a [u8]);

impl<'a> Iterator for Structures<'a> {
    type Item = Structure<'a>;

    fn next(&mut self) -> Option<Structure<'a>> {
        let [kind, length, ..] = *self.0 else {
            return None;
        };
        let area = self.0.get(..usize::from(length))?;
        if area.len() < 4 {
            return None;
        }
        let rest = &self.0[area.len()..];
        let end = rest.windows(2).position(|pair| pair == [0, 0])?;
        let strings = &rest[..end];
        self.0 = &rest[end + 2..];
        Some(Structure {
            kind,
            area,
            strings,
        })
    }
}

/// The tables of the firmware; empty when it has none or they cannot be read.
pub(super) struct DmiTables(Vec<u8>);

impl DmiTables {
    pub(super) fn read(files: &HostFiles) -> Self {
        let table = files.bytes("/sys/firmware/dmi/tables/DMI");
        Self(table.unwrap_or_default())
    }

    fn of_kind(&self, kind: u8) -> impl Iterator<Item = Structure<'_>> {
        Structures(&self.0).filter(move |structure| structure.kind == kind)
    }

    /// The sum of all memory devices. Units: bytes.
    pub(super) fn memory(&self) -> u64 {
        self.of_kind(MEMORY_DEVICE)
            .filter_map(|device| memory_size(&device))
            .sum()
    }

    /// The name of the first processor.
    pub(super) fn processor(&self) -> Option<String> {
        self.of_kind(PROCESSOR)
            .find_map(|processor| processor.text(0x10))
            .filter(|name| !name.is_empty())
    }
}

fn memory_size(device: &Structure<'_>) -> Option<u64> {
    match device.word(0x0c)? {
        // Without a module; unknown.
        0 | 0xffff => None,
        // Too large for the word.
        0x7fff => Some(u64::from(device.double_word(0x1c)? & 0x7fff_ffff) << 20),
        kibibytes if kibibytes & 0x8000 != 0 => Some(u64::from(kibibytes & 0x7fff) << 10),
        mebibytes => Some(u64::from(mebibytes) << 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn device(size: u16, extended: u32) -> Vec<u8> {
        let mut bytes = vec![MEMORY_DEVICE, 0x22, 0, 0x11];
        bytes.resize(0x0c, 0);
        bytes.extend(size.to_le_bytes());
        bytes.resize(0x1c, 0);
        bytes.extend(extended.to_le_bytes());
        bytes.resize(0x22, 0);
        bytes.extend(b"DIMM 0\0\0");
        bytes
    }

    #[test]
    fn memory_devices_are_summed() {
        let table = [
            device(16384, 0),
            device(0, 0),
            device(0xffff, 0),
            device(0x7fff, 65536),
            device(0x8000 | 512, 0),
        ];
        let tables = DmiTables(table.concat());
        assert_eq!(tables.memory(), (16384 << 20) + (65536 << 20) + (512 << 10));
    }

    #[test]
    fn the_processor_has_a_name() {
        let mut table = device(1, 0);
        let mut processor = vec![PROCESSOR, 0x11, 0, 4];
        processor.resize(0x10, 0);
        processor.push(2);
        table.extend(processor);
        table.extend(b"Socket\0Altra Q80-30 \0\0");
        assert_eq!(
            DmiTables(table).processor().as_deref(),
            Some("Altra Q80-30")
        );
        assert_eq!(DmiTables(Vec::new()).processor(), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
            let tables = DmiTables(bytes);
            let _ = (tables.memory(), tables.processor());
        }
    }
}
