//! Records of ISO9660, Rock Ridge and Joliet, byte by byte.

use crate::tree::FileTree;

/// Units: bytes.
pub(super) const SECTOR: u64 = 2048;
/// The same, for buffers.
const SECTOR_LENGTH: usize = 2048;

/// 2025-11-19 15:18:00 UTC: a fixed time keeps the bytes the same.
const DATE: [u8; 7] = [125, 11, 19, 15, 18, 0, 0];
const LONG_DATE: &[u8; 17] = b"2025111915180000\0";
const NO_DATE: &[u8; 17] = b"0000000000000000\0";

/// Naming scheme of a directory tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameScheme {
    /// Upper case, eight and three characters.
    Plain,
    /// The same with Rock Ridge entries; the number is the sector of their declaration.
    RockRidge(u32),
    /// UCS-2.
    Joliet,
}

/// Where things are: sectors and lengths in bytes, by index of the node.
pub(super) struct Places {
    pub(super) sectors: Vec<u32>,
    pub(super) lengths: Vec<u32>,
}

pub(super) fn le32(value: u32) -> [u8; 4] {
    value.to_le_bytes()
}

fn both32(value: u32) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&value.to_le_bytes());
    bytes[4..].copy_from_slice(&value.to_be_bytes());
    bytes
}

fn both16(value: u16) -> [u8; 4] {
    let mut bytes = [0; 4];
    bytes[..2].copy_from_slice(&value.to_le_bytes());
    bytes[2..].copy_from_slice(&value.to_be_bytes());
    bytes
}

impl NameScheme {
    fn identifier(self, name: &str, is_directory: bool) -> Vec<u8> {
        match self {
            Self::Joliet if is_directory => ucs2(name),
            Self::Joliet => ucs2(&format!("{name};1")),
            Self::Plain | Self::RockRidge(_) => plain(name, is_directory).into_bytes(),
        }
    }
}

fn plain(name: &str, is_directory: bool) -> String {
    let (stem, extension) = name.split_once('.').unwrap_or((name, ""));
    let cut = |text: &str, length| -> String {
        let characters = text.chars().map(|character| match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' => character.to_ascii_uppercase(),
            _ => '_',
        });
        characters.take(length).collect()
    };
    if is_directory {
        cut(name, 8)
    } else {
        format!("{}.{};1", cut(stem, 8), cut(extension, 3))
    }
}

fn ucs2(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_be_bytes).collect()
}

/// A directory's records, none of them across two sectors, padded to whole sectors.
pub(super) fn directory(
    tree: &FileTree,
    names: NameScheme,
    node: usize,
    places: &Places,
) -> Vec<u8> {
    let mut records = vec![
        record(tree, names, node, b"\0", places),
        record(tree, names, tree.0[node].parent, b"\x01", places),
    ];
    let mut children: Vec<_> = tree
        .children(node)
        .map(|child| {
            let entry = &tree.0[child];
            (names.identifier(&entry.name, entry.data.is_none()), child)
        })
        .collect();
    children.sort();
    records.extend(
        children
            .iter()
            .map(|(identifier, child)| record(tree, names, *child, identifier, places)),
    );
    let mut bytes = Vec::new();
    for record in records {
        let room = SECTOR_LENGTH - bytes.len() % SECTOR_LENGTH;
        if record.len() > room {
            bytes.resize(bytes.len() + room, 0);
        }
        bytes.extend(record);
    }
    bytes.resize(bytes.len().next_multiple_of(SECTOR_LENGTH), 0);
    bytes
}

fn record(
    tree: &FileTree,
    names: NameScheme,
    node: usize,
    identifier: &[u8],
    places: &Places,
) -> Vec<u8> {
    let is_directory = tree.0[node].data.is_none();
    let mut bytes = vec![0, 0];
    bytes.extend(both32(places.sectors[node]));
    bytes.extend(both32(places.lengths[node]));
    bytes.extend(DATE);
    bytes.extend([if is_directory { 2 } else { 0 }, 0, 0]);
    bytes.extend(both16(1));
    bytes.push(byte(identifier.len()));
    bytes.extend(identifier);
    even(&mut bytes);
    if let NameScheme::RockRidge(declaration) = names {
        let is_first = identifier == b"\0" && node == 0;
        if is_first {
            bytes.extend(b"SP\x07\x01\xbe\xef\x00");
        }
        bytes.extend(b"PX\x24\x01");
        let (mode, links) = if is_directory {
            (0o040_755, 2)
        } else {
            (0o100_644, 1)
        };
        for value in [mode, links, 0, 0] {
            bytes.extend(both32(value));
        }
        if identifier.len() > 1 {
            let name = &tree.0[node].name;
            bytes.extend([b'N', b'M', byte(5 + name.len()), 1, 0]);
            bytes.extend(name.bytes());
        }
        if is_first {
            // The last of a record: some readers follow it only there.
            bytes.extend(b"CE\x1c\x01");
            for value in [declaration, 0, byte(declaration_bytes().len()).into()] {
                bytes.extend(both32(value));
            }
        }
        even(&mut bytes);
    }
    bytes[0] = byte(bytes.len());
    bytes
}

fn even(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(2), 0);
}

fn byte(length: usize) -> u8 {
    u8::try_from(length).expect("names in a live image are short")
}

/// Says that the entries are Rock Ridge's.
pub(super) fn declaration_bytes() -> Vec<u8> {
    let identifier = b"RRIP_1991A";
    let mut bytes = vec![b'E', b'R', byte(8 + identifier.len()), 1];
    bytes.extend([byte(identifier.len()), 0, 0, 1]);
    bytes.extend(identifier);
    bytes
}

/// A path table; `is_little` chooses the order of bytes.
pub(super) fn path_table(
    tree: &FileTree,
    names: NameScheme,
    places: &Places,
    is_little: bool,
) -> Vec<u8> {
    let directories = tree.directories();
    let mut bytes = Vec::new();
    for node in &directories {
        let entry = &tree.0[*node];
        let identifier = match node {
            0 => vec![0],
            _ => names.identifier(&entry.name, true),
        };
        let sector = places.sectors[*node];
        let parent = directories.iter().position(|at| *at == entry.parent);
        let parent = u16::from(byte(parent.unwrap_or(0) + 1));
        bytes.extend([byte(identifier.len()), 0]);
        if is_little {
            bytes.extend(sector.to_le_bytes());
            bytes.extend(parent.to_le_bytes());
        } else {
            bytes.extend(sector.to_be_bytes());
            bytes.extend(parent.to_be_bytes());
        }
        bytes.extend(identifier);
        even(&mut bytes);
    }
    bytes
}

/// Fields of a volume descriptor.
pub(super) struct Volume<'a> {
    pub(super) id: &'a str,
    /// Units: sectors.
    pub(super) size: u32,
    /// Units: bytes.
    pub(super) path_table_length: u32,
    /// Sectors of the path tables, the little-endian one first.
    pub(super) path_tables: [u32; 2],
}

/// A primary or, for Joliet, supplementary volume descriptor.
pub(super) fn volume(
    tree: &FileTree,
    names: NameScheme,
    volume: &Volume<'_>,
    places: &Places,
) -> Vec<u8> {
    let is_joliet = names == NameScheme::Joliet;
    let text = |text: &str, length: usize| {
        let mut bytes = if is_joliet {
            ucs2(text)
        } else {
            text.as_bytes().to_vec()
        };
        bytes.truncate(length);
        let blank: &[u8] = if is_joliet { b"\0 " } else { b" " };
        let missing = blank.iter().copied().cycle().take(length - bytes.len());
        bytes.extend(missing.collect::<Vec<_>>());
        bytes
    };
    let mut bytes = vec![if is_joliet { 2 } else { 1 }];
    bytes.extend(b"CD001\x01\0");
    bytes.extend(text("LINUX", 32));
    bytes.extend(text(volume.id, 32));
    bytes.extend([0; 8]);
    bytes.extend(both32(volume.size));
    let mut escapes = [0; 32];
    if is_joliet {
        escapes[..3].copy_from_slice(b"%/E");
    }
    bytes.extend(escapes);
    for value in [1, 1, 2048] {
        bytes.extend(both16(value));
    }
    bytes.extend(both32(volume.path_table_length));
    bytes.extend(volume.path_tables[0].to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(volume.path_tables[1].to_be_bytes());
    bytes.extend([0; 4]);
    let plain_names = if is_joliet { names } else { NameScheme::Plain };
    bytes.extend(record(tree, plain_names, 0, b"\0", places));
    // Volume set, publisher, preparer, application; three names of files.
    for length in [128, 128, 128, 128, 37, 37, 37] {
        bytes.extend(text("", length));
    }
    bytes.extend(LONG_DATE);
    bytes.extend(LONG_DATE);
    bytes.extend(NO_DATE);
    bytes.extend(NO_DATE);
    bytes.push(1);
    bytes.resize(SECTOR_LENGTH, 0);
    bytes
}

/// The descriptor that leads firmware to the boot catalog.
pub(super) fn boot_record(catalog: u32) -> Vec<u8> {
    let mut bytes = b"\0CD001\x01EL TORITO SPECIFICATION".to_vec();
    bytes.resize(0x47, 0);
    bytes.extend(le32(catalog));
    bytes.resize(SECTOR_LENGTH, 0);
    bytes
}

/// The descriptor that ends the list.
pub(super) fn terminator() -> Vec<u8> {
    let mut bytes = b"\xffCD001\x01".to_vec();
    bytes.resize(SECTOR_LENGTH, 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_have_eight_and_three_characters() {
        for (name, is_directory, expected) in [
            ("igninfo.json", false, "IGNINFO.JSO;1"),
            ("vmlinuz", false, "VMLINUZ.;1"),
            ("isolinux.cfg", false, "ISOLINUX.CFG;1"),
            ("boot.catalog", false, "BOOT.CAT;1"),
            ("pxeboot", true, "PXEBOOT"),
        ] {
            assert_eq!(plain(name, is_directory), expected);
        }
    }
}
