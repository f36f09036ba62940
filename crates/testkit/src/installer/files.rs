//! Files that the installer writes, and its failures.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

/// Failure of a run: the text of its last line.
#[derive(Debug)]
pub struct InstallerFailure(pub String);

/// Failure of an installer run.
pub(super) fn fail<T>(text: impl Into<String>) -> Result<T, InstallerFailure> {
    Err(InstallerFailure(text.into()))
}

/// Writes `name` below `folder`, making the folders between.
pub(super) fn write(folder: &Path, name: &str, content: &[u8]) -> Result<(), InstallerFailure> {
    let path = folder.join(name);
    let parent = path.parent().unwrap_or(folder);
    fs::create_dir_all(parent)
        .and_then(|()| fs::write(&path, content))
        .map_err(|error| file_failure("write", &path, &error))
}

pub(super) fn file_failure(verb: &str, path: &Path, error: &io::Error) -> InstallerFailure {
    InstallerFailure(format!("failed to {verb} {}: {error}", path.display()))
}

/// Text of `value` as YAML.
pub(super) fn yaml(value: &Value) -> Result<String, InstallerFailure> {
    serde_yaml::to_string(value)
        .map_err(|error| InstallerFailure(format!("failed to print YAML: {error}")))
}
