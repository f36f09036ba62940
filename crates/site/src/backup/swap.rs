//! Atomic replace of folders.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with, syncfs};
use rustix::io::Errno;
use service::{Error, ResultExt as _};

use crate::event::{SiteEvent, SiteObserver};

/// A folder staged beside its target; removed without [`StagedFolder::swap`].
#[derive(Debug)]
pub(super) struct StagedFolder {
    target: PathBuf,
    path: PathBuf,
    is_swapped: bool,
}

impl Drop for StagedFolder {
    fn drop(&mut self) {
        if !self.is_swapped {
            fs::remove_dir_all(&self.path).ok();
        }
    }
}

impl StagedFolder {
    /// Creates an empty folder beside `target`, with mode 0700.
    ///
    /// Errors: the parent folder is missing or cannot be written.
    pub(super) fn new(target: &Path) -> Result<Self, Error> {
        let path = named(target, "restore");
        if path.exists() {
            // Left by a killed run, which never swapped it.
            fs::remove_dir_all(&path)
                .doing(|| format!("creating the folder {}", path.display()))?;
        }
        service::file::folder(&path, 0o700)?;
        Ok(Self {
            target: target.to_owned(),
            path,
            is_swapped: false,
        })
    }

    /// Path of the staged folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Swaps the folder with its target; returns the new path of the previous content, unless that was empty.
    ///
    /// Errors: no space, another file system.
    pub(super) fn swap(mut self) -> Result<Option<PathBuf>, Error> {
        let doing = || format!("replacing {}", self.target.display());
        // Sync before the rename: after a power failure the name leads to complete files, or to the previous folder.
        File::open(&self.path)
            .and_then(|folder| Ok(syncfs(folder)?))
            .doing(doing)?;
        let swapped = renameat_with(CWD, &self.path, CWD, &self.target, RenameFlags::EXCHANGE);
        match swapped {
            Ok(()) => {}
            Err(Errno::NOENT) => {
                fs::rename(&self.path, &self.target).doing(doing)?;
                self.is_swapped = true;
                return sync_parent(&self.target).map(|()| None);
            }
            Err(error) => return Err(Error::new(doing(), error)),
        }
        // From here on `path` is the previous content, which must not be removed on errors.
        self.is_swapped = true;
        if fs::remove_dir(&self.path).is_ok() {
            // It was empty.
            return sync_parent(&self.target).map(|()| None);
        }
        let kept = free_name(&self.target);
        fs::rename(&self.path, &kept).doing(doing)?;
        sync_parent(&self.target)?;
        Ok(Some(kept))
    }
}

/// Whether a path is missing or an empty folder.
pub(super) fn is_vacant(path: &Path) -> bool {
    match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// `NAME.SUFFIX` beside `target`.
fn named(target: &Path, suffix: &str) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(suffix);
    target.with_file_name(name)
}

/// The first free name of `NAME.old`, `NAME.old2` ….
fn free_name(target: &Path) -> PathBuf {
    let first = named(target, "old");
    let further = (2_u32..).map(|number| named(target, &format!("old{number}")));
    std::iter::once(first)
        .chain(further)
        .find(|path| !path.exists())
        .unwrap_or_else(|| named(target, "old"))
}

fn sync_parent(target: &Path) -> Result<(), Error> {
    let parent = target.parent().unwrap_or(Path::new("/"));
    File::open(parent)
        .and_then(|folder| folder.sync_all())
        .doing(|| format!("syncing {}", parent.display()))
}

/// Reports the new place of replaced content.
pub(super) fn report_previous(kept: Option<PathBuf>, observe: SiteObserver<'_>) {
    if let Some(kept) = kept {
        observe(SiteEvent::PreviousKept(&kept));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_replaced_and_the_previous_one_kept() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("data");
        fs::create_dir(&place).unwrap();
        for (text, kept) in [
            ("one", None),
            ("two", Some("data.old")),
            ("three", Some("data.old2")),
        ] {
            let staged = StagedFolder::new(&place).unwrap();
            fs::write(staged.path().join("file"), text).unwrap();
            let previous = staged.swap().unwrap();
            assert_eq!(previous, kept.map(|name| dir.path().join(name)));
            assert_eq!(fs::read_to_string(place.join("file")).unwrap(), text);
        }
        assert_eq!(
            fs::read_to_string(dir.path().join("data.old/file")).unwrap(),
            "one"
        );
        drop(StagedFolder::new(&place).unwrap());
        assert!(!dir.path().join("data.restore").exists());
    }
}
