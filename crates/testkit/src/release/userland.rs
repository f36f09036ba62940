//! The libraries that an installer image carries for a dynamically linked program.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use model::Error;

use super::image::{LayerEntry, LayerFile};

/// Where images have their libraries; `/lib64` leads there.
const FOLDER: &str = "usr/lib64";

/// Loader and libraries of an installer image; by default none.
#[derive(Debug, Clone, Default)]
pub struct Userland {
    libraries: Vec<PathBuf>,
}

impl Userland {
    /// Libraries of `program` on this machine; none for a static program.
    ///
    /// Errors: `Internal` – ldd fails, or a library is missing.
    pub fn of(program: &Path) -> Result<Self, Error> {
        let doing = || format!("listing the libraries of {}", program.display());
        // Preloaded libraries of this process are none of the program's.
        let listed = Command::new("ldd")
            .arg(program)
            .env_remove("LD_PRELOAD")
            .output();
        let output = match listed {
            // A machine without ldd has no C library either; its programs are static.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            outcome => outcome.map_err(|error| Error::internal(doing(), error))?,
        };
        let listed = String::from_utf8_lossy(&output.stdout).into_owned();
        if listed.contains("not found") {
            return Err(Error::internal(doing(), std::io::Error::other(listed)));
        }
        let libraries = listed.lines().filter_map(path).map(PathBuf::from).collect();
        Ok(Self { libraries })
    }

    /// All but the library called `name`.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.libraries
            .retain(|library| library.file_name() != Some(OsStr::new(name)));
        self
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.libraries.is_empty()
    }

    /// The layer that holds them: files of full version, and links by which programs know them.
    pub(super) fn layer(&self) -> Result<LayerFile, Error> {
        let mut contents = vec![LayerEntry::link("lib64", FOLDER)];
        for library in &self.libraries {
            let name = library.file_name().unwrap_or_default().to_string_lossy();
            let full = format!("{name}.0");
            contents.push(LayerEntry::file_of(&format!("{FOLDER}/{full}"), library));
            contents.push(LayerEntry::link(&format!("{FOLDER}/{name}"), &full));
        }
        LayerFile::of(contents)
    }
}

/// The path in a line of ldd: `name => path (address)`, or the loader's `path (address)`.
fn path(line: &str) -> Option<&str> {
    let line = line.split_once(" => ").map_or(line, |(_, found)| found);
    let (path, _) = line.trim().rsplit_once(" (")?;
    path.starts_with('/').then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_as_ldd_writes_them() {
        for (line, expected) in [
            (
                "\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)",
                Some("/lib/x86_64-linux-gnu/libc.so.6"),
            ),
            (
                "\t/lib64/ld-linux-x86-64.so.2 (0x00007f)",
                Some("/lib64/ld-linux-x86-64.so.2"),
            ),
            ("\tlinux-vdso.so.1 (0x00007f)", None),
            ("\tstatically linked", None),
        ] {
            assert_eq!(path(line), expected, "{line}");
        }
    }
}
