//! A minimal reader of plain ISO9660: finds files by path, and compares names as firmware does.
//!
//! Rock Ridge and Joliet are ignored, so the 8.3 names must be right.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::Error;

const SECTOR: u64 = 2048;
/// The volume descriptors start behind the 32 KiB system area.
const FIRST_DESCRIPTOR: u64 = 16;
/// More descriptors than this is no real image.
const MAX_DESCRIPTORS: u64 = 64;
/// Largest directory or file that is read whole.
const MAX_READ: u64 = 64 << 20;

/// An opened image.
#[derive(Debug)]
pub struct Iso {
    path: PathBuf,
    file: File,
    root: Extent,
    volume_id: String,
}

#[derive(Debug, Clone, Copy)]
struct Extent {
    sector: u64,
    size: u64,
}

struct DirectoryEntry {
    name: String,
    is_directory: bool,
    extent: Extent,
}

impl Iso {
    /// Opens an image and reads its primary volume descriptor.
    ///
    /// Errors: `File`; `Invalid` – no ISO9660 image, or shorter than it claims to be.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(|source| Error::File {
            path: path.into(),
            doing: "cannot be opened",
            source,
        })?;
        let mut iso = Self {
            path: path.into(),
            file,
            root: Extent { sector: 0, size: 0 },
            volume_id: String::new(),
        };
        let descriptor = iso.primary_descriptor()?;
        let volume_id = String::from_utf8_lossy(&descriptor[40..72]);
        iso.volume_id.push_str(volume_id.trim_end());
        let claimed = u64::from(le32(&descriptor, 80)) * SECTOR;
        let real = iso
            .file
            .metadata()
            .map_err(|source| iso.io("its size cannot be read", source))?
            .len();
        if real < claimed {
            return Err(iso.invalid(format!(
                "is incomplete: {real} of {claimed} bytes are there"
            )));
        }
        iso.root = entry(&descriptor[156..190])
            .ok_or_else(|| iso.invalid("its root directory record is damaged"))?
            .extent;
        Ok(iso)
    }

    /// The volume identifier.
    pub fn volume_id(&self) -> &str {
        &self.volume_id
    }

    /// Reads a whole file; `None` when the image has no such path.
    ///
    /// Errors: `File`, `Invalid` – damaged directory, or the file is too large to be read whole.
    pub fn read(&mut self, path: &str) -> Result<Option<Vec<u8>>, Error> {
        match self.find(path)? {
            Some(entry) if !entry.is_directory => self.read_extent(entry.extent).map(Some),
            _ => Ok(None),
        }
    }

    fn find(&mut self, path: &str) -> Result<Option<DirectoryEntry>, Error> {
        let mut at = DirectoryEntry {
            name: String::new(),
            is_directory: true,
            extent: self.root,
        };
        for part in path.split('/').filter(|part| !part.is_empty()) {
            if !at.is_directory {
                return Ok(None);
            }
            let wanted = short_name(part);
            match self
                .directory(at.extent)?
                .into_iter()
                .find(|entry| entry.name == wanted)
            {
                Some(entry) => at = entry,
                None => return Ok(None),
            }
        }
        Ok(Some(at))
    }

    fn directory(&mut self, extent: Extent) -> Result<Vec<DirectoryEntry>, Error> {
        let bytes = self.read_extent(extent)?;
        let mut entries = Vec::new();
        // Records never cross a sector; after a zero length byte the rest of one is unused.
        for sector in bytes.chunks(usize::try_from(SECTOR).unwrap_or(usize::MAX)) {
            let mut rest = sector;
            while let Some(&length) = rest.first() {
                let length = usize::from(length);
                if length == 0 {
                    break;
                }
                let record = rest
                    .get(..length)
                    .ok_or_else(|| self.invalid("a directory record is cut off"))?;
                entries.push(
                    entry(record).ok_or_else(|| self.invalid("a directory record is damaged"))?,
                );
                rest = &rest[length..];
            }
        }
        Ok(entries)
    }

    fn primary_descriptor(&mut self) -> Result<Vec<u8>, Error> {
        for sector in FIRST_DESCRIPTOR..FIRST_DESCRIPTOR + MAX_DESCRIPTORS {
            let bytes = self.read_extent(Extent {
                sector,
                size: SECTOR,
            })?;
            if &bytes[1..6] != b"CD001" {
                break;
            }
            match bytes[0] {
                1 => return Ok(bytes),
                255 => break,
                _ => {}
            }
        }
        Err(self.invalid("is not an ISO9660 image: no primary volume descriptor"))
    }

    fn read_extent(&mut self, extent: Extent) -> Result<Vec<u8>, Error> {
        if extent.size > MAX_READ {
            return Err(self.invalid(format!(
                "a file of {} bytes is too large to be read whole",
                extent.size
            )));
        }
        let mut bytes = Vec::new();
        self.file
            .seek(SeekFrom::Start(extent.sector * SECTOR))
            .and_then(|_| (&self.file).take(extent.size).read_to_end(&mut bytes))
            .map_err(|source| self.io("cannot be read", source))?;
        if (bytes.len() as u64) < extent.size {
            return Err(self.invalid("is not a whole ISO9660 image: it ends too early"));
        }
        Ok(bytes)
    }

    fn invalid(&self, reason: impl Into<String>) -> Error {
        Error::invalid(self.path.display().to_string(), reason)
    }

    fn io(&self, doing: &'static str, source: std::io::Error) -> Error {
        Error::File {
            path: self.path.clone(),
            doing,
            source,
        }
    }
}

/// The 8.3 name under which a path segment is stored.
fn short_name(part: &str) -> String {
    let upper = part.to_ascii_uppercase();
    let (stem, extension) = upper.split_once('.').unwrap_or((&upper, ""));
    let cut = |text: &str, length| text.chars().take(length).collect::<String>();
    match cut(extension, 3) {
        extension if extension.is_empty() => cut(stem, 8),
        extension => format!("{}.{extension}", cut(stem, 8)),
    }
}

fn entry(record: &[u8]) -> Option<DirectoryEntry> {
    let name_length = usize::from(*record.get(32)?);
    let name = record.get(33..33 + name_length)?;
    let name = String::from_utf8_lossy(name);
    let name = name
        .split(';')
        .next()
        .unwrap_or_default()
        .trim_end_matches('.')
        .to_owned();
    Some(DirectoryEntry {
        name,
        is_directory: record[25] & 2 != 0,
        extent: Extent {
            sector: u64::from(le32(record, 2)),
            size: u64::from(le32(record, 10)),
        },
    })
}

fn le32(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..at + 4)
        .and_then(|b| b.try_into().ok())
        .map_or(0, u32::from_le_bytes)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const SECTOR_BYTES: usize = 2048;

    fn record(name: &[u8], sector: usize, size: usize, is_directory: bool) -> Vec<u8> {
        let mut length = 33 + name.len();
        length += length % 2;
        let mut record = vec![0; length];
        record[0] = u8::try_from(length).unwrap();
        record[2..6].copy_from_slice(&u32::try_from(sector).unwrap().to_le_bytes());
        record[10..14].copy_from_slice(&u32::try_from(size).unwrap().to_le_bytes());
        record[25] = if is_directory { 2 } else { 0 };
        record[32] = u8::try_from(name.len()).unwrap();
        record[33..33 + name.len()].copy_from_slice(name);
        record
    }

    /// An image of directories with one file each: (directory, file name as stored, content).
    pub(crate) fn image(files: &[(&str, &str, &[u8])]) -> Vec<u8> {
        let root_sector = 18;
        let mut root = [
            record(&[0], root_sector, SECTOR_BYTES, true),
            record(&[1], root_sector, SECTOR_BYTES, true),
        ]
        .concat();
        let mut body = Vec::new();
        for (directory, name, content) in files {
            let at = root_sector + 1 + body.len() / SECTOR_BYTES;
            root.extend(record(directory.as_bytes(), at, SECTOR_BYTES, true));
            let mut listing = [
                record(&[0], at, SECTOR_BYTES, true),
                record(&[1], root_sector, SECTOR_BYTES, true),
            ]
            .concat();
            listing.extend(record(name.as_bytes(), at + 1, content.len(), false));
            listing.resize(SECTOR_BYTES, 0);
            body.extend(listing);
            body.extend_from_slice(content);
            body.resize(body.len().next_multiple_of(SECTOR_BYTES), 0);
        }
        root.resize(SECTOR_BYTES, 0);
        let mut primary = vec![0; SECTOR_BYTES];
        primary[..7].copy_from_slice(b"\x01CD001\x01");
        primary[40..72].copy_from_slice(format!("{:32}", "rhcos-418.94").as_bytes());
        let sectors = u32::try_from(root_sector + 1 + body.len() / SECTOR_BYTES).unwrap();
        primary[80..84].copy_from_slice(&sectors.to_le_bytes());
        primary[156..190].copy_from_slice(&record(&[0], root_sector, SECTOR_BYTES, true));
        let mut end = vec![0; SECTOR_BYTES];
        end[..7].copy_from_slice(b"\xffCD001\x01");
        [vec![0; 16 * SECTOR_BYTES], primary, end, root, body].concat()
    }

    fn open(bytes: &[u8]) -> (tempfile::NamedTempFile, Result<Iso, Error>) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let iso = Iso::open(file.path());
        (file, iso)
    }

    #[test]
    fn files_are_found_under_their_long_names() {
        let (_file, iso) = open(&image(&[
            ("COREOS", "IGNINFO.JSO;1", b"{}"),
            ("IMAGES", "IGNITION.IMG;1", b"area"),
        ]));
        let mut iso = iso.unwrap();
        assert_eq!(iso.volume_id(), "rhcos-418.94");
        assert_eq!(iso.read("coreos/igninfo.json").unwrap().unwrap(), b"{}");
        assert_eq!(iso.read("/images/ignition.img").unwrap().unwrap(), b"area");
        assert!(iso.read("images/rootfs.img").unwrap().is_none());
        assert!(iso.read("images").unwrap().is_none());
    }

    #[test]
    fn a_cut_image_is_incomplete() {
        let whole = image(&[("IMAGES", "IGNITION.IMG;1", &[1; 9000])]);
        let (_file, iso) = open(&whole[..whole.len() - 2048]);
        assert!(iso.unwrap_err().to_string().contains("incomplete"));
    }

    #[test]
    fn random_damage_never_panics() {
        let whole = image(&[("COREOS", "IGNINFO.JSO;1", b"{}")]);
        for at in (32_768..whole.len()).step_by(7) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            if let (_file, Ok(mut iso)) = open(&damaged) {
                let _ = iso.read("coreos/igninfo.json");
            }
        }
    }
}
