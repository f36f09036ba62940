//! Events that an endpoint has not taken yet, in a file, so that they outlive the process.
//!
//! One event a line. Beside the file stands how much of it was taken; that may lag after a crash, and the event be
//! sent again.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, ErrorKind, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use oci::Digest;

/// Units: bytes. Bound of the pending events of one endpoint; about fifty thousand.
const LIMIT_BYTES: u64 = 64 << 20;
/// Units: bytes. The same where there is no file.
const MEMORY_LIMIT_BYTES: u64 = 4 << 20;
const EVENTS: &str = "events";
const TAKEN: &str = "taken";

/// A queue that is bounded, and lasts where it has a folder.
#[derive(Debug)]
pub(super) struct Journal {
    keeping: Keeping,
    limit: u64,
}

#[derive(Debug)]
enum Keeping {
    Memory { events: VecDeque<Bytes>, bytes: u64 },
    File(OnDisk),
}

#[derive(Debug)]
struct OnDisk {
    path: PathBuf,
    file: File,
    /// Units: bytes. Where the first event begins that was not taken.
    taken: u64,
    /// Units: bytes.
    length: u64,
}

impl Journal {
    pub(super) fn in_memory() -> Self {
        Self {
            keeping: Keeping::Memory {
                events: VecDeque::new(),
                bytes: 0,
            },
            limit: MEMORY_LIMIT_BYTES,
        }
    }

    /// Opens the journal of the endpoint called `name` in `folder`.
    ///
    /// Errors: the folder cannot be used.
    pub(super) fn open(folder: &Path, name: &str) -> io::Result<Self> {
        durable::create_folder(folder)?;
        let path = folder.join(file_name(name)).with_extension(EVENTS);
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).open(&path)?;
        // The last line may be a half: it was never promised to anybody.
        let length = whole_lines(&mut file)?;
        file.set_len(length)?;
        let noted = fs::read_to_string(path.with_extension(TAKEN)).unwrap_or_default();
        let taken = noted.trim().parse().unwrap_or(0);
        let taken = if taken > length { 0 } else { taken };
        Ok(Self {
            keeping: Keeping::File(OnDisk {
                path,
                file,
                taken,
                length,
            }),
            limit: LIMIT_BYTES,
        })
    }

    /// Units: bytes. Of all that waits.
    pub(super) fn waiting(&self) -> u64 {
        match &self.keeping {
            Keeping::Memory { bytes, .. } => *bytes,
            Keeping::File(disk) => disk.length - disk.taken,
        }
    }

    /// Adds events; how many of them had no room.
    ///
    /// Errors: none of them could be written.
    pub(super) fn add(&mut self, events: &[Bytes]) -> io::Result<usize> {
        let (mut room, limit) = (self.limit.saturating_sub(self.waiting()), self.limit);
        let mut fitting = events.len();
        for (index, event) in events.iter().enumerate() {
            let size = event.len() as u64 + 1;
            if size > room {
                fitting = index;
                break;
            }
            room -= size;
        }
        let (added, left_out) = (&events[..fitting], events.len() - fitting);
        match &mut self.keeping {
            Keeping::Memory { events, bytes } => {
                *bytes += added
                    .iter()
                    .map(|event| event.len() as u64 + 1)
                    .sum::<u64>();
                events.extend(added.iter().cloned());
            }
            Keeping::File(disk) => disk.add(added, limit)?,
        }
        Ok(left_out)
    }

    /// The event that waits longest.
    pub(super) fn first(&mut self) -> io::Result<Option<Bytes>> {
        match &mut self.keeping {
            Keeping::Memory { events, .. } => Ok(events.front().cloned()),
            Keeping::File(disk) => disk.first(),
        }
    }

    /// Removes the event that [`Self::first`] returned.
    pub(super) fn took(&mut self, event: &Bytes) -> io::Result<()> {
        let size = event.len() as u64 + 1;
        match &mut self.keeping {
            Keeping::Memory { events, bytes } => {
                events.pop_front();
                *bytes = bytes.saturating_sub(size);
                Ok(())
            }
            Keeping::File(disk) => disk.took(size),
        }
    }
}

impl OnDisk {
    fn add(&mut self, events: &[Bytes], limit: u64) -> io::Result<()> {
        let lines = events.iter().flat_map(|event| [event.as_ref(), b"\n"]);
        let text = lines.collect::<Vec<_>>().concat();
        if self.length + text.len() as u64 > limit && self.taken > 0 {
            self.compact()?;
        }
        if let Err(error) = self.file.write_all(&text) {
            // Half a line would end the journal there.
            self.file.set_len(self.length)?;
            return Err(error);
        }
        self.length += text.len() as u64;
        Ok(())
    }

    fn first(&mut self) -> io::Result<Option<Bytes>> {
        if self.taken == self.length {
            return Ok(None);
        }
        self.file.seek(SeekFrom::Start(self.taken))?;
        let mut line = Vec::new();
        BufReader::new(&self.file).read_until(b'\n', &mut line)?;
        line.pop();
        Ok(Some(line.into()))
    }

    fn took(&mut self, size: u64) -> io::Result<()> {
        self.taken = (self.taken + size).min(self.length);
        if self.taken == self.length {
            // In this order: a crash between the two sends events again, but loses none.
            self.taken = 0;
            self.note()?;
            self.length = 0;
            return self.file.set_len(0);
        }
        self.note()
    }

    fn note(&self) -> io::Result<()> {
        replace(&self.path.with_extension(TAKEN), |file| {
            write!(file, "{}", self.taken)
        })
    }

    /// Rewrites the journal without the removed events.
    fn compact(&mut self) -> io::Result<()> {
        let mut source = File::open(&self.path)?;
        source.seek(SeekFrom::Start(self.taken))?;
        // As above: first, nothing was taken.
        self.length -= std::mem::take(&mut self.taken);
        self.note()?;
        replace(&self.path, |file| io::copy(&mut source, file).map(drop))?;
        self.file = OpenOptions::new()
            .read(true)
            .append(true)
            .open(&self.path)?;
        Ok(())
    }
}

/// Writes a file anew: whole, or not at all.
fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let temporary = path.with_extension("new");
    let mut file = File::create(&temporary)?;
    write(&mut file)?;
    fs::rename(&temporary, path)
}

/// Units: bytes. Up to the end of the last whole line.
fn whole_lines(file: &mut File) -> io::Result<u64> {
    file.seek(SeekFrom::Start(0))?;
    let (mut reader, mut line, mut length) = (BufReader::new(file), Vec::new(), 0);
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            return Ok(length);
        }
        length += read as u64;
    }
}

/// Names may hold anything.
fn file_name(name: &str) -> String {
    Digest::sha256(name.as_bytes()).hex()[..16].to_owned()
}

/// Removes the journals of endpoints that are no more.
pub(super) fn keep_only<'a>(folder: &Path, names: impl Iterator<Item = &'a str>) {
    let kept: Vec<_> = names.map(file_name).collect();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return,
        Err(error) => {
            tracing::warn!(%error, "the journals of notifications cannot be listed");
            return;
        }
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        if !kept.iter().any(|name| *name == stem) {
            tracing::info!(path = %path.display(), "events for an endpoint that is no more are dropped");
            fs::remove_file(&path).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use faults::{Campaign, DONE, FOLDER};

    fn event(n: usize) -> Bytes {
        format!("{{\"n\":{n}}}").into()
    }

    fn drain(journal: &mut Journal) -> Vec<Bytes> {
        let mut events = Vec::new();
        while let Some(event) = journal.first().unwrap() {
            journal.took(&event).unwrap();
            events.push(event);
        }
        events
    }

    #[test]
    fn what_waits_outlives_the_process_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Journal::open(dir.path(), "a/../b").unwrap();
        let mut journal = open();
        let events: Vec<_> = (0..5).map(event).collect();
        assert_eq!(journal.add(&events).unwrap(), 0);
        let first = journal.first().unwrap().unwrap();
        journal.took(&first).unwrap();
        let mut journal = open();
        journal.add(&[event(5)]).unwrap();
        let expected: Vec<_> = (1..6).map(event).collect();
        assert_eq!(drain(&mut journal), expected);
        assert_eq!(journal.waiting(), 0);
        assert_eq!(drain(&mut open()), [""; 0]);
    }

    #[test]
    fn half_a_line_is_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(dir.path(), "x").unwrap();
        journal.add(&[event(1)]).unwrap();
        let Keeping::File(disk) = &mut journal.keeping else {
            panic!("a file")
        };
        disk.file.write_all(b"{\"n\":").unwrap();
        let mut journal = Journal::open(dir.path(), "x").unwrap();
        journal.add(&[event(2)]).unwrap();
        assert_eq!(drain(&mut journal), [event(1), event(2)]);
    }

    #[test]
    fn what_has_no_room_is_left_out_and_what_was_taken_makes_room() {
        let dir = tempfile::tempdir().unwrap();
        let size = event(1).len() as u64 + 1;
        for mut journal in [
            Journal::in_memory(),
            Journal::open(dir.path(), "x").unwrap(),
        ] {
            journal.limit = 3 * size;
            let events: Vec<_> = (0..5).map(event).collect();
            assert_eq!(journal.add(&events).unwrap(), 2);
            assert_eq!(journal.waiting(), 3 * size);
            let first = journal.first().unwrap().unwrap();
            journal.took(&first).unwrap();
            assert_eq!(journal.add(&[event(7), event(8)]).unwrap(), 1);
            assert_eq!(drain(&mut journal), [event(1), event(2), event(7)]);
        }
        let length = fs::metadata(dir.path().join(file_name("x")).with_extension(EVENTS));
        assert_eq!(length.unwrap().len(), 0);
    }

    #[test]
    fn journals_of_others_go() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            let mut journal = Journal::open(dir.path(), name).unwrap();
            journal.add(&[event(1), event(2)]).unwrap();
            let first = journal.first().unwrap().unwrap();
            journal.took(&first).unwrap();
        }
        keep_only(dir.path(), ["b"].into_iter());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
        let mut kept = Journal::open(dir.path(), "b").unwrap();
        assert_eq!(drain(&mut kept), [event(2)]);
    }

    /// The process of the next test.
    #[test]
    fn driver() {
        let Some(folder) = std::env::var_os(FOLDER) else {
            return;
        };
        Journal::open(&Path::new(&folder).join("a/b"), "c").unwrap();
        println!("{DONE}");
        std::process::abort();
    }

    #[test]
    fn its_folders_outlive_a_power_failure() {
        let campaign = Campaign {
            driver: "notifications::journal::tests::driver",
            state: |_: &Path| String::new(),
            sample: None,
            ends_by_abort: true,
        };
        let unsynced = campaign.unsynced_folders().unwrap();
        assert!(unsynced.is_empty(), "{unsynced:?}");
    }
}
