//! Folders that take the place of others in one step.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with, syncfs};
use rustix::io::Errno;
use service::Error;

/// A folder that is made beside its place; without [`StagedFolder::take_place`] it goes.
#[derive(Debug)]
pub(super) struct StagedFolder {
    place: PathBuf,
    path: PathBuf,
    is_placed: bool,
}

impl Drop for StagedFolder {
    fn drop(&mut self) {
        if !self.is_placed {
            fs::remove_dir_all(&self.path).ok();
        }
    }
}

impl StagedFolder {
    /// A new empty folder beside `place`, of mode 0700.
    ///
    /// Errors: the folder above is not there, or cannot be written.
    pub(super) fn new(place: &Path) -> Result<Self, Error> {
        let path = named(place, "restore");
        let doing = || format!("making the folder {}", path.display());
        if path.exists() {
            // A killed run left it: nothing of it has ever been used.
            fs::remove_dir_all(&path).map_err(|e| Error::new(doing(), e))?;
        }
        crate::file::folder(&path, 0o700)?;
        Ok(Self {
            place: place.to_owned(),
            path,
            is_placed: false,
        })
    }

    /// Where it is made.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts the folder in its place; where what was there is now, unless that was nothing or an empty folder.
    ///
    /// Errors: no space, another file system.
    pub(super) fn take_place(mut self) -> Result<Option<PathBuf>, Error> {
        let doing = || format!("replacing {}", self.place.display());
        // Before the name: after a power cut the name leads to whole files, or to what was there.
        File::open(&self.path)
            .and_then(|folder| Ok(syncfs(folder)?))
            .map_err(|e| Error::new(doing(), e))?;
        let swapped = renameat_with(CWD, &self.path, CWD, &self.place, RenameFlags::EXCHANGE);
        match swapped {
            Ok(()) => {}
            Err(Errno::NOENT) => {
                fs::rename(&self.path, &self.place).map_err(|e| Error::new(doing(), e))?;
                self.is_placed = true;
                return sync_above(&self.place).map(|()| None);
            }
            Err(error) => return Err(Error::new(doing(), error)),
        }
        // From here on `path` is what was there before: it is not to be removed, whatever comes.
        self.is_placed = true;
        if fs::remove_dir(&self.path).is_ok() {
            // It was empty.
            return sync_above(&self.place).map(|()| None);
        }
        let kept = free_name(&self.place);
        fs::rename(&self.path, &kept).map_err(|e| Error::new(doing(), e))?;
        sync_above(&self.place)?;
        Ok(Some(kept))
    }
}

/// Whether nothing is there, or an empty folder.
pub(super) fn is_vacant(path: &Path) -> bool {
    match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// `NAME.SUFFIX` beside `place`.
fn named(place: &Path, suffix: &str) -> PathBuf {
    let mut name = place.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(suffix);
    place.with_file_name(name)
}

/// `NAME.old`, `NAME.old2` …: what was kept before stays.
fn free_name(place: &Path) -> PathBuf {
    let first = named(place, "old");
    let further = (2_u32..).map(|number| named(place, &format!("old{number}")));
    std::iter::once(first)
        .chain(further)
        .find(|path| !path.exists())
        .unwrap_or_else(|| named(place, "old"))
}

fn sync_above(place: &Path) -> Result<(), Error> {
    let above = place.parent().unwrap_or(Path::new("/"));
    File::open(above)
        .and_then(|folder| folder.sync_all())
        .map_err(|e| Error::new(format!("syncing {}", above.display()), e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_replaced_as_a_whole_and_the_old_one_kept() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("data");
        fs::create_dir(&place).unwrap();
        for (text, kept) in [
            ("one", None),
            ("two", Some("data.old")),
            ("three", Some("data.old2")),
        ] {
            let beside = StagedFolder::new(&place).unwrap();
            fs::write(beside.path().join("file"), text).unwrap();
            let was = beside.take_place().unwrap();
            assert_eq!(was, kept.map(|name| dir.path().join(name)));
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
