//! A minimal ISO9660 reader: the plain tree with its upper-case 8.3 names, as coreos-installer reads it. Rock Ridge and
//! Joliet are ignored.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use super::iso_map::{SECTOR, SECTOR_LENGTH};

/// Sector of the first volume descriptor.
const DESCRIPTORS: u64 = 16;
/// More descriptors than any image has.
const MAX_DESCRIPTORS: u64 = 64;
/// Units: bytes. More than any directory of a live image has.
const MAX_DIRECTORY: u64 = 1024 * 1024;

const PRIMARY: u8 = 1;
const TERMINATOR: u8 = 255;
const FLAG_DIRECTORY: u8 = 2;

/// Extent of a file or directory. Units: bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct IsoEntry {
    extent: Range<u64>,
    is_directory: bool,
}

/// The plain tree of an image.
#[derive(Debug)]
pub(super) struct Iso<'a> {
    file: &'a File,
    /// Name of the volume, without the blanks at its end.
    pub(super) volume_id: String,
    /// Length by the volume descriptor. Units: bytes.
    pub(super) length: u64,
    root: IsoEntry,
}

impl<'a> Iso<'a> {
    /// Reads the primary volume descriptor.
    ///
    /// Errors: `InvalidData` when there is none.
    pub(super) fn open(file: &'a File) -> io::Result<Self> {
        for sector in DESCRIPTORS..DESCRIPTORS + MAX_DESCRIPTORS {
            let mut bytes = [0; SECTOR_LENGTH];
            file.read_exact_at(&mut bytes, sector * SECTOR)
                .map_err(|error| match error.kind() {
                    io::ErrorKind::UnexpectedEof => invalid("too short for an ISO image"),
                    _ => error,
                })?;
            if &bytes[1..6] != b"CD001" || bytes[0] == TERMINATOR {
                break;
            }
            if bytes[0] == PRIMARY {
                let volume_id = String::from_utf8_lossy(&bytes[40..72]);
                return Ok(Self {
                    file,
                    volume_id: volume_id.trim_end_matches([' ', '\0']).to_owned(),
                    length: le32(&bytes, 80) * SECTOR,
                    root: entry(&bytes[156..190]),
                });
            }
        }
        Err(invalid(
            "no ISO image: the primary volume descriptor is missing",
        ))
    }

    /// Extent of the file at `path`, as in `images/ignition.img`; case-insensitive. Absent when there is none.
    ///
    /// Errors: those of reading, and `InvalidData` for a broken directory.
    pub(super) fn find(&self, path: &str) -> io::Result<Option<Range<u64>>> {
        let mut at = self.root.clone();
        for name in path.split('/').filter(|name| !name.is_empty()) {
            if !at.is_directory {
                return Ok(None);
            }
            let Some(next) = self.look_up(&at, &plain_name(name))? else {
                return Ok(None);
            };
            at = next;
        }
        Ok((!at.is_directory).then_some(at.extent))
    }

    /// The bytes of a small file; absent when there is none.
    ///
    /// Errors: as [`Iso::find`], and `InvalidData` when it is larger than `limit`.
    pub(super) fn read(&self, path: &str, limit: u64) -> io::Result<Option<(u64, Vec<u8>)>> {
        let Some(extent) = self.find(path)? else {
            return Ok(None);
        };
        let bytes = self.bytes(&extent, limit)?;
        Ok(Some((extent.start, bytes)))
    }

    /// The bytes of a part, at most `limit`.
    pub(super) fn bytes(&self, extent: &Range<u64>, limit: u64) -> io::Result<Vec<u8>> {
        let length = extent.end - extent.start;
        if length > limit {
            let reason = format!("a file of {length} bytes where at most {limit} are expected");
            return Err(invalid(&reason));
        }
        let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        self.file.read_exact_at(&mut bytes, extent.start)?;
        Ok(bytes)
    }

    fn look_up(&self, directory: &IsoEntry, name: &str) -> io::Result<Option<IsoEntry>> {
        let bytes = self.bytes(&directory.extent, MAX_DIRECTORY)?;
        for sector in bytes.chunks(SECTOR_LENGTH) {
            let mut rest = sector;
            // A zero length means that the rest of the sector is empty.
            while let Some(length) = rest.first().map(|length| usize::from(*length)) {
                if length == 0 {
                    break;
                }
                let record = rest.get(..length).filter(|record| record.len() >= 34);
                let record = record.ok_or_else(|| invalid("a broken directory record"))?;
                let identifier = record
                    .get(33..33 + usize::from(record[32]))
                    .ok_or_else(|| invalid("a broken directory record"))?;
                if is_called(identifier, name) {
                    return Ok(Some(entry(record)));
                }
                rest = &rest[length..];
            }
        }
        Ok(None)
    }
}

/// The 8.3 form of a name.
fn plain_name(name: &str) -> String {
    let upper = name.to_ascii_uppercase();
    match upper.rsplit_once('.') {
        Some((stem, extension)) => {
            let short = |text: &str, length| text.chars().take(length).collect::<String>();
            format!("{}.{}", short(stem, 8), short(extension, 3))
        }
        None => upper,
    }
}

fn is_called(identifier: &[u8], name: &str) -> bool {
    let Ok(text) = std::str::from_utf8(identifier) else {
        return false;
    };
    let without_version = text.split_once(';').map_or(text, |(stem, _)| stem);
    without_version
        .trim_end_matches('.')
        .eq_ignore_ascii_case(name)
}

/// Reads a directory record of at least 34 bytes.
fn entry(record: &[u8]) -> IsoEntry {
    let start = le32(record, 2) * SECTOR;
    IsoEntry {
        extent: start..start + le32(record, 10),
        is_directory: record[25] & FLAG_DIRECTORY != 0,
    }
}

fn le32(bytes: &[u8], at: usize) -> u64 {
    let word = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    u32::from_le_bytes(word).into()
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_in_what_testkit_writes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.iso");
        let written = testkit::iso::write(&path, &testkit::iso::LiveImageOptions::small()).unwrap();
        let file = File::open(&path).unwrap();
        let iso = Iso::open(&file).unwrap();
        assert_eq!(iso.volume_id, "rhcos-418.94.202511191518-0");
        assert_eq!(iso.length, written.length);
        for (path, (start, length)) in written.files {
            assert_eq!(
                iso.find(&path).unwrap(),
                Some(start..start + length),
                "{path}"
            );
        }
        for missing in ["images", "images/none", "vmlinuz/x", "coreos/kargs.json/x"] {
            assert_eq!(iso.find(missing).unwrap(), None, "{missing}");
        }
    }

    #[test]
    fn other_files_are_refused() {
        let path = tempfile::NamedTempFile::new().unwrap();
        for length in [0, 100, 100_000] {
            path.as_file().set_len(length).unwrap();
            let error = Iso::open(path.as_file()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }

    #[test]
    fn damaged_directories_do_no_harm() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.iso");
        testkit::iso::write(&path, &testkit::iso::LiveImageOptions::small()).unwrap();
        let sound = std::fs::read(&path).unwrap();
        for at in (32768..32768 + 190).chain(23 * 2048..24 * 2048) {
            for value in [0, 1, 33, 255] {
                let file = File::options().write(true).read(true).open(&path).unwrap();
                file.write_all_at(&[value], at).unwrap();
                if let Ok(iso) = Iso::open(&file) {
                    iso.find("images/ignition.img").ok();
                }
                let at_index = usize::try_from(at).unwrap();
                file.write_all_at(&sound[at_index..=at_index], at).unwrap();
            }
        }
    }
}
