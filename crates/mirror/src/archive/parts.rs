//! Unfinished files: a folder in the target, locked, with a folder for each layout in it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use model::Error;

use super::journal::{self, Spot};
use super::name::NamedSet;
use super::plan::SetPlan;
use super::space;

/// The folder in the target.
const FOLDER: &str = ".mirror.part";
/// Lock file of the running writer.
const LOCK: &str = "lock";

/// The unfinished files of a plan.
#[derive(Debug)]
pub(super) struct PartFiles {
    /// Folder of the finished files.
    target: PathBuf,
    /// The folder of all layouts.
    all: PathBuf,
    /// That of this layout.
    own: PathBuf,
    names: Vec<String>,
    _lock: File,
}

impl PartFiles {
    /// Creates missing files, and locks the folder.
    ///
    /// Errors: Conflict – another run writes there; Internal – it cannot be written.
    pub(super) fn open(target: &Path, plan: &SetPlan) -> Result<Self, Error> {
        let all = target.join(FOLDER);
        let own = all.join(plan.layout().hex());
        let lock = durable::create_folder(target)
            .and_then(|()| fs::create_dir_all(&all))
            .and_then(|()| locked(&all.join(LOCK)));
        let lock = lock
            .map_err(|e| space::failed(target, 0, e))?
            .ok_or_else(|| {
                let reason = "another run writes there: wait for its end, or name another folder";
                Error::conflict(format!("{}: {reason}", target.display()))
            })?;
        fs::create_dir_all(&own).map_err(|e| space::failed(target, 0, e))?;
        Ok(Self {
            target: target.to_owned(),
            all,
            own,
            names: plan.files.iter().map(|file| file.name.clone()).collect(),
            _lock: lock,
        })
    }

    pub(super) fn target(&self) -> &Path {
        &self.target
    }

    /// The folder of this layout.
    pub(super) fn folder(&self) -> &Path {
        &self.own
    }

    /// Folders of other layouts, which were not finished.
    pub(super) fn others(&self) -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.all)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() && entry.path() != self.own {
                found.push(entry.path());
            }
        }
        found.sort();
        Ok(found)
    }

    pub(super) fn path(&self, number: usize) -> PathBuf {
        part(&self.own, &self.names[number])
    }

    /// The file, to be read and written.
    pub(super) fn file(&self, number: usize) -> io::Result<File> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.path(number))
    }

    /// Gives a file its size; whether it had another one, so that its content is unknown.
    pub(super) fn prepare(&self, number: usize, size: u64) -> io::Result<bool> {
        let mut options = OpenOptions::new();
        let file = options
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.path(number))?;
        if file.metadata()?.len() == size {
            return Ok(false);
        }
        // Holes are empty, as padding and the end have to be.
        file.set_len(0)?;
        file.set_len(size)?;
        Ok(true)
    }

    /// Takes back the names that a stopped run gave.
    pub(super) fn unname(&self) -> io::Result<()> {
        for name in &self.names {
            let (named, part) = (self.target.join(name), part(&self.own, name));
            if !part.exists() && named.exists() {
                fs::rename(named, part)?;
            }
        }
        Ok(())
    }

    /// Renames all files to their final names, the first one last; those of an older set with the same sequence are
    /// replaced.
    pub(super) fn name(&self) -> io::Result<Vec<PathBuf>> {
        let named: Vec<PathBuf> = self
            .names
            .iter()
            .map(|name| self.target.join(name))
            .collect();
        // The first file of the older set goes first: the others are no set without it, so none of mixed files is ever visible.
        for old in self.older()? {
            fs::remove_file(old)?;
        }
        for (number, path) in named.iter().enumerate().rev() {
            if number == 0 {
                // The other names are durable before the first one makes the set visible as complete.
                durable::sync_folder(&self.target)?;
            }
            fs::rename(self.path(number), path)?;
        }
        // The names are durable before the run is recorded and its journal removed.
        durable::sync_folder(&self.target)?;
        Ok(named)
    }

    /// Removes the journal.
    pub(super) fn forget(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.all)
    }

    /// Files of the same sequence, or of any set of v2, the first one first: without it the others are nothing.
    fn older(&self) -> io::Result<Vec<PathBuf>> {
        let set = |name: &str| NamedSet::parse(name).map(|(set, _)| set);
        let own = self.names.first().and_then(|name| set(name));
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.target)? {
            let entry = entry?;
            if entry.file_name().to_str().and_then(set) == own && own.is_some() {
                found.push(entry.path());
            }
        }
        found.sort();
        Ok(found)
    }
}

/// Removes the journal of a run in `target` that ended between naming its files and the removal: nothing else.
///
/// Blocking. Errors: Internal – it cannot be removed.
pub fn forget_finished(target: &Path) -> Result<(), Error> {
    let all = target.join(FOLDER);
    let forgotten = || {
        if !all.is_dir() {
            return Ok(());
        }
        // A running writer still needs it.
        let Some(_lock) = locked(&all.join(LOCK))? else {
            return Ok(());
        };
        if has_parts(&all)? {
            return Ok(());
        }
        fs::remove_dir_all(&all)
    };
    forgotten().map_err(|e| space::failed(&all, 0, e))
}

/// Whether there are unfinished files.
fn has_parts(all: &Path) -> io::Result<bool> {
    for layout in fs::read_dir(all)? {
        let layout = layout?;
        if !layout.file_type()?.is_dir() {
            continue;
        }
        for file in fs::read_dir(layout.path())? {
            if file?.file_name() != journal::NAME {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// An unfinished file in the folder of its layout.
fn part(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.part"))
}

/// The unfinished file with that number in the folder of another layout.
pub(super) fn other_part(folder: &Path, spot: Spot) -> io::Result<Option<PathBuf>> {
    let number =
        |name: &str| NamedSet::parse(name.strip_suffix(".part")?).map(|(_, number)| number);
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_str().and_then(number) == Some(spot.0) {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}

/// None when another process holds it.
fn locked(path: &Path) -> io::Result<Option<File>> {
    loop {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // The previous holder may have removed it at its end.
        if fs::metadata(path).is_ok_and(|it| file.metadata().is_ok_and(|own| own.ino() == it.ino()))
        {
            return Ok(Some(file));
        }
    }
}
