//! The folder of local files. Links inside of it are followed as long as they end inside.

use std::fs::{self, File, FileType, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use ignition::butane::{LocalEntry, LocalEntryKind, LocalFiles};
use service::{Error, ResultExt as _};

/// A folder by its path without links.
#[derive(Debug)]
pub(super) struct LocalFolder(PathBuf);

impl LocalFolder {
    /// Errors: the folder is missing.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let doing = || format!("opening the folder {}", path.display());
        let found = fs::canonicalize(path).doing(doing)?;
        if !found.is_dir() {
            return Err(Error::new(doing(), "it is no folder"));
        }
        Ok(Self(found))
    }

    /// The place of a path, after all links.
    fn resolve(&self, path: &str) -> Result<PathBuf, String> {
        let found = fs::canonicalize(self.0.join(path)).map_err(|error| reason(&error))?;
        if found.starts_with(&self.0) {
            return Ok(found);
        }
        Err("a link leads out of the folder of local files".to_owned())
    }
}

impl LocalFiles for LocalFolder {
    fn read(&self, path: &str, limit: usize) -> Result<Vec<u8>, String> {
        let path = self.resolve(path)?;
        // Before it is opened: a pipe would wait for a writer.
        if !fs::metadata(&path).is_ok_and(|found| found.is_file()) {
            return Err("it is no regular file".to_owned());
        }
        let mut bytes = Vec::new();
        let mut bounded = File::open(&path)
            .map_err(|error| reason(&error))?
            .take(limit as u64 + 1);
        bounded
            .read_to_end(&mut bytes)
            .map_err(|error| reason(&error))?;
        if bytes.len() > limit {
            return Err(format!("it has more than {limit} bytes"));
        }
        Ok(bytes)
    }

    fn list(&self, path: &str, limit: usize) -> Result<Vec<LocalEntry>, String> {
        let root = self.resolve(path)?;
        if !root.is_dir() {
            return Err("it is no directory".to_owned());
        }
        let mut entries = Vec::new();
        let mut open = vec![String::new()];
        while let Some(above) = open.pop() {
            let found = fs::read_dir(root.join(&above)).map_err(|error| reason(&error))?;
            for entry in found {
                let entry = entry.map_err(|error| reason(&error))?;
                let name = entry.file_name();
                let name = name
                    .to_str()
                    .ok_or_else(|| format!("the name {} is not UTF-8", name.display()))?;
                let path = match above.as_str() {
                    "" => name.to_owned(),
                    above => format!("{above}/{name}"),
                };
                // Of the link itself, if it is one.
                let metadata = entry.metadata().map_err(|error| reason(&error))?;
                let kind = kind(&entry.path(), &metadata)?;
                if kind == LocalEntryKind::Directory {
                    open.push(path.clone());
                }
                entries.push(LocalEntry { path, kind });
                if entries.len() > limit {
                    return Err(format!("it has more than {limit} entries"));
                }
            }
        }
        Ok(entries)
    }
}

fn kind(path: &Path, metadata: &Metadata) -> Result<LocalEntryKind, String> {
    let file_type: FileType = metadata.file_type();
    Ok(if file_type.is_dir() {
        LocalEntryKind::Directory
    } else if file_type.is_file() {
        let is_executable = metadata.permissions().mode() & 0o111 != 0;
        LocalEntryKind::File { is_executable }
    } else if file_type.is_symlink() {
        let target = fs::read_link(path).map_err(|error| reason(&error))?;
        let target = target.to_str();
        let target =
            target.ok_or_else(|| format!("the target of {} is not UTF-8", path.display()))?;
        let target = target.to_owned();
        LocalEntryKind::Link { target }
    } else {
        LocalEntryKind::Other
    })
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "it does not exist".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use tempfile::TempDir;

    use super::*;

    fn folder() -> (TempDir, LocalFolder) {
        let temp = TempDir::new().unwrap();
        let inner = temp.path().join("files");
        fs::create_dir_all(inner.join("tree/sub")).unwrap();
        fs::write(temp.path().join("secret"), "s").unwrap();
        fs::write(inner.join("a"), "abc").unwrap();
        fs::write(inner.join("tree/x"), "x").unwrap();
        fs::write(inner.join("tree/sub/run"), "r").unwrap();
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(inner.join("tree/sub/run"), executable).unwrap();
        symlink("../../secret", inner.join("tree/out")).unwrap();
        symlink("../a", inner.join("tree/in")).unwrap();
        symlink("..", inner.join("up")).unwrap();
        let folder = LocalFolder::open(&inner).unwrap();
        (temp, folder)
    }

    #[test]
    fn files_are_read_up_to_the_limit() {
        let (_temp, folder) = folder();
        assert_eq!(folder.read("a", 3).unwrap(), b"abc");
        assert_eq!(folder.read("a", 2).unwrap_err(), "it has more than 2 bytes");
        assert_eq!(folder.read("b", 2).unwrap_err(), "it does not exist");
        assert_eq!(folder.read("tree", 2).unwrap_err(), "it is no regular file");
        assert_eq!(folder.read("", 2).unwrap_err(), "it is no regular file");
    }

    #[test]
    fn links_out_of_the_folder_are_refused() {
        let (_temp, folder) = folder();
        let expected = "a link leads out of the folder of local files";
        assert_eq!(folder.read("tree/out", 9).unwrap_err(), expected);
        assert_eq!(folder.read("up/secret", 9).unwrap_err(), expected);
        assert_eq!(folder.list("up", 9).unwrap_err(), expected);
        assert_eq!(folder.read("tree/in", 9).unwrap(), b"abc");
    }

    #[test]
    fn trees_list_every_type_without_following_links() {
        let (temp, folder) = folder();
        let _socket = UnixListener::bind(temp.path().join("files/tree/socket")).unwrap();
        let mut entries = folder.list("tree", 6).unwrap();
        entries.sort_by(|one, other| one.path.cmp(&other.path));
        let link = |target: &str| LocalEntryKind::Link {
            target: target.to_owned(),
        };
        let file = |is_executable| LocalEntryKind::File { is_executable };
        let expected = [
            ("in", link("../a")),
            ("out", link("../../secret")),
            ("socket", LocalEntryKind::Other),
            ("sub", LocalEntryKind::Directory),
            ("sub/run", file(true)),
            ("x", file(false)),
        ];
        let expected = expected.map(|(path, kind)| LocalEntry {
            path: path.to_owned(),
            kind,
        });
        assert_eq!(entries, expected);
        assert_eq!(
            folder.list("tree", 5).unwrap_err(),
            "it has more than 5 entries"
        );
        assert_eq!(folder.list("a", 5).unwrap_err(), "it is no directory");
    }

    #[test]
    fn missing_folders_are_named() {
        let error = LocalFolder::open(Path::new("/nowhere")).unwrap_err();
        assert!(error.to_string().contains("/nowhere"), "{error}");
    }
}
