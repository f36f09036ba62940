//! The folder of replacements: a folder for each, and a lock for all.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use model::node_replacement::ReplacementState;
use serde_json::Value;

use super::case::{ReplacementCase, ReplacementRequest};
use super::journal::{self, JournalError, ReplacementJournal};
use super::progress::{FORMAT, ReplacementEntry, ReplacementEvent, ReplacementProgress};

const LOCK: &str = "lock";
const SNAPSHOT: &str = "snapshot.db";
/// Records of the old node, and those of the new one.
const SAVED: &str = "saved";
const NEW: &str = "new";
/// Largest record. Units: bytes.
const MAX_RECORD_BYTES: u64 = 1 << 20;

/// All replacements of this machine. One process has it at a time.
#[derive(Debug)]
pub struct ReplacementStore {
    root: PathBuf,
    /// Unlocked when it is closed, also by a kill.
    _lock: File,
}

/// A replacement that is open for a run.
#[derive(Debug)]
pub struct OpenReplacement {
    /// Name of its folder.
    pub id: String,
    folder: PathBuf,
    journal: ReplacementJournal,
    progress: ReplacementProgress,
}

impl ReplacementStore {
    /// Opens the folder, and creates it first when it is missing.
    ///
    /// Errors: File; Locked – another process has it.
    pub fn open(root: &Path) -> Result<Self, JournalError> {
        let path = root.join(LOCK);
        let opened = || {
            create_private(root)?;
            let mut options = File::options();
            options.create(true).append(true).mode(0o600).open(&path)
        };
        let failed = |source| JournalError::File {
            path: path.clone(),
            source,
        };
        let lock = opened().map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                root: root.to_owned(),
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => Err(JournalError::Locked { path }),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }

    /// Replacements with their progress, by their ids. A folder without a complete first entry has changed nothing,
    /// and is left out.
    ///
    /// Errors: File; Damaged.
    pub fn list(&self) -> Result<Vec<(String, ReplacementProgress)>, JournalError> {
        let mut found = Vec::new();
        for id in self.ids()? {
            match journal::read(&self.root.join(&id).join(journal::NAME)) {
                Ok((progress, _)) => found.push((id, progress)),
                Err(JournalError::NoBeginning { .. }) => {}
                Err(JournalError::File { source, .. })
                    if source.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Ids of unfinished replacements except `own`.
    pub(super) fn unfinished(&self, own: &str) -> Result<Vec<String>, JournalError> {
        let all = self.list()?.into_iter();
        let unfinished =
            all.filter(|(id, it)| it.state == ReplacementState::Unfinished && id != own);
        Ok(unfinished.map(|(id, _)| id).collect())
    }

    /// Begins a replacement. `records` are those of the new node, where they are not the old one's.
    ///
    /// Errors: File.
    pub fn begin(
        &self,
        request: ReplacementRequest,
        case: ReplacementCase,
        records: &[Value],
        now: DateTime<Utc>,
    ) -> Result<OpenReplacement, JournalError> {
        let ids = self.ids()?;
        let numbers = ids
            .iter()
            .filter_map(|id| id.split('-').next()?.parse::<u32>().ok());
        let number = numbers.max().unwrap_or(0).saturating_add(1);
        let id = format!("{number:04}-{}", case.old.name);
        let folder = self.root.join(&id);
        create_private(&folder).map_err(|source| JournalError::File {
            path: folder.clone(),
            source,
        })?;
        write_records(&folder.join(NEW), records)?;
        let entry = ReplacementEntry {
            at: now,
            event: ReplacementEvent::Opened {
                format: FORMAT,
                request: Box::new(request),
                case: Box::new(case),
            },
        };
        let mut journal = ReplacementJournal::create(&folder)?;
        journal.append(&entry)?;
        let progress = ReplacementProgress::open(&entry);
        let progress = progress.ok_or_else(|| JournalError::NoBeginning {
            path: folder.clone(),
        })?;
        Ok(OpenReplacement {
            id,
            folder,
            journal,
            progress,
        })
    }

    /// Opens a replacement again.
    ///
    /// Errors: as [`JournalError`].
    pub fn resume(&self, id: &str) -> Result<OpenReplacement, JournalError> {
        let folder = self.root.join(id);
        let (journal, progress) = ReplacementJournal::open(&folder)?;
        Ok(OpenReplacement {
            id: id.to_owned(),
            folder,
            journal,
            progress,
        })
    }

    fn ids(&self) -> Result<Vec<String>, JournalError> {
        let failed = |source| JournalError::File {
            path: self.root.clone(),
            source,
        };
        let mut ids = Vec::new();
        for entry in fs::read_dir(&self.root).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.path().is_dir() {
                ids.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        ids.sort_unstable();
        Ok(ids)
    }
}

impl OpenReplacement {
    /// Its progress.
    pub fn progress(&self) -> &ReplacementProgress {
        &self.progress
    }

    /// Notes the word of a person that the old node is off, where its power cannot be read.
    ///
    /// Errors: File.
    pub fn confirm_off(&mut self, by: &str, now: DateTime<Utc>) -> Result<(), JournalError> {
        let by = by.to_owned();
        self.append(&ReplacementEntry {
            at: now,
            event: ReplacementEvent::ConfirmedOff { by },
        })
    }

    /// Path of its snapshot.
    pub(super) fn snapshot(&self) -> PathBuf {
        self.folder.join(SNAPSHOT)
    }

    /// Appends an entry, and applies it when it is durable.
    pub(super) fn append(&mut self, entry: &ReplacementEntry) -> Result<(), JournalError> {
        self.journal.append(entry)?;
        self.progress.apply(entry);
        Ok(())
    }

    /// Saves records of the old node; their paths.
    pub(super) fn save_records(&self, records: &[Value]) -> Result<Vec<PathBuf>, JournalError> {
        write_records(&self.folder.join(SAVED), records)
    }

    /// Saved records of the old node; none before the step that saves them.
    ///
    /// Errors: File.
    pub fn saved_records(&self) -> Result<Vec<Value>, JournalError> {
        read_records(&self.folder.join(SAVED))
    }

    /// Records of the new node: those that were given, else those of the old one.
    ///
    /// Errors: File.
    pub fn new_records(&self) -> Result<Vec<Value>, JournalError> {
        let given = read_records(&self.folder.join(NEW))?;
        if given.is_empty() && self.progress.case.old.name == self.progress.case.new.name {
            return self.saved_records();
        }
        Ok(given)
    }
}

/// A folder that others cannot read: records and snapshots hold secrets.
fn create_private(folder: &Path) -> io::Result<()> {
    durable::create_folder_with(DirBuilder::new().mode(0o700), folder)
}

fn write_records(folder: &Path, records: &[Value]) -> Result<Vec<PathBuf>, JournalError> {
    let write = |index: usize, record: &Value| {
        create_private(folder)?;
        let path = folder.join(format!("{index:02}.json"));
        let partial = path.with_added_extension("partial");
        let mut options = File::options();
        let mut file = options
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&partial)?;
        file.write_all(&serde_json::to_vec_pretty(record)?)?;
        file.sync_all()?;
        // Whole or absent, also after a kill.
        fs::rename(&partial, &path)?;
        durable::sync_parent(&path)?;
        Ok(path)
    };
    let written = records.iter().enumerate();
    let written = written.map(|(index, record)| write(index, record));
    written
        .collect::<io::Result<_>>()
        .map_err(|source| JournalError::File {
            path: folder.to_owned(),
            source,
        })
}

fn read_records(folder: &Path) -> Result<Vec<Value>, JournalError> {
    let read = || {
        let mut paths = Vec::new();
        match fs::read_dir(folder) {
            Ok(entries) => {
                for entry in entries {
                    paths.push(entry?.path());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        paths.retain(|path| path.extension().is_some_and(|it| it == "json"));
        paths.sort_unstable();
        let records = paths.iter().map(|path| {
            if fs::metadata(path)?.len() > MAX_RECORD_BYTES {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            Ok(serde_json::from_slice(&fs::read(path)?)?)
        });
        records.collect::<io::Result<_>>()
    };
    read().map_err(|source| JournalError::File {
        path: folder.to_owned(),
        source,
    })
}
