//! Writing of blobs and manifests into a layout.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::PathBuf;

use model::Error;

use super::files::failed;
use super::{ALGORITHMS, Layout};
use oci::{Digest, Hasher, Manifest};

/// The file that marks a folder as a layout.
pub(super) const MARK: &str = "oci-layout";
const VERSION: &[u8] = br#"{"imageLayoutVersion":"1.0.0"}"#;
/// Suffix of the file of an incomplete blob.
const PART: &str = ".part";
/// Units: bytes.
const BUFFER_BYTES: usize = 256 * 1024;

/// An incomplete blob, locked: other writers of it wait.
#[derive(Debug)]
pub(crate) struct Part {
    file: File,
    path: PathBuf,
    layout: Layout,
    digest: Digest,
    hasher: Hasher,
    size: u64,
}

impl Layout {
    /// The size of a complete blob.
    ///
    /// Blocking.
    pub(crate) fn blob_size(&self, digest: &Digest) -> Option<u64> {
        fs::metadata(self.path(digest)).ok().map(|it| it.len())
    }

    /// Starts or resumes the writing of a blob, in a layout that is [held](Self::hold); None if the blob is complete.
    ///
    /// Blocking. Errors: Internal and Conflict – the disk refuses it.
    pub(crate) fn part(&self, digest: &Digest) -> Result<Option<Part>, Error> {
        if self.blob_size(digest).is_some() {
            return Ok(None);
        }
        let whole = self.path(digest);
        let mut path = whole.clone().into_os_string();
        path.push(PART);
        let path = PathBuf::from(path);
        let open = || -> io::Result<File> {
            let mut options = OpenOptions::new();
            let options = options.read(true).write(true).create(true).truncate(false);
            let file = options.open(&path)?;
            file.lock()?;
            Ok(file)
        };
        let mut file = open().map_err(|e| failed(&path, e))?;
        // Another writer may have completed it meanwhile: then this is the complete file.
        if self.blob_size(digest).is_some() {
            return Ok(None);
        }
        let mut hasher = Hasher::new(digest.algorithm());
        let size = hash(&mut file, &mut hasher).map_err(|e| failed(&path, e))?;
        Ok(Some(Part {
            file,
            path,
            layout: self.clone(),
            digest: digest.clone(),
            hasher,
            size,
        }))
    }

    /// Stores a manifest, after its content.
    ///
    /// Blocking. Errors: Invalid – the digest is another; Internal and Conflict – the disk refuses it.
    pub(crate) fn put_manifest(&self, manifest: &Manifest) -> Result<(), Error> {
        if !manifest.digest.matches(&manifest.bytes) {
            let reason = "it is signed in the form of 2016, for which layouts have no place";
            return Err(Error::invalid(format!("image {self}"), reason));
        }
        if let Some(mut part) = self.part(&manifest.digest)? {
            part.restart()?;
            part.write(&manifest.bytes)?;
            part.finish()?;
        }
        Ok(())
    }

    /// Makes a layout of the folder, unless it is one.
    pub(super) fn make(&self) -> Result<(), Error> {
        let mark = self.folder.join(MARK);
        fs::create_dir_all(&self.folder).map_err(|e| failed(&self.folder, e))?;
        let _lock = self.lock()?;
        let make = || -> io::Result<bool> {
            let is_new = fs::read_dir(&self.folder)?.next().is_none();
            if is_new {
                fs::write(&mark, VERSION)?;
            }
            if mark.exists() {
                for algorithm in ALGORITHMS {
                    fs::create_dir_all(self.folder.join("blobs").join(algorithm.as_str()))?;
                }
            }
            Ok(mark.exists())
        };
        if make().map_err(|e| failed(&self.folder, e))? {
            return Ok(());
        }
        let reason = format!(
            "{} has files and is no image layout: name a new folder",
            self.folder.display()
        );
        Err(Error::invalid("image layout", reason))
    }

    /// Locks the index against other processes until the result is dropped.
    pub(super) fn lock(&self) -> Result<File, Error> {
        let lock = || -> io::Result<File> {
            let folder = File::open(&self.folder)?;
            folder.lock()?;
            Ok(folder)
        };
        lock().map_err(|e| failed(&self.folder, e))
    }
}

impl Part {
    /// Length so far. Units: bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The hasher of the bytes so far.
    pub(crate) fn hasher(&self) -> Hasher {
        self.hasher.clone()
    }

    /// Starts again from the first byte.
    ///
    /// Blocking. Errors: Internal.
    pub(crate) fn restart(&mut self) -> Result<(), Error> {
        let mut restart = || {
            self.file.set_len(0)?;
            self.file.rewind()
        };
        restart().map_err(|e| failed(&self.path, e))?;
        self.hasher = Hasher::new(self.digest.algorithm());
        self.size = 0;
        Ok(())
    }

    /// Blocking. Errors: Internal and Conflict – the disk refuses it.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file
            .write_all(bytes)
            .map_err(|e| failed(&self.path, e))?;
        self.hasher.update(bytes);
        self.size += bytes.len() as u64;
        Ok(())
    }

    /// Renames the complete blob to its digest.
    ///
    /// Blocking. Errors: Invalid – it has another digest, and is emptied; Internal and Conflict – the disk refuses it.
    pub(crate) fn finish(self) -> Result<(), Error> {
        let Self {
            file,
            path,
            layout,
            digest,
            hasher,
            ..
        } = self;
        if hasher.finish() != digest {
            // Useless for the next attempt.
            let _ = file.set_len(0);
            let reason = format!("{digest} for {layout}: its bytes have another digest");
            return Err(Error::invalid("blob", reason));
        }
        let name = || -> io::Result<()> {
            file.sync_data()?;
            fs::rename(&path, layout.path(&digest))
        };
        name().map_err(|e| failed(&path, e))
    }
}

/// Hashes the rest of the file; its size.
fn hash(file: &mut File, hasher: &mut Hasher) -> io::Result<u64> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut size = 0;
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(size);
        }
        hasher.update(&buffer[..count]);
        size += count as u64;
    }
}
