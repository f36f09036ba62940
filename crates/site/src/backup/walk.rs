//! Walk over a folder that other users write to, without following symbolic links (race-free).
//!
//! The services own their folders. A compromised service could place a link to a system file there, and read its content
//! after the next restore.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;
use service::Error;

/// Calls `visit` with path and file of every file below `root` that `keeps` accepts, sorted by name. Rejected folders are
/// not entered; files deleted meanwhile are skipped.
///
/// Errors: unreadable files or folders; those of `visit`.
pub(super) fn files(
    root: &Path,
    keeps: &dyn Fn(&str) -> bool,
    visit: &mut dyn FnMut(&str, &File) -> Result<(), Error>,
) -> Result<(), Error> {
    let doing = || format!("reading {}", root.display());
    let top = match openat(
        CWD,
        root,
        OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    ) {
        Ok(top) => File::from(top),
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(Error::new(doing(), error)),
    };
    folder(&top, "", keeps, visit)
}

fn folder(
    top: &File,
    below: &str,
    keeps: &dyn Fn(&str) -> bool,
    visit: &mut dyn FnMut(&str, &File) -> Result<(), Error>,
) -> Result<(), Error> {
    let failed = |error: io::Error| Error::new(format!("reading {below}"), error);
    let Some(names) = names(top, below).map_err(failed)? else {
        return Ok(());
    };
    for (name, kind) in names {
        let path = if below.is_empty() {
            name
        } else {
            format!("{below}/{name}")
        };
        if !keeps(&path) {
            continue;
        }
        match kind {
            FileType::Directory => folder(top, &path, keeps, visit)?,
            FileType::RegularFile => {
                let found = open(top, &path, OFlags::NONBLOCK).map_err(failed)?;
                if let Some(file) = found {
                    visit(&path, &file)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn names(top: &File, below: &str) -> io::Result<Option<Vec<(String, FileType)>>> {
    let path = if below.is_empty() { "." } else { below };
    let Some(folder) = open(top, path, OFlags::DIRECTORY)? else {
        return Ok(None);
    };
    let mut found = Vec::new();
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let name = std::str::from_utf8(name)
            .map_err(|_| io::Error::other("file name is not UTF-8"))?
            .to_owned();
        found.push((name, entry.file_type()));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(Some(found))
}

/// Opens a path below `top`; none if it was deleted or replaced by a link.
fn open(top: &File, path: &str, flags: OFlags) -> io::Result<Option<File>> {
    let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let opened = match openat2(top, path, flags, Mode::empty(), resolve) {
        // Linux before 5.6 and some sandboxes lack openat2.
        Err(Errno::NOSYS | Errno::PERM) => openat(top, path, flags, Mode::empty()),
        opened => opened,
    };
    match opened {
        Ok(file) => Ok(Some(File::from(file))),
        Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn symbolic_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/file"), "x").unwrap();
        fs::write(root.join("skipped"), "x").unwrap();
        fs::write(dir.path().join("secret"), "x").unwrap();
        symlink(dir.path().join("secret"), root.join("a/link")).unwrap();
        symlink(dir.path(), root.join("folder")).unwrap();
        let mut found = Vec::new();
        files(&root, &|path| path != "skipped", &mut |path, _| {
            found.push(path.to_owned());
            Ok(())
        })
        .unwrap();
        assert_eq!(found, ["a/b/file"]);
    }
}
