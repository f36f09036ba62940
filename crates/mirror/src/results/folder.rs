//! The folder that results are written to.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use model::Error;
use tempfile::TempDir;

use super::file::{Copied, ResultFile};
use crate::archive;
use crate::folder::sync_folders;

/// Results are readable for all users.
const FOLDER_MODE: u32 = 0o755;

/// Objects of an earlier run, until they are removed.
const OLD: &str = ".old";

/// Runs that may end in one second. Units: seconds that later names are ahead.
const AHEAD: u64 = 60;

/// Writes the files into a new folder `manifests-<time>`, otherwise as [`write`].
///
/// Blocking. Errors: as [`write`].
pub fn write_manifests(
    workspace: &Path,
    time: u64,
    files: &[ResultFile],
) -> Result<PathBuf, Error> {
    write_as("manifests", workspace, time, files, &[])
}

/// Writes the files, and copies the others, into a new folder `results-<time>` of `workspace`, all or none. `time` is in
/// seconds since 1970; where there are results of that time, it is the next one without.
///
/// Blocking. Errors: Invalid – a path that leads out of the folder; Internal – the disk does not take it.
pub fn write(
    workspace: &Path,
    time: u64,
    files: &[ResultFile],
    copied: &[Copied],
) -> Result<PathBuf, Error> {
    write_as("results", workspace, time, files, copied)
}

/// Writes the files into `workspace`, in place of those of previous runs: the folder `replaced` is replaced as a whole, so that
/// it has no object of an earlier run.
///
/// Blocking. Errors: as [`write`].
pub fn replace(
    workspace: &Path,
    replaced: &str,
    files: &[ResultFile],
    copied: &[Copied],
) -> Result<(), Error> {
    let part = written(workspace, files, copied)?;
    let failed = |e| Error::internal(format!("writing results to {}", workspace.display()), e);
    let put = || {
        sync_folders(part.path())?;
        let old = part.path().join(OLD);
        let named = workspace.join(replaced);
        match fs::rename(&named, &old) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        move_all(part.path(), workspace, &old)?;
        durable::sync_folder(workspace)
    };
    put().map_err(failed)
}

/// Moves the entries of a folder into another one, except `kept`. Folders that both have are merged.
fn move_all(from: &Path, to: &Path, kept: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, there) = (entry.path(), to.join(entry.file_name()));
        if path == kept {
            continue;
        }
        if entry.file_type()?.is_dir() && there.is_dir() {
            move_all(&path, &there, kept)?;
            durable::sync_folder(&there)?;
        } else {
            fs::rename(&path, &there)?;
        }
    }
    Ok(())
}

fn write_as(
    name: &str,
    workspace: &Path,
    time: u64,
    files: &[ResultFile],
    copied: &[Copied],
) -> Result<PathBuf, Error> {
    let part = written(workspace, files, copied)?;
    finish(part, workspace, name, time)
        .map_err(|e| Error::internal(format!("writing results to {}", workspace.display()), e))
}

/// Writes the files into a new folder of `workspace`, which is removed with the result.
fn written(workspace: &Path, files: &[ResultFile], copied: &[Copied]) -> Result<TempDir, Error> {
    let paths = files.iter().map(|file| &file.path);
    for path in paths.chain(copied.iter().map(|file| &file.path)) {
        let mut parts = Path::new(path).components();
        if path.is_empty() || !parts.all(|part| matches!(part, Component::Normal(_))) {
            let reason = format!("{path:?} is no path in a folder");
            return Err(Error::invalid("results", reason));
        }
    }
    let failed = |e| Error::internal(format!("writing results to {}", workspace.display()), e);
    let part = begin(workspace).map_err(failed)?;
    let unwritten = |path: &str, e| {
        let workspace = workspace.display();
        archive::failed(format!("writing {path} of the results to {workspace}"), e)
    };
    for file in files {
        let content = &mut file.content.as_ref();
        put(part.path(), &file.path, content).map_err(|e| unwritten(&file.path, e))?;
    }
    for file in copied {
        let mut content = file.from.open()?;
        put(part.path(), &file.path, &mut content).map_err(|e| unwritten(&file.path, e))?;
    }
    Ok(part)
}

fn begin(workspace: &Path) -> io::Result<TempDir> {
    durable::create_folder(workspace)?;
    tempfile::Builder::new()
        .prefix(".results-")
        .permissions(Permissions::from_mode(FOLDER_MODE))
        .tempdir_in(workspace)
}

fn put(folder: &Path, path: &str, content: &mut impl io::Read) -> io::Result<()> {
    let path = folder.join(path);
    if let Some(above) = path.parent() {
        fs::create_dir_all(above)?;
    }
    let mut out = fs::File::create_new(path)?;
    io::copy(content, &mut out)?;
    out.sync_all()
}

fn finish(part: TempDir, workspace: &Path, name: &str, time: u64) -> io::Result<PathBuf> {
    // All files are durable before the folder gets its name: results are complete or absent.
    sync_folders(part.path())?;
    let folder = named(part.path(), workspace, name, time)?;
    // It was renamed, and stays.
    let _ = part.keep();
    // The name is durable before the run is recorded, after which it is not repeated.
    durable::sync_folder(workspace)?;
    Ok(folder)
}

/// Renames the folder to the first free name.
fn named(part: &Path, workspace: &Path, name: &str, time: u64) -> io::Result<PathBuf> {
    for time in time..time.saturating_add(AHEAD) {
        let folder = workspace.join(format!("{name}-{time}"));
        match fs::rename(part, &folder) {
            Ok(()) => return Ok(folder),
            Err(e) if is_there(&e) => {}
            Err(e) => return Err(e),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

fn is_there(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty
    )
}
