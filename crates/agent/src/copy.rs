//! Copies one file: the program `cp` of the agent's image, by which `agent.service` takes the agent out of it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Error;

/// Runs `cp SOURCE TARGET`, where the target may be a folder.
///
/// Errors: other arguments; a file that cannot be read or written.
pub fn copy(arguments: impl IntoIterator<Item = OsString>) -> Result<(), Error> {
    let arguments: Vec<PathBuf> = arguments.into_iter().map(PathBuf::from).collect();
    let [source, target] = arguments.as_slice() else {
        let expected = std::io::Error::other("expected SOURCE and TARGET");
        return Err(Error::io("copying a file", expected));
    };
    let target = match source.file_name() {
        Some(name) if target.is_dir() => target.join(name),
        _ => target.clone(),
    };
    replace(source, &target).map_err(|e| Error::io("copying a file", e))
}

/// By a temporary name: the target may be a program that runs.
fn replace(source: &Path, target: &Path) -> std::io::Result<()> {
    let mut part = target.as_os_str().to_owned();
    part.push(".part");
    fs::copy(source, &part)?;
    fs::rename(&part, target)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_program_is_copied_into_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        let (source, folder) = (dir.path().join("agent"), dir.path().join("bin"));
        fs::write(&source, "program").unwrap();
        fs::set_permissions(&source, fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(&folder).unwrap();
        let run = |arguments: &[&Path]| copy(arguments.iter().map(|it| it.as_os_str().to_owned()));
        run(&[&source, &folder]).unwrap();
        run(&[&source, &folder]).unwrap();
        let copied = folder.join("agent");
        assert_eq!(fs::read_to_string(&copied).unwrap(), "program");
        let mode = fs::metadata(&copied).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
        run(&[&source, &dir.path().join("b")]).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        for wrong in [&[&*source][..], &[&dir.path().join("none"), &folder]] {
            run(wrong).unwrap_err();
        }
    }
}
