//! Sweep of the files that crashed processes left.

use std::fs;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use model::ids::ClusterId;

use crate::atomic::{TEMPORARY, is_temporary, unless_absent};
use crate::stale::is_stale;

/// Prefix of the folder of a deleted cluster until it is removed.
pub(crate) const DELETED: &str = ".old-";
/// Bound of the recursion below a cluster's folder: `manifests/<folder>/<file>`, with a margin.
pub(crate) const MAX_DEPTH: usize = 6;

/// Removes stale files of crashed processes. Younger temporary files may be in use by another replica; the folder of a
/// deleted cluster keeps its age, so that several replicas may remove it concurrently.
pub(crate) fn sweep(root: &Path, now: SystemTime) -> io::Result<()> {
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            continue;
        };
        let path = entry.path();
        let swept = if name.starts_with(DELETED) {
            sweep_deleted(&entry, now)
        } else if name.starts_with(TEMPORARY) {
            sweep_temporary(&entry, now)
        } else if name.parse::<ClusterId>().is_ok() {
            sweep_folder(&path, now, 0)
        } else {
            Ok(())
        };
        // Another replica may sweep at the same time, or delete the cluster.
        unless_absent(swept)?;
    }
    Ok(())
}

fn sweep_folder(folder: &Path, now: SystemTime, depth: usize) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let swept = if entry.file_type()?.is_dir() && depth < MAX_DEPTH {
            sweep_folder(&entry.path(), now, depth + 1)
        } else if is_temporary(&entry.file_name()) {
            sweep_temporary(&entry, now)
        } else {
            Ok(())
        };
        unless_absent(swept)?;
    }
    Ok(())
}

fn sweep_temporary(entry: &fs::DirEntry, now: SystemTime) -> io::Result<()> {
    let metadata = entry.metadata()?;
    if metadata.is_file() && is_stale(&metadata, now) {
        fs::remove_file(entry.path())?;
    }
    Ok(())
}

fn sweep_deleted(entry: &fs::DirEntry, now: SystemTime) -> io::Result<()> {
    if is_stale(&entry.metadata()?, now) {
        fs::remove_dir_all(entry.path())?;
    }
    Ok(())
}
