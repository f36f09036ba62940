//! Files of the kernel and of udev, below a folder: `/` on a host, a copy in tests.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Longest file that is read. The tables of a firmware and `/proc/cpuinfo` of big machines have less. Units: bytes.
const MAX_FILE: u64 = 4 << 20;

/// The root folder of the files that an inventory is made of.
#[derive(Debug, Clone)]
pub struct HostFiles(PathBuf);

impl Default for HostFiles {
    fn default() -> Self {
        Self(PathBuf::from("/"))
    }
}

impl HostFiles {
    /// Files below `root`.
    pub fn below(root: impl Into<PathBuf>) -> Self {
        Self(root.into())
    }

    /// The path of an absolute path of the host.
    pub fn path(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    /// The content of a file, up to 4 MiB; none when it cannot be read.
    pub fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = File::open(self.path(path)).ok()?;
        file.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// The text of a file without blanks at its ends; none when it cannot be read.
    pub fn text(&self, path: &str) -> Option<String> {
        let bytes = self.bytes(path)?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// The number in a file.
    pub fn number<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// The names in a folder, sorted; empty when it cannot be read.
    pub fn names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(path)) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    /// Whether a file or folder exists.
    pub fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// The absolute path on the host that a symbolic link leads to.
    pub fn target(&self, path: &str) -> Option<String> {
        let target = fs::canonicalize(self.path(path)).ok()?;
        let root = fs::canonicalize(&self.0).ok()?;
        let inside = target.strip_prefix(root).ok()?;
        Path::new("/")
            .join(inside)
            .into_os_string()
            .into_string()
            .ok()
    }
}

/// Creates a file that only root reads, in the place of one of this name. A link of this name is replaced and not followed:
/// other users of a host may put one into a shared folder.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    options
        .open(path)
        .or_else(|_| fs::remove_file(path).and_then(|()| options.open(path)))
}

/// Writes a file as of [`create_private`].
pub(crate) fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    create_private(path)?.write_all(content)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn private_files_replace_links_and_files_of_others() {
        let root = tempfile::tempdir().unwrap();
        let (path, other) = (root.path().join("private"), root.path().join("other"));
        fs::write(&other, "other").unwrap();
        symlink(&other, &path).unwrap();
        for text in ["first", "again"] {
            write_private(&path, text.as_bytes()).unwrap();
            let found = fs::symlink_metadata(&path).unwrap();
            assert!(found.is_file());
            assert_eq!(found.permissions().mode() & 0o777, 0o600);
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        }
        assert_eq!(fs::read_to_string(&other).unwrap(), "other");
    }

    #[test]
    fn links_lead_to_paths_of_the_host() {
        let root = tempfile::tempdir().unwrap();
        let device = root.path().join("sys/devices/pci0/sda");
        fs::create_dir_all(&device).unwrap();
        fs::create_dir_all(root.path().join("sys/block")).unwrap();
        symlink("../devices/pci0/sda", root.path().join("sys/block/sda")).unwrap();
        fs::write(device.join("size"), " 42\n").unwrap();
        let files = HostFiles::below(root.path());
        assert_eq!(
            files.target("/sys/block/sda").unwrap(),
            "/sys/devices/pci0/sda"
        );
        assert_eq!(files.number::<u64>("/sys/block/sda/size"), Some(42));
        assert_eq!(files.names("/sys/block"), ["sda"]);
        assert_eq!(files.text("/sys/block/sdb/size"), None);
    }
}
