//! The journal of unfinished files: which blobs are complete, in lines with checksums, appended after their bytes.
//!
//! After a kill, bytes and line are both there. After a crash of the machine, lines may outlive their bytes: each run of
//! lines names its boot.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;

use oci::Digest;

/// The journal's name in its folder.
pub(super) const NAME: &str = "journal";
/// Longest line: a record has two numbers, a digest and a few words. Units: bytes.
const LINE_LIMIT_BYTES: usize = 512;

/// Planned place of a blob: number of the file, offset in bytes.
pub(super) type Spot = (usize, u64);

/// Progress of a blob in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JournalEntry {
    pub(super) digest: Digest,
    /// Size of the complete blob. Units: bytes.
    pub(super) size: u64,
    /// Bytes written, from its beginning. Units: bytes.
    pub(super) written: u64,
}

/// Records read from a journal.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) blobs: BTreeMap<Spot, JournalEntry>,
    /// Everything is complete, and files may have their names already.
    pub(super) is_finishing: bool,
    /// The machine was restarted since: recorded bytes may be lost.
    pub(super) is_doubtful: bool,
}

/// A journal that is written.
#[derive(Debug)]
pub(super) struct ArchiveJournal {
    file: File,
    /// Length of its complete lines. Units: bytes.
    length: u64,
}

impl Records {
    /// Reads up to the end or to the first incomplete line.
    pub(super) fn read(folder: &Path) -> io::Result<Self> {
        let mut records = Self {
            is_doubtful: true,
            ..Self::default()
        };
        records.load(folder)?;
        Ok(records)
    }

    /// Returns the length of the complete lines.
    fn load(&mut self, folder: &Path) -> io::Result<u64> {
        let file = match File::open(folder.join(NAME)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(error),
        };
        let mut reader = BufReader::new(file);
        let (mut line, mut length) = (Vec::new(), 0);
        loop {
            line.clear();
            let count = reader.read_until(b'\n', &mut line)?;
            let is_known = count <= LINE_LIMIT_BYTES
                && body(&line).is_some_and(|body| self.take(body).is_some());
            if !is_known {
                return Ok(length);
            }
            length += count as u64;
        }
    }

    fn take(&mut self, body: &str) -> Option<()> {
        let words: Vec<&str> = body.split(' ').collect();
        match words[..] {
            ["boot", id] => self.is_doubtful = boot().as_deref() != Some(id),
            ["finishing"] => self.is_finishing = true,
            ["blob", file, offset, size, written, digest] => {
                let entry = JournalEntry {
                    digest: digest.parse().ok()?,
                    size: size.parse().ok()?,
                    written: written.parse().ok()?,
                };
                self.blobs
                    .insert((file.parse().ok()?, offset.parse().ok()?), entry);
            }
            _ => return None,
        }
        Some(())
    }
}

impl JournalEntry {
    pub(super) fn is_whole(&self) -> bool {
        self.written == self.size
    }
}

impl ArchiveJournal {
    /// Reads the folder's journal, and opens it for appending.
    pub(super) fn open(folder: &Path) -> io::Result<(Records, Self)> {
        let mut records = Records {
            is_doubtful: true,
            ..Records::default()
        };
        let length = records.load(folder)?;
        let path = folder.join(NAME);
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        // Half a line would hide those after it.
        file.set_len(length)?;
        Ok((records, Self { file, length }))
    }

    /// Later lines are about bytes that were written or verified during this boot.
    pub(super) fn note_boot(&mut self) -> io::Result<()> {
        match boot() {
            Some(id) => self.append(&format!("boot {id}")),
            None => Ok(()),
        }
    }

    pub(super) fn note(&mut self, spot: Spot, entry: &JournalEntry) -> io::Result<()> {
        let (file, offset) = spot;
        let JournalEntry {
            digest,
            size,
            written,
        } = entry;
        self.append(&format!("blob {file} {offset} {size} {written} {digest}"))
    }

    /// Everything is complete and durable.
    pub(super) fn note_finishing(&mut self) -> io::Result<()> {
        self.append("finishing")?;
        self.file.sync_all()
    }

    fn append(&mut self, body: &str) -> io::Result<()> {
        let line = format!("{:08x} {body}\n", crc32fast::hash(body.as_bytes()));
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            self.file.set_len(self.length)?;
            return Err(error);
        }
        self.length += line.len() as u64;
        Ok(())
    }
}

/// A line's text where its checksum is right.
fn body(line: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let (sum, body) = text.split_once(' ')?;
    (u32::from_str_radix(sum, 16).ok()? == crc32fast::hash(body.as_bytes())).then_some(body)
}

/// Identifier of the running boot; none where the system has no such identifier.
fn boot() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(written: u64) -> JournalEntry {
        JournalEntry {
            digest: Digest::sha256(b"x"),
            size: 9,
            written,
        }
    }

    #[test]
    fn torn_and_damaged_lines_end_it() {
        let dir = tempfile::tempdir().unwrap();
        let (records, mut journal) = ArchiveJournal::open(dir.path()).unwrap();
        assert!(records.is_doubtful && records.blobs.is_empty());
        journal.note_boot().unwrap();
        journal.note((0, 512), &entry(4)).unwrap();
        journal.note((1, 0), &entry(9)).unwrap();
        journal.note((0, 512), &entry(9)).unwrap();
        let path = dir.path().join(NAME);
        let whole = fs::read(&path).unwrap();
        let known = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            let (records, _) = ArchiveJournal::open(dir.path()).unwrap();
            assert_eq!(records.is_doubtful, bytes.iter().all(|byte| *byte != b'\n'));
            records
                .blobs
                .into_iter()
                .map(|(spot, entry)| (spot, entry.written))
                .collect::<Vec<_>>()
        };
        assert_eq!(known(&whole), [((0, 512), 9), ((1, 0), 9)]);
        assert_eq!(
            known(&whole[..whole.len() - 1]),
            [((0, 512), 4), ((1, 0), 9)]
        );
        // The truncated line was removed.
        assert!(fs::metadata(&path).unwrap().len() < whole.len() as u64 - 10);
        let mut damaged = whole.clone();
        let second = whole.iter().position(|byte| *byte == b'\n').unwrap() + 12;
        damaged[second] ^= 1;
        assert_eq!(known(&damaged), []);
        assert_eq!(known(b""), []);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_up_to_where_they_make_sense(bytes: Vec<u8>) {
            let dir = tempfile::tempdir().unwrap();
            let (_, mut journal) = ArchiveJournal::open(dir.path()).unwrap();
            journal.note((3, 4), &entry(5)).unwrap();
            let path = dir.path().join(NAME);
            let whole = fs::read(&path).unwrap();
            fs::write(&path, [&whole[..], &bytes].concat()).unwrap();
            let (records, _) = ArchiveJournal::open(dir.path()).unwrap();
            proptest::prop_assert_eq!(records.blobs[&(3, 4)].written, 5);
            proptest::prop_assert_eq!(fs::read(&path).unwrap(), whole);
        }
    }

    #[test]
    fn another_boot_makes_it_doubtful() {
        let dir = tempfile::tempdir().unwrap();
        let (_, mut journal) = ArchiveJournal::open(dir.path()).unwrap();
        journal.append("boot 0").unwrap();
        journal.note((0, 0), &entry(9)).unwrap();
        assert!(Records::read(dir.path()).unwrap().is_doubtful);
        journal.note_boot().unwrap();
        assert!(!Records::read(dir.path()).unwrap().is_doubtful);
    }
}
