//! One path of an image.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// A file, folder or link of the image.
#[derive(Debug)]
pub(super) enum ImageEntry {
    Folder {
        mode: u32,
    },
    /// A copy.
    File {
        source: PathBuf,
        mode: u32,
    },
    Text(&'static str),
    /// A symbolic link to a path in the image.
    Link(PathBuf),
}

impl ImageEntry {
    /// A copy that is read only.
    pub(super) fn plain(source: impl Into<PathBuf>) -> Self {
        let (source, mode) = (source.into(), 0o644);
        Self::File { source, mode }
    }

    /// A copy that can be run.
    pub(super) fn program(source: impl Into<PathBuf>) -> Self {
        let (source, mode) = (source.into(), 0o755);
        Self::File { source, mode }
    }

    /// The source of a copy.
    pub(super) fn source(&self) -> Option<&Path> {
        match self {
            Self::File { source, .. } => Some(source),
            Self::Folder { .. } | Self::Text(_) | Self::Link(_) => None,
        }
    }

    /// Writes it to `target`, with its parent folders.
    pub(super) fn write(&self, target: &Path) -> Result<()> {
        if let Some(parent) = target.parent() {
            make_folder(parent, 0o755)?;
        }
        match self {
            Self::Folder { mode } => make_folder(target, *mode)?,
            Self::File { source, mode } => {
                fs::copy(source, target)
                    .with_context(|| format!("copying {}", source.display()))?;
                set_mode(target, *mode)?;
            }
            Self::Text(text) => {
                fs::write(target, text)?;
                set_mode(target, 0o644)?;
            }
            Self::Link(to) => symlink(to, target)?,
        }
        Ok(())
    }

    /// A text that differs whenever the output of `write` differs.
    pub(super) fn describe(&self) -> Result<String> {
        Ok(match self {
            Self::Folder { mode } => format!("folder {mode:o}"),
            // Files of packages are as old as their package; our own have their time of change.
            Self::File { source, mode } => {
                let found = fs::metadata(source)
                    .with_context(|| format!("looking at {}", source.display()))?;
                let (size, time, nanos) = (found.size(), found.mtime(), found.mtime_nsec());
                format!("{mode:o} {} {size} {time}.{nanos}", source.display())
            }
            Self::Text(text) => format!("text {text:?}"),
            Self::Link(to) => format!("link {}", to.display()),
        })
    }
}

/// Makes a folder and its parents; modes do not depend on the umask.
pub(super) fn make_folder(path: &Path, mode: u32) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        make_folder(parent, 0o755)?;
    }
    fs::create_dir(path).with_context(|| format!("making {}", path.display()))?;
    set_mode(path, mode)
}

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .with_context(|| format!("setting the mode of {}", path.display()))
}
