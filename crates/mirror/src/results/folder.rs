//! The folder that results are written to.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use model::Error;

use super::File;

/// Everybody may read results.
const FOLDER_MODE: u32 = 0o755;

/// How many runs may end in one second. Units: seconds that the names of later ones are ahead.
const AHEAD: u64 = 60;

/// Writes the files into a new folder `results-<time>` of `workspace`, all or none. `time` is in seconds since 1970; where
/// there are results of that time, it is the next one without.
///
/// Blocking. Errors: Invalid – a path that leads out of the folder; Internal – the disk does not take it.
pub fn write(workspace: &Path, time: u64, files: &[File]) -> Result<PathBuf, Error> {
    for file in files {
        let mut parts = Path::new(&file.path).components();
        if file.path.is_empty() || !parts.all(|part| matches!(part, Component::Normal(_))) {
            let reason = format!("{:?} is no path in a folder", file.path);
            return Err(Error::invalid("results", reason));
        }
    }
    write_all(workspace, time, files)
        .map_err(|e| Error::internal(format!("writing results to {}", workspace.display()), e))
}

fn write_all(workspace: &Path, time: u64, files: &[File]) -> io::Result<PathBuf> {
    fs::create_dir_all(workspace)?;
    let part = tempfile::Builder::new()
        .prefix(".results-")
        .permissions(Permissions::from_mode(FOLDER_MODE))
        .tempdir_in(workspace)?;
    for file in files {
        let path = part.path().join(&file.path);
        if let Some(above) = path.parent() {
            fs::create_dir_all(above)?;
        }
        let mut out = fs::File::create_new(path)?;
        io::Write::write_all(&mut out, &file.content)?;
        out.sync_all()?;
    }
    let folder = named(part.path(), workspace, time)?;
    // It has another name now, and stays.
    let _ = part.keep();
    fs::File::open(workspace)?.sync_all()?;
    Ok(folder)
}

/// Gives what was written the first name that is free.
fn named(part: &Path, workspace: &Path, time: u64) -> io::Result<PathBuf> {
    for time in time..time.saturating_add(AHEAD) {
        let folder = workspace.join(format!("results-{time}"));
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
