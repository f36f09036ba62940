//! Disk space of folders.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Unit of `st_blocks`. Source: stat(3type).
const BLOCK: u64 = 512;

/// Bytes that the files below `folder` take on disk; those with several names count once.
pub(super) fn allocated(folder: &Path) -> Result<u64> {
    let (mut waiting, mut seen, mut bytes) = (vec![folder.to_owned()], HashSet::new(), 0);
    while let Some(folder) = waiting.pop() {
        for entry in
            fs::read_dir(&folder).with_context(|| format!("listing {}", folder.display()))?
        {
            let entry = entry?;
            let metadata = match entry.metadata() {
                // Servers remove files meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                metadata => metadata?,
            };
            if metadata.is_dir() {
                waiting.push(entry.path());
            } else if seen.insert((metadata.dev(), metadata.ino())) {
                bytes += metadata.blocks() * BLOCK;
            }
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::ScratchFolder;

    #[test]
    fn files_below_count_once() {
        let scratch = ScratchFolder::new().unwrap();
        let folder = scratch.path().join("a/b");
        fs::create_dir_all(&folder).unwrap();
        assert_eq!(allocated(scratch.path()).unwrap(), 0);
        fs::write(folder.join("file"), vec![1; 100_000]).unwrap();
        let once = allocated(scratch.path()).unwrap();
        assert!(once > 0);
        fs::hard_link(folder.join("file"), folder.join("other")).unwrap();
        assert_eq!(allocated(scratch.path()).unwrap(), once);
        assert!(allocated(&folder.join("absent")).is_err());
    }
}
