//! Garbage collection of a layout: content that no listed image needs is removed.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;

use model::Error;

use super::files::failed;
use super::write::MARK;
use super::{Index, Layout};
use oci::{Digest, Kind};

impl Layout {
    /// Makes a layout of the folder, unless it is one. Until the result is dropped, no sweep removes content that is not
    /// listed yet.
    ///
    /// Blocking. Errors: Invalid – the folder has something else; Internal and Conflict – the disk refuses it.
    pub(crate) fn hold(&self) -> Result<File, Error> {
        self.make()?;
        let mark = self.folder.join(MARK);
        let hold = || -> io::Result<File> {
            let file = File::open(&mark)?;
            file.lock_shared()?;
            Ok(file)
        };
        hold().map_err(|e| failed(&mark, e))
    }

    /// Removes content that no listed image needs, unless another process writes to the layout now.
    ///
    /// Blocking. Errors: NotFound and Invalid – an image of the list is missing or damaged: nothing is removed then; Internal –
    /// the disk refuses it.
    pub(crate) fn sweep(&self) -> Result<(), Error> {
        let mark = self.folder.join(MARK);
        let file = match File::open(&mark) {
            // Nothing was ever written there.
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            file => file.map_err(|e| failed(&mark, e))?,
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(()),
            Err(TryLockError::Error(e)) => return Err(failed(&mark, e)),
        }
        let needed = self.needed()?;
        for algorithm in super::ALGORITHMS {
            let folder = self.folder.join("blobs").join(algorithm.as_str());
            let is_needed = |name: &str| {
                let digest = format!("{}:{name}", algorithm.as_str());
                digest.parse().is_ok_and(|it: Digest| needed.contains(&it))
            };
            remove(&folder, is_needed).map_err(|e| failed(&folder, e))?;
        }
        Ok(())
    }

    /// Digests of all content of the listed images.
    fn needed(&self) -> Result<BTreeSet<Digest>, Error> {
        let index = Index::read_or_empty(&self.folder)?;
        let mut next: Vec<_> = index.matching(None).cloned().collect();
        let mut needed = BTreeSet::new();
        while let Some(descriptor) = next.pop() {
            if !needed.insert(descriptor.digest.clone()) {
                continue;
            }
            let manifest = match self.manifest(&descriptor.digest) {
                // A part that was never carried.
                Err(Error::NotFound { .. }) => continue,
                manifest => manifest?,
            };
            needed.extend(manifest.blobs().map(|blob| blob.digest.clone()));
            if let Kind::Index { manifests } = manifest.kind {
                next.extend(manifests);
            }
        }
        Ok(needed)
    }
}

/// Removes the files of the folder with other names.
fn remove(folder: &Path, is_needed: impl Fn(&str) -> bool) -> io::Result<()> {
    let files = match fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        files => files?,
    };
    for file in files {
        let file = file?;
        if !file.file_name().to_str().is_some_and(&is_needed) {
            fs::remove_file(file.path())?;
        }
    }
    Ok(())
}
