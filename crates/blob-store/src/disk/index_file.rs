//! The file of the index, with an overlay in memory for writes that the medium refuses.
//!
//! A failed write freezes the file in a state like after a crash, from which the index and the journal recover. Later
//! writes go to the overlay, so neither a full, a failing nor a read-only medium breaks the index of a running process.
//! [`IndexFile::thaw`] replaces a frozen file by a complete copy.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use redb::StorageBackend;

use super::staged;

/// Units: bytes. Block size of the overlay.
const BLOCK: usize = 4096;
/// Units: bytes. Copy buffer of [`IndexFile::thaw`].
const COPY_BYTES: usize = 1 << 20;

/// The file of the index. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct IndexFile(Arc<RwLock<FileState>>);

#[derive(Debug)]
struct FileState {
    path: PathBuf,
    /// `None`: all blocks are in the overlay.
    base: Option<File>,
    /// Units: bytes. Length of the valid part of the base.
    base_length: u64,
    /// Units: bytes.
    length: u64,
    /// Blocks by number that replace those of a frozen base.
    overlay: Option<HashMap<u64, Box<[u8; BLOCK]>>>,
    /// A read of the base failed: redb refuses all further requests.
    has_failed: bool,
}

impl IndexFile {
    /// Opens or creates the file. A file that cannot be written is frozen, one that cannot be read is ignored.
    pub(super) fn open(path: &Path, may_write: bool) -> Self {
        let mut options = File::options();
        options.read(true);
        let writable = if may_write {
            let opened = options.clone().write(true).create(true).open(path);
            opened
                .inspect_err(|error| tracing::warn!(%error, "index writes stay in memory until the storage takes them"))
                .ok()
        } else {
            None
        };
        let is_frozen = writable.is_none();
        let base = writable.or_else(|| options.open(path).ok());
        let length = base.as_ref().and_then(|base| base.metadata().ok());
        let length = length.map_or(0, |found| found.len());
        Self::of(path, base, length, is_frozen)
    }

    /// An empty file in memory.
    pub(super) fn in_memory(path: &Path) -> Self {
        Self::of(path, None, 0, true)
    }

    fn of(path: &Path, base: Option<File>, length: u64, is_frozen: bool) -> Self {
        Self(Arc::new(RwLock::new(FileState {
            path: path.to_owned(),
            base,
            base_length: length,
            length,
            overlay: is_frozen.then(HashMap::new),
            has_failed: false,
        })))
    }

    /// Whether writes are held in memory only.
    pub(super) fn is_frozen(&self) -> bool {
        self.read_state().overlay.is_some()
    }

    /// Whether the database over this file is unusable for this process.
    pub(super) fn has_failed(&self) -> bool {
        self.read_state().has_failed
    }

    /// Keeps all later writes in memory.
    pub(super) fn freeze(&self) {
        self.write_state().overlay.get_or_insert_default();
    }

    /// Replaces a frozen file by a complete, durable copy; `temporary` is on the same file system.
    pub(super) fn thaw(&self, temporary: &Path) -> io::Result<()> {
        let mut state = self.write_state();
        if state.overlay.is_none() {
            return Ok(());
        }
        let copied = state.copy(temporary);
        // Atomic replace: the copy is synced before the rename, so that a crash leaves the old or the new file.
        let placed = copied.and_then(|copy| {
            staged::rename(temporary, &state.path)?;
            durable::sync_parent(&state.path)?;
            Ok(copy)
        });
        let copy = placed.inspect_err(|_| drop(fs::remove_file(temporary)))?;
        state.base = Some(copy);
        state.base_length = state.length;
        state.overlay = None;
        Ok(())
    }

    fn read_state(&self) -> RwLockReadGuard<'_, FileState> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_state(&self) -> RwLockWriteGuard<'_, FileState> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FileState {
    fn copy(&self, temporary: &Path) -> io::Result<File> {
        let mut options = File::options();
        let mut copy = options
            .read(true)
            .write(true)
            .create_new(true)
            .open(temporary)?;
        let mut buffer = vec![0; COPY_BYTES];
        let mut at = 0;
        while at < self.length {
            let piece = (self.length - at).min(COPY_BYTES as u64);
            let piece = &mut buffer[..usize::try_from(piece).unwrap_or(COPY_BYTES)];
            self.read(at, piece)?;
            copy.write_all(piece)?;
            at += piece.len() as u64;
        }
        copy.sync_all()?;
        Ok(copy)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if offset + out.len() as u64 > self.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let in_base = self.base_length.saturating_sub(offset);
        let in_base = usize::try_from(in_base).map_or(out.len(), |length| length.min(out.len()));
        out[in_base..].fill(0);
        if let Some(base) = &self.base {
            base.read_exact_at(&mut out[..in_base], offset)?;
        }
        let Some(overlay) = self.overlay.as_ref().filter(|blocks| !blocks.is_empty()) else {
            return Ok(());
        };
        for (block, at, from, length) in spans(offset, out.len()) {
            if let Some(held) = overlay.get(&block) {
                out[at..at + length].copy_from_slice(&held[from..from + length]);
            }
        }
        Ok(())
    }

    /// Stores `data` in the overlay.
    fn hold(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        for (block, at, from, length) in spans(offset, data.len()) {
            let has = |overlay: &HashMap<_, _>| overlay.contains_key(&block);
            let mut held = Box::new([0; BLOCK]);
            // A block that is written in part keeps the rest.
            if length < BLOCK && !self.overlay.as_ref().is_some_and(has) {
                let start = block * BLOCK as u64;
                let rest = self.length.saturating_sub(start).min(BLOCK as u64);
                let rest = usize::try_from(rest).unwrap_or(BLOCK);
                self.read(start, &mut held[..rest])?;
            }
            let overlay = self.overlay.get_or_insert_default();
            let held = overlay.entry(block).or_insert(held);
            held[from..from + length].copy_from_slice(&data[at..at + length]);
        }
        Ok(())
    }

    /// Keeps all later writes in memory, and logs the cause.
    fn freeze(&mut self, doing: &str, error: &io::Error) {
        if self.overlay.is_none() {
            tracing::warn!(%error, doing, "index writes stay in memory until the storage takes them");
            self.overlay = Some(HashMap::new());
        }
    }
}

/// The blocks of `length` bytes from `offset` on: number, offset in the bytes, offset in the block, length.
fn spans(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= length {
            return None;
        }
        let place = offset + at as u64;
        let from = usize::try_from(place % BLOCK as u64).unwrap_or(0);
        let span = (
            place / BLOCK as u64,
            at,
            from,
            (length - at).min(BLOCK - from),
        );
        at += span.3;
        Some(span)
    })
}

impl StorageBackend for IndexFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.read_state().length)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let read = self.read_state().read(offset, out);
        if read.is_err() {
            self.write_state().has_failed = true;
        }
        read
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut state = self.write_state();
        if state.overlay.is_none()
            && let Some(base) = &state.base
        {
            match base.set_len(length) {
                Ok(()) => state.base_length = length,
                Err(error) => state.freeze("resizing it", &error),
            }
        }
        // Truncated bytes read as zeros when the file grows again.
        state.base_length = state.base_length.min(length);
        state.length = length;
        if let Some(overlay) = &mut state.overlay {
            let end = length.div_ceil(BLOCK as u64);
            overlay.retain(|block, _| *block < end);
            let rest = usize::try_from(length % BLOCK as u64).unwrap_or(0);
            if rest > 0
                && let Some(last) = overlay.get_mut(&(end - 1))
            {
                last[rest..].fill(0);
            }
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.write_state();
        if state.overlay.is_none()
            && let Some(base) = &state.base
            && let Err(error) = base.sync_data()
        {
            state.freeze("syncing it", &error);
            // The kernel may have dropped any of the dirty pages and still show them: no later process may trust the
            // file, which is derived and can be rebuilt.
            fs::remove_file(&state.path).ok();
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.write_state();
        if state.overlay.is_none()
            && let Some(base) = &state.base
        {
            match base.write_all_at(data, offset) {
                Ok(()) => {
                    let end = offset + data.len() as u64;
                    state.length = state.length.max(end);
                    state.base_length = state.base_length.max(end);
                    return Ok(());
                }
                Err(error) => state.freeze("writing it", &error),
            }
        }
        state.length = state.length.max(offset + data.len() as u64);
        state.hold(offset, data)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Write(u64, Vec<u8>),
        SetLen(u64),
        Freeze,
        Thaw,
    }

    fn step() -> impl Strategy<Value = Step> {
        let bytes = prop::collection::vec(any::<u8>(), 1..10_000);
        prop_oneof![
            4 => (0..30_000_u64, bytes).prop_map(|(at, bytes)| Step::Write(at, bytes)),
            1 => (0..40_000_u64).prop_map(Step::SetLen),
            1 => Just(Step::Freeze),
            1 => Just(Step::Thaw),
        ]
    }

    proptest! {
        #[test]
        fn frozen_or_not_it_reads_like_a_file(steps in prop::collection::vec(step(), 1..20)) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("index");
            let file = IndexFile::open(&path, true);
            let mut model: Vec<u8> = Vec::new();
            for step in steps {
                match step {
                    Step::Write(at, bytes) => {
                        let at = at.min(model.len() as u64);
                        let end = usize::try_from(at).unwrap() + bytes.len();
                        model.resize(model.len().max(end), 0);
                        model[end - bytes.len()..end].copy_from_slice(&bytes);
                        file.write(at, &bytes).unwrap();
                    }
                    Step::SetLen(length) => {
                        model.resize(usize::try_from(length).unwrap(), 0);
                        file.set_len(length).unwrap();
                    }
                    Step::Freeze => file.freeze(),
                    Step::Thaw => {
                        file.thaw(&dir.path().join("copy")).unwrap();
                        prop_assert_eq!(fs::read(&path).unwrap(), model.clone());
                    }
                }
                let mut found = vec![1; model.len()];
                file.read(0, &mut found).unwrap();
                prop_assert_eq!(&found, &model);
            }
        }
    }

    #[test]
    fn a_frozen_file_is_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index");
        fs::write(&path, [7; 100]).unwrap();
        let file = IndexFile::open(&path, false);
        file.write(50, &[8; 100]).unwrap();
        file.sync_data().unwrap();
        assert_eq!(fs::read(&path).unwrap(), [7; 100]);
        let mut found = [0; 100];
        file.read(0, &mut found).unwrap();
        assert_eq!((found[49], found[50]), (7, 8));
        assert!(file.read(100, &mut found).is_err());
        assert!(file.has_failed());
    }
}
