//! What one path of an image is.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// One thing in the image.
#[derive(Debug)]
pub(super) enum Entry {
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

impl Entry {
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

    /// What it is a copy of.
    pub(super) fn source(&self) -> Option<&Path> {
        match self {
            Self::File { source, .. } => Some(source),
            Self::Folder { .. } | Self::Text(_) | Self::Link(_) => None,
        }
    }

    /// Puts it at `target`, with the folders above.
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

    /// Another text when what `write` would write is another thing.
    pub(super) fn describe(&self) -> Result<String> {
        Ok(match self {
            Self::Folder { mode } => format!("folder {mode:o}"),
            // Files of packages are as old as their package; own ones are written when they change.
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

/// Makes a folder and those above; modes are the same whatever this user's mask is.
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
