//! The write-ahead log: changes in their order, each durable before it is acknowledged.
//!
//! Journalled changes are in the folder, too, but perhaps not synced. A checkpoint removes the files of the journal
//! that the medium has. Two files are enough: one is written while the other one waits for its checkpoint.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::change::JournalEntry;
use super::staged;

/// Units: bytes. Length of the text, length of the content, checksum.
const HEAD_BYTES: usize = 12;
/// Units: bytes. Larger entries are refused, and a larger length marks damage.
const RECORD_LIMIT_BYTES: u32 = 8 << 20;

/// Marker of an orderly end: holds the boot id of the machine.
const ENDED: &str = "ended";

/// The journal's current file.
#[derive(Debug)]
pub(super) struct ChangeJournal {
    folder: PathBuf,
    number: u64,
    file: File,
    /// Units: bytes. Length of the intact entries.
    length: u64,
    /// A failed append may have left bytes after `length`.
    is_torn: bool,
}

impl ChangeJournal {
    /// Opens `folder`: a new current file, the older files in order, and whether their changes may be missing.
    pub(super) fn open(folder: &Path) -> io::Result<(Self, Vec<PathBuf>, bool)> {
        durable::create_folder(folder)?;
        let marker = folder.join(ENDED);
        let ended = fs::read_to_string(&marker).ok();
        let needs_replay = ended.is_none() || ended != boot();
        // Removed before the first append, so that a crash after it is recognised.
        staged::remove_file(&marker)?;
        let mut numbers = Vec::new();
        for entry in fs::read_dir(folder)? {
            let name = entry?.file_name();
            numbers.extend(name.to_str().and_then(|name| name.parse::<u64>().ok()));
        }
        numbers.sort_unstable();
        let old = numbers.iter().map(|number| path(folder, *number)).collect();
        let number = numbers.last().map_or(0, |last| last + 1);
        Ok((Self::create(folder, number)?, old, needs_replay))
    }

    /// Marks that all journalled changes are in the folder, as far as this boot goes. Other programs may then change
    /// the folder without a replay that undoes their changes.
    pub(super) fn end(&self) -> io::Result<()> {
        match boot() {
            Some(boot) => fs::write(self.folder.join(ENDED), boot),
            None => Ok(()),
        }
    }

    fn create(folder: &Path, number: u64) -> io::Result<Self> {
        let path = path(folder, number);
        // A failed attempt may have left an empty file.
        let file = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .open(&path)?;
        // The name of the file has to be durable before its first entry is acknowledged.
        durable::sync_parent(&path)?;
        Ok(Self {
            folder: folder.to_owned(),
            number,
            file,
            length: 0,
            is_torn: false,
        })
    }

    /// Appends all entries or none, with one fsync; durable on return.
    pub(super) fn append<'a>(
        &mut self,
        entries: impl Iterator<Item = &'a JournalEntry>,
    ) -> io::Result<()> {
        let mut buffer = Vec::new();
        for entry in entries {
            encode(entry, &mut buffer)?;
        }
        self.truncate_torn()?;
        let appended = self
            .file
            .write_all(&buffer)
            .and_then(|()| self.file.sync_data());
        match appended {
            Ok(()) => {
                self.length += buffer.len() as u64;
                Ok(())
            }
            Err(error) => {
                self.is_torn = true;
                // If the truncation fails now, the next append retries it first.
                self.truncate_torn().ok();
                Err(error)
            }
        }
    }

    /// Truncates a failed append: a torn entry would hide later ones, and a replay would apply a whole one although its
    /// caller got an error.
    pub(super) fn truncate_torn(&mut self) -> io::Result<()> {
        if self.is_torn {
            self.file.set_len(self.length)?;
            self.file.seek(SeekFrom::Start(self.length))?;
            self.file.sync_data()?;
            self.is_torn = false;
        }
        Ok(())
    }

    /// Path of the current file.
    pub(super) fn path(&self) -> PathBuf {
        path(&self.folder, self.number)
    }

    /// Units: bytes.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Starts a new file. Returns the old one, to be removed after a checkpoint.
    pub(super) fn rotate(&mut self) -> io::Result<PathBuf> {
        let next = Self::create(&self.folder, self.number + 1)?;
        let old = std::mem::replace(self, next);
        Ok(old.path())
    }
}

/// Removes a file whose changes are durable in the folder.
pub(super) fn remove(file: &Path) -> io::Result<()> {
    staged::remove_file(file)?;
    durable::sync_parent(file)
}

/// The entries of a file up to its end or to a torn entry, which was never acknowledged.
pub(super) fn read(file: &Path) -> io::Result<JournalReader> {
    let file = File::open(file)?;
    Ok(JournalReader(BufReader::new(file)))
}

/// Iterator over the entries of a file.
#[derive(Debug)]
pub(super) struct JournalReader(BufReader<File>);

impl Iterator for JournalReader {
    type Item = io::Result<JournalEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        match decode(&mut self.0) {
            Ok(entry) => entry.map(Ok),
            Err(error) => Some(Err(error)),
        }
    }
}

/// The boot id, which changes with each boot of the machine; `None` where the system has none.
fn boot() -> Option<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()
}

fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(number.to_string())
}

fn encode(entry: &JournalEntry, buffer: &mut Vec<u8>) -> io::Result<()> {
    let text = serde_json::to_vec(&entry.change)?;
    let content = entry.content.as_deref().unwrap_or_default();
    // Zero encodes no content, and n + 1 a content of n bytes.
    let content_length = entry.content.as_ref().map_or(0, |bytes| bytes.len() + 1);
    let length = |length: usize| {
        u32::try_from(length)
            .ok()
            .filter(|length| *length < RECORD_LIMIT_BYTES)
            .ok_or_else(|| io::Error::from(io::ErrorKind::FileTooLarge))
    };
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&length(text.len())?.to_le_bytes());
    head[4..8].copy_from_slice(&length(content_length)?.to_le_bytes());
    let sum = checksum(&head[..8], &text, content);
    head[8..].copy_from_slice(&sum.to_le_bytes());
    buffer.extend_from_slice(&head);
    buffer.extend_from_slice(&text);
    buffer.extend_from_slice(content);
    Ok(())
}

fn decode(file: &mut BufReader<File>) -> io::Result<Option<JournalEntry>> {
    let mut head = [0; HEAD_BYTES];
    if !fill(file, &mut head)? {
        return Ok(None);
    }
    let number =
        |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (text_length, content_length) = (number(0), number(4));
    if text_length >= RECORD_LIMIT_BYTES || content_length > RECORD_LIMIT_BYTES {
        return Ok(None);
    }
    let mut text = vec![0; text_length as usize];
    let mut content = vec![0; (content_length.max(1) - 1) as usize];
    if !fill(file, &mut text)? || !fill(file, &mut content)? {
        return Ok(None);
    }
    if checksum(&head[..8], &text, &content) != number(8) {
        return Ok(None);
    }
    Ok(Some(JournalEntry {
        change: serde_json::from_slice(&text)?,
        content: (content_length > 0).then(|| Bytes::from(content)),
    }))
}

/// Whether `buffer` was filled before the end of the file.
fn fill(file: &mut BufReader<File>, buffer: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn checksum(head: &[u8], text: &[u8], content: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(head);
    hasher.update(text);
    hasher.update(content);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::change::StoreChange;
    use super::*;

    fn entry(tag: &str, content: Option<Vec<u8>>) -> JournalEntry {
        let repository = "team/app".parse().unwrap();
        let tag = tag.parse().unwrap();
        JournalEntry {
            change: StoreChange::RemoveTag {
                repository,
                tag,
                unless_since: None,
            },
            content: content.map(Bytes::from),
        }
    }

    fn all(file: &Path) -> Vec<JournalEntry> {
        read(file).unwrap().collect::<io::Result<_>>().unwrap()
    }

    #[test]
    fn appended_entries_are_read_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let (mut journal, old, _) = ChangeJournal::open(dir.path()).unwrap();
        assert_eq!(old, Vec::<PathBuf>::new());
        let entries = [
            entry("a", None),
            entry("b", Some(Vec::new())),
            entry("c", Some(vec![7; 100_000])),
        ];
        journal.append(entries[..1].iter()).unwrap();
        let first = journal.rotate().unwrap();
        journal.append(entries[1..].iter()).unwrap();
        drop(journal);
        let (journal, old, needs_replay) = ChangeJournal::open(dir.path()).unwrap();
        assert!(needs_replay);
        assert_eq!(journal.length(), 0);
        let found: Vec<_> = old.iter().flat_map(|file| all(file)).collect();
        assert_eq!(found, entries);
        remove(&first).unwrap();
        journal.end().unwrap();
        let (_, old, needs_replay) = ChangeJournal::open(dir.path()).unwrap();
        assert_eq!((old.len(), needs_replay), (2, false));
        assert!(ChangeJournal::open(dir.path()).unwrap().2);
    }

    proptest! {
        #[test]
        fn a_truncated_or_damaged_file_yields_the_entries_before(
            cut in any::<prop::sample::Index>(), is_cut: bool, tags in prop::collection::vec("[a-z]{1,9}", 1..6)
        ) {
            let dir = tempfile::tempdir().unwrap();
            let (mut journal, ..) = ChangeJournal::open(dir.path()).unwrap();
            let entries: Vec<_> = tags.iter().map(|tag| entry(tag, Some(tag.clone().into_bytes()))).collect();
            let mut ends = Vec::new();
            for entry in &entries {
                journal.append(std::iter::once(entry)).unwrap();
                ends.push(journal.length());
            }
            let file = path(dir.path(), 0);
            let mut bytes = fs::read(&file).unwrap();
            let at = cut.index(bytes.len());
            if is_cut {
                bytes.truncate(at);
            } else {
                bytes[at] ^= 0x40;
            }
            fs::write(&file, bytes).unwrap();
            let whole = ends.iter().filter(|end| **end <= at as u64).count();
            prop_assert_eq!(all(&file), entries[..whole].to_vec());
        }
    }
}
