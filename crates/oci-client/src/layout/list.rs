//! The index of a layout, shared by the tasks of a process: parsed once, written for several names at a time.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::Error;

use super::files::failed;
use super::{Index, Layout, index};
use oci::{Digest, Manifest};

/// Indexes of all layouts that a process uses.
#[derive(Debug, Default)]
pub(crate) struct Lists(Mutex<HashMap<PathBuf, Arc<List>>>);

/// The index of one layout.
#[derive(Debug)]
pub(crate) struct List {
    layout: Layout,
    /// Keeps other processes from sweeping content that is written and not listed yet.
    hold: Mutex<Option<File>>,
    /// The index as last read or written.
    known: Mutex<Option<(Stamp, Arc<Index>)>>,
    /// Images whose names wait to be written.
    waiting: Mutex<Vec<(String, Manifest)>>,
    writing: Mutex<()>,
}

/// Identity of an index file: each write makes another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    seconds: i64,
    nanoseconds: i64,
    size: u64,
}

impl Stamp {
    /// None without an index.
    fn of(folder: &Path) -> io::Result<Option<Self>> {
        let metadata = match fs::metadata(folder.join(index::FILE)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            metadata => metadata?,
        };
        Ok(Some(Self {
            inode: metadata.ino(),
            seconds: metadata.mtime(),
            nanoseconds: metadata.mtime_nsec(),
            size: metadata.len(),
        }))
    }
}

impl Lists {
    /// The index of the folder.
    pub(crate) fn of(&self, folder: &Path) -> Arc<List> {
        let mut lists = lock(&self.0);
        if let Some(list) = lists.get(folder) {
            return Arc::clone(list);
        }
        let list = Arc::new(List {
            layout: Layout {
                folder: folder.to_owned(),
                name: None,
            },
            hold: Mutex::default(),
            known: Mutex::default(),
            waiting: Mutex::default(),
            writing: Mutex::default(),
        });
        lists.insert(folder.to_owned(), Arc::clone(&list));
        list
    }
}

impl List {
    /// The layout.
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The current index; empty for a folder without one.
    ///
    /// Blocking. Errors: Invalid – the file is not an index; Internal – it cannot be read.
    pub(crate) fn index(&self) -> Result<Arc<Index>, Error> {
        let mut known = lock(&self.known);
        let stamp = self.stamp()?;
        if let (Some((own, index)), Some(stamp)) = (&*known, stamp)
            && *own == stamp
        {
            return Ok(Arc::clone(index));
        }
        let index = Arc::new(Index::read_or_empty(&self.layout.folder)?);
        *known = stamp.map(|stamp| (stamp, Arc::clone(&index)));
        Ok(index)
    }

    /// Names a stored manifest. Names that arrive during a write are written together by the next one (group commit):
    /// otherwise each name would cost as much as all before it.
    ///
    /// Blocking. Errors: as [`Self::index`]; Internal and Conflict – the disk refuses it.
    pub(crate) fn name(&self, name: &str, manifest: &Manifest) -> Result<(), Error> {
        lock(&self.waiting).push((name.to_owned(), manifest.clone()));
        let _guard = lock(&self.writing);
        let batch = std::mem::take(&mut *lock(&self.waiting));
        if batch.is_empty() {
            return Ok(());
        }
        let written = self.change(|index| {
            let mut batch = batch.iter();
            let set = batch.try_for_each(|(name, manifest)| index.set(name, manifest));
            set.map_err(|e| Error::internal("listing an image", e))
        });
        if written.is_err() {
            // The waiting callers retry it.
            lock(&self.waiting).splice(0..0, batch);
        }
        written
    }

    /// Removes the entries that `is_selected` accepts. Their content stays.
    ///
    /// Blocking. Errors: NotFound – there is none; as [`Self::name`].
    pub(crate) fn delete(&self, is_selected: impl Fn(&str, &Digest) -> bool) -> Result<(), Error> {
        let _guard = lock(&self.writing);
        let mut has_any = false;
        self.change(|index| {
            has_any = index.remove(is_selected);
            Ok(())
        })?;
        if has_any {
            return Ok(());
        }
        Err(Error::not_found("image", &self.layout))
    }

    /// Makes a layout of the folder, unless it is one, and keeps other processes from sweeping it.
    ///
    /// Blocking. Errors: Invalid – the folder has something else; Internal and Conflict – the disk refuses it.
    pub(crate) fn hold(&self) -> Result<(), Error> {
        let mut hold = lock(&self.hold);
        if hold.is_none() {
            *hold = Some(self.layout.hold()?);
        }
        Ok(())
    }

    /// Removes content that no listed image needs, unless another process writes to the layout now.
    ///
    /// Blocking. Errors: as [`Layout::sweep`].
    pub(crate) fn sweep(&self) -> Result<(), Error> {
        let mut hold = lock(&self.hold);
        *hold = None;
        self.layout.sweep()
    }

    /// Changes the index, one process at a time.
    fn change(&self, change: impl FnOnce(&mut Index) -> Result<(), Error>) -> Result<(), Error> {
        let _lock = self.layout.lock()?;
        let mut index = self.index()?;
        // Released before the change: without another owner, it need not be copied.
        *lock(&self.known) = None;
        change(Arc::make_mut(&mut index))?;
        index.write(&self.layout.folder)?;
        let stamp = self.stamp()?;
        *lock(&self.known) = stamp.map(|stamp| (stamp, index));
        Ok(())
    }

    fn stamp(&self) -> Result<Option<Stamp>, Error> {
        let folder = &self.layout.folder;
        Stamp::of(folder).map_err(|e| failed(folder, e))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
