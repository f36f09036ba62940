//! The folder that results are written to.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use model::Error;

use super::File;

/// Everybody may read results.
const FOLDER_MODE: u32 = 0o755;

/// Writes the files into a new folder `results-<time>` of `workspace`, all or none. `time` is in seconds since 1970.
///
/// Blocking. Errors: Invalid – a path that leads out of the folder; Conflict – there are results of that time; Internal –
/// the disk does not take it.
pub fn write(workspace: &Path, time: u64, files: &[File]) -> Result<PathBuf, Error> {
    for file in files {
        let mut parts = Path::new(&file.path).components();
        if file.path.is_empty() || !parts.all(|part| matches!(part, Component::Normal(_))) {
            let reason = format!("{:?} is no path in a folder", file.path);
            return Err(Error::invalid("results", reason));
        }
    }
    let folder = workspace.join(format!("results-{time}"));
    match write_all(workspace, &folder, files) {
        Ok(()) => Ok(folder),
        Err(e) if is_there(&e) => {
            let reason = format!("{} is there already: try again", folder.display());
            Err(Error::conflict(reason))
        }
        Err(e) => Err(Error::internal(format!("writing {}", folder.display()), e)),
    }
}

fn write_all(workspace: &Path, folder: &Path, files: &[File]) -> io::Result<()> {
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
    fs::rename(part.path(), folder)?;
    // It has another name now, and stays.
    let _ = part.keep();
    fs::File::open(workspace)?.sync_all()
}

fn is_there(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty
    )
}
