//! The journal: one line with a checksum for each entry, durable before the next effect.
//!
//! A line that was torn by a kill or a full disk is the last one, and is removed. A damaged line before others is an
//! error: entries after it must not be forgotten.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::progress::{ReplacementEntry, ReplacementProgress};

/// The journal's name in its folder.
pub(super) const NAME: &str = "journal";
/// Largest journal. A replacement has about 60 entries of less than 1 KiB. Units: bytes.
pub const MAX_JOURNAL_BYTES: u64 = 4 << 20;
/// Length of a checksum with its blank. Units: bytes.
const CHECKSUM: usize = 9;

/// A journal that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be read or written: nothing was changed since the last entry.
    #[error("{}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A line before the last one is damaged.
    #[error("{}: the line at byte {offset} is damaged", path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Offset of the line. Units: bytes.
        offset: usize,
    },
    /// No complete first entry, or one of a later version.
    #[error("{}: no replacement begins here", path.display())]
    NoBeginning {
        /// Path of the file.
        path: PathBuf,
    },
    /// Another process has the folder.
    #[error("{}: another process replaces a node", path.display())]
    Locked {
        /// Path of the lock.
        path: PathBuf,
    },
}

/// An open journal.
#[derive(Debug)]
pub(super) struct ReplacementJournal {
    path: PathBuf,
    file: File,
    /// Length of its complete lines. Units: bytes.
    length: u64,
}

impl ReplacementJournal {
    /// A new journal, readable by its owner alone. Its folder exists.
    pub(super) fn create(folder: &Path) -> Result<Self, JournalError> {
        let path = folder.join(NAME);
        let created = || {
            let file = options().create_new(true).open(&path)?;
            durable::sync_parent(&path)?;
            Ok(file)
        };
        match created() {
            Ok(file) => Ok(Self {
                path,
                file,
                length: 0,
            }),
            Err(source) => Err(JournalError::File { path, source }),
        }
    }

    /// Opens a journal for appending, without a torn last line, and replays it.
    pub(super) fn open(folder: &Path) -> Result<(Self, ReplacementProgress), JournalError> {
        let path = folder.join(NAME);
        let (progress, length) = read(&path)?;
        let opened = || {
            let file = options().open(&path)?;
            if file.metadata()?.len() > length {
                // Half a line would damage those after it.
                file.set_len(length)?;
                file.sync_all()?;
            }
            Ok(file)
        };
        match opened() {
            Ok(file) => Ok((Self { path, file, length }, progress)),
            Err(source) => Err(JournalError::File { path, source }),
        }
    }

    /// Appends an entry, and returns when it is durable.
    ///
    /// Errors: File – it is not in the journal, or a torn line that the next run removes.
    pub(super) fn append(&mut self, entry: &ReplacementEntry) -> Result<(), JournalError> {
        let written = serde_json::to_string(entry)
            .map_err(io::Error::other)
            .and_then(|body| {
                let line = format!("{:08x} {body}\n", crc32fast::hash(body.as_bytes()));
                let length = self.length + line.len() as u64;
                if length > MAX_JOURNAL_BYTES {
                    return Err(io::ErrorKind::FileTooLarge.into());
                }
                self.file.write_all(line.as_bytes())?;
                self.file.sync_data()?;
                Ok(length)
            });
        match written {
            Ok(length) => {
                self.length = length;
                Ok(())
            }
            Err(source) => {
                // Best effort: the next run does the same.
                drop(self.file.set_len(self.length));
                let path = self.path.clone();
                Err(JournalError::File { path, source })
            }
        }
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.append(true).mode(0o600);
    options
}

/// The progress, and the length of the complete lines.
pub(super) fn read(path: &Path) -> Result<(ReplacementProgress, u64), JournalError> {
    let failed = |source| JournalError::File {
        path: path.to_owned(),
        source,
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(MAX_JOURNAL_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > MAX_JOURNAL_BYTES {
        return Err(failed(io::ErrorKind::FileTooLarge.into()));
    }
    let (mut progress, mut offset) = (None::<ReplacementProgress>, 0);
    while offset < bytes.len() {
        let rest = &bytes[offset..];
        let end = rest.iter().position(|byte| *byte == b'\n');
        let line = end.map(|end| &rest[..end]);
        let Some(entry) = line.and_then(entry) else {
            let has_others = line.is_some_and(|line| {
                let mut others = rest[line.len() + 1..].split(|byte| *byte == b'\n');
                others.any(|line| entry(line).is_some())
            });
            if has_others {
                let path = path.to_owned();
                return Err(JournalError::Damaged { path, offset });
            }
            break;
        };
        match &mut progress {
            Some(progress) => progress.apply(&entry),
            None => progress = ReplacementProgress::open(&entry),
        }
        if progress.is_none() {
            break;
        }
        offset += end.map_or(0, |end| end + 1);
    }
    match progress {
        Some(progress) => Ok((progress, offset as u64)),
        None => Err(JournalError::NoBeginning {
            path: path.to_owned(),
        }),
    }
}

/// The entry of a line with the right checksum.
fn entry(line: &[u8]) -> Option<ReplacementEntry> {
    let (sum, body) = line.split_at_checked(CHECKSUM)?;
    let sum = std::str::from_utf8(sum).ok()?.strip_suffix(' ')?;
    let is_right = u32::from_str_radix(sum, 16).ok()? == crc32fast::hash(body);
    is_right.then(|| serde_json::from_slice(body).ok())?
}

#[cfg(test)]
mod tests;
