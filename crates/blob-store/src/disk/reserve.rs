//! The space reserve: a preallocated file that is removed when the disk is full, so that deletions, the journal and the
//! index have room, and allocated again once there is enough.
//!
//! While the reserve is released, pushes are refused: the room is for deletions only.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use super::layout::FolderLayout;
use super::staged;

/// Largest reserve, as a fraction of its file system.
const LARGEST_PART: u64 = 16;
/// Units: bytes. Chunk of zeros on file systems without fallocate.
const FILL_BYTES: usize = 1 << 20;

/// Capacity and free space of the medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Units: bytes. Of the whole file system.
    pub capacity: u64,
    /// Units: bytes. Available to unprivileged processes.
    pub free: u64,
    /// Units: bytes. Size of the space reserve; zero without one.
    pub reserve: u64,
    /// The reserve is released: pushes are refused until it is allocated again.
    pub is_released: bool,
}

#[derive(Debug)]
pub(super) struct Reserve {
    root: PathBuf,
    file: PathBuf,
    /// Units: bytes.
    wanted: u64,
    is_held: AtomicBool,
}

impl Reserve {
    /// A reserve of `wanted` bytes, or none for zero; [`Self::take`] allocates it.
    pub(super) fn new(layout: &FolderLayout, wanted: u64) -> Self {
        Self {
            root: layout.root().to_owned(),
            file: layout.reserve(),
            wanted,
            is_held: AtomicBool::new(wanted == 0),
        }
    }

    pub(super) fn is_released(&self) -> bool {
        !self.is_held.load(Ordering::Acquire)
    }

    /// Reads capacity and free space.
    pub(super) fn room(&self) -> io::Result<Room> {
        let found = rustix::fs::statvfs(&self.root)?;
        let capacity = found.f_blocks.saturating_mul(found.f_frsize);
        Ok(Room {
            capacity,
            free: found.f_bavail.saturating_mul(found.f_frsize),
            reserve: self.wanted.min(capacity / LARGEST_PART),
            is_released: self.is_released(),
        })
    }

    /// Allocates the reserve. Errors: StorageFull – less than the reserve would stay free.
    pub(super) fn take(&self) -> io::Result<()> {
        if self.wanted == 0 {
            staged::remove_file(&self.file)?;
            return Ok(());
        }
        let Room { free, reserve, .. } = self.room()?;
        let length = fs::metadata(&self.file).map_or(0, |found| found.len());
        if length != reserve {
            staged::remove_file(&self.file)?;
            if free.saturating_add(length) < 2 * reserve {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.allocate(reserve)
                .inspect_err(|_| drop(fs::remove_file(&self.file)))?;
        }
        self.is_held.store(true, Ordering::Release);
        Ok(())
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        let mut file = File::create_new(&self.file)?;
        match rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes) {
            Err(rustix::io::Errno::OPNOTSUPP) => {
                let zeros = vec![0; FILL_BYTES];
                let mut left = bytes;
                while left > 0 {
                    let piece = usize::try_from(left).map_or(FILL_BYTES, |n| n.min(FILL_BYTES));
                    file.write_all(&zeros[..piece])?;
                    left -= piece as u64;
                }
                Ok(())
            }
            allocated => Ok(allocated?),
        }
    }

    /// Removes the file of the reserve. Returns whether there was one.
    pub(super) fn release(&self) -> bool {
        if self.wanted == 0 {
            return false;
        }
        self.is_held.store(false, Ordering::Release);
        let was_there = staged::remove_file(&self.file).unwrap_or(false);
        if was_there {
            tracing::warn!("the disk is full: the space reserve is released for deletions");
        }
        was_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_is_allocated_and_released_once() {
        let dir = tempfile::tempdir().unwrap();
        let layout = FolderLayout::new(dir.path());
        durable::create_folder(&layout.temporary_dir()).unwrap();
        let reserve = Reserve::new(&layout, 1 << 20);
        assert!(reserve.is_released());
        reserve.take().unwrap();
        assert!(!reserve.is_released());
        assert_eq!(fs::metadata(layout.reserve()).unwrap().len(), 1 << 20);
        assert!(reserve.release());
        assert!(!reserve.release());
        assert!(reserve.room().unwrap().is_released);
        reserve.take().unwrap();
        // Without a reserve, the file of an earlier run is removed.
        let none = Reserve::new(&layout, 0);
        none.take().unwrap();
        assert!(!none.is_released() && !none.release() && !layout.reserve().exists());
    }
}
