//! Changes in the order in which they were promised, each durable before it is acknowledged.
//!
//! What the journal holds is also in the folder, but perhaps not yet on the medium. A file of the journal goes when
//! everything in it is. Two files are enough: one is written while the other one waits for the medium.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::change::Order;
use super::staged;

/// Units: bytes. Length of the text, length of the content, checksum.
const HEAD_BYTES: usize = 12;
/// Units: bytes. Nothing that is written is larger; a length beyond is damage.
const RECORD_LIMIT_BYTES: u32 = 8 << 20;

/// Tells during which boot of the machine the journal was ended in order.
const ENDED: &str = "ended";

/// The file that is written.
#[derive(Debug)]
pub(super) struct Journal {
    folder: PathBuf,
    number: u64,
    file: File,
    /// Units: bytes. Up to here it is whole.
    length: u64,
    /// Beyond its length there may be something that was not promised.
    is_torn: bool,
}

impl Journal {
    /// The files in `folder`, oldest first, whether what they hold may be missing, and a new file to go on in.
    pub(super) fn open(folder: &Path) -> io::Result<(Self, Vec<PathBuf>, bool)> {
        durable::create_folder(folder)?;
        let marker = folder.join(ENDED);
        let ended = fs::read_to_string(&marker).ok();
        let may_miss = ended.is_none() || ended != boot();
        staged::remove_file(&marker)?;
        let mut numbers = Vec::new();
        for entry in fs::read_dir(folder)? {
            let name = entry?.file_name();
            numbers.extend(name.to_str().and_then(|name| name.parse::<u64>().ok()));
        }
        numbers.sort_unstable();
        let old = numbers.iter().map(|number| path(folder, *number)).collect();
        let number = numbers.last().map_or(0, |last| last + 1);
        Ok((Self::create(folder, number)?, old, may_miss))
    }

    /// Notes that all that was promised is in the folder, as far as this boot of the machine goes. Whoever has the
    /// folder next may know nothing of a journal, and what they change must not be made undone by it.
    pub(super) fn end(&self) -> io::Result<()> {
        match boot() {
            Some(boot) => fs::write(self.folder.join(ENDED), boot),
            None => Ok(()),
        }
    }

    fn create(folder: &Path, number: u64) -> io::Result<Self> {
        let path = path(folder, number);
        // An attempt that failed may have left one, and nothing in it.
        let file = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .open(&path)?;
        durable::sync_parent(&path)?;
        Ok(Self {
            folder: folder.to_owned(),
            number,
            file,
            length: 0,
            is_torn: false,
        })
    }

    /// Appends all orders or none; durable when it answers.
    pub(super) fn append<'a>(&mut self, orders: impl Iterator<Item = &'a Order>) -> io::Result<()> {
        let mut buffer = Vec::new();
        for order in orders {
            encode(order, &mut buffer)?;
        }
        self.mend()?;
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
                // What cannot be cut off now is before the next record.
                self.mend().ok();
                Err(error)
            }
        }
    }

    /// Cuts off what was not promised: half a record would hide what comes after it, and a whole one would be made
    /// by a replay although its caller was refused.
    pub(super) fn mend(&mut self) -> io::Result<()> {
        if self.is_torn {
            self.file.set_len(self.length)?;
            self.file.seek(SeekFrom::Start(self.length))?;
            self.file.sync_data()?;
            self.is_torn = false;
        }
        Ok(())
    }

    /// The file that is written.
    pub(super) fn path(&self) -> PathBuf {
        path(&self.folder, self.number)
    }

    /// Units: bytes.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Goes on in a new file; the old one, to be removed when its changes are on the medium.
    pub(super) fn rotate(&mut self) -> io::Result<PathBuf> {
        let next = Self::create(&self.folder, self.number + 1)?;
        let old = std::mem::replace(self, next);
        Ok(old.path())
    }
}

/// Removes a file whose changes are on the medium.
pub(super) fn remove(file: &Path) -> io::Result<()> {
    staged::remove_file(file)?;
    durable::sync_parent(file)
}

/// The orders in a file, up to its end or to a record that was not finished: nobody was promised that one.
pub(super) fn read(file: &Path) -> io::Result<Reader> {
    let file = File::open(file)?;
    Ok(Reader(BufReader::new(file)))
}

/// Reads one order after the other.
#[derive(Debug)]
pub(super) struct Reader(BufReader<File>);

impl Iterator for Reader {
    type Item = io::Result<Order>;

    fn next(&mut self) -> Option<Self::Item> {
        match decode(&mut self.0) {
            Ok(order) => order.map(Ok),
            Err(error) => Some(Err(error)),
        }
    }
}

/// Another text after each start of the machine; none where the system does not tell.
fn boot() -> Option<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()
}

fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(number.to_string())
}

fn encode(order: &Order, buffer: &mut Vec<u8>) -> io::Result<()> {
    let text = serde_json::to_vec(&order.change)?;
    let content = order.content.as_deref().unwrap_or_default();
    // No content and empty content are told apart by one added to the length.
    let content_length = order.content.as_ref().map_or(0, |bytes| bytes.len() + 1);
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

fn decode(file: &mut BufReader<File>) -> io::Result<Option<Order>> {
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
    Ok(Some(Order {
        change: serde_json::from_slice(&text)?,
        content: (content_length > 0).then(|| Bytes::from(content)),
    }))
}

/// Whether there was enough to fill `buffer`.
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

    use super::super::change::Change;
    use super::*;

    fn order(tag: &str, content: Option<Vec<u8>>) -> Order {
        let repository = "team/app".parse().unwrap();
        let tag = tag.parse().unwrap();
        Order {
            change: Change::RemoveTag {
                repository,
                tag,
                unless_since: None,
            },
            content: content.map(Bytes::from),
        }
    }

    fn all(file: &Path) -> Vec<Order> {
        read(file).unwrap().collect::<io::Result<_>>().unwrap()
    }

    #[test]
    fn what_was_appended_comes_back_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let (mut journal, old, _) = Journal::open(dir.path()).unwrap();
        assert_eq!(old, Vec::<PathBuf>::new());
        let orders = [
            order("a", None),
            order("b", Some(Vec::new())),
            order("c", Some(vec![7; 100_000])),
        ];
        journal.append(orders[..1].iter()).unwrap();
        let first = journal.rotate().unwrap();
        journal.append(orders[1..].iter()).unwrap();
        drop(journal);
        let (journal, old, may_miss) = Journal::open(dir.path()).unwrap();
        assert!(may_miss);
        assert_eq!(journal.length(), 0);
        let found: Vec<_> = old.iter().flat_map(|file| all(file)).collect();
        assert_eq!(found, orders);
        remove(&first).unwrap();
        journal.end().unwrap();
        let (_, old, may_miss) = Journal::open(dir.path()).unwrap();
        assert_eq!((old.len(), may_miss), (2, false));
        assert!(Journal::open(dir.path()).unwrap().2);
    }

    proptest! {
        #[test]
        fn a_cut_or_damaged_file_gives_what_was_before(
            cut in any::<prop::sample::Index>(), is_cut: bool, tags in prop::collection::vec("[a-z]{1,9}", 1..6)
        ) {
            let dir = tempfile::tempdir().unwrap();
            let (mut journal, ..) = Journal::open(dir.path()).unwrap();
            let orders: Vec<_> = tags.iter().map(|tag| order(tag, Some(tag.clone().into_bytes()))).collect();
            let mut ends = Vec::new();
            for order in &orders {
                journal.append(std::iter::once(order)).unwrap();
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
            prop_assert_eq!(all(&file), orders[..whole].to_vec());
        }
    }
}
