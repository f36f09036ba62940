//! Catalog folders.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Component, Path, PathBuf};
use std::process;

use super::{CatalogFormat, document, in_order};
use crate::Document;

/// Attempts at a free name: killed processes leave partial folders, and process ids repeat in containers.
const MAX_LEFT: usize = 100;

/// A folder in progress. It is invisible before [`CatalogWriter::finish`].
#[derive(Debug)]
pub struct CatalogWriter {
    folder: PathBuf,
    format: CatalogFormat,
    partial: PathBuf,
    is_finished: bool,
}

impl CatalogWriter {
    /// Starts a catalog in a missing or empty folder.
    ///
    /// Errors: the folder is not empty, or cannot be created.
    pub fn create(folder: &Path, format: CatalogFormat) -> io::Result<Self> {
        let is_taken = match fs::read_dir(folder) {
            Ok(mut entries) => entries.next().is_some(),
            Err(e) if e.kind() == io::ErrorKind::NotFound => false,
            Err(e) => return Err(e),
        };
        let wrong = |kind, why: &str| io::Error::new(kind, format!("{}: {why}", folder.display()));
        if is_taken {
            return Err(wrong(
                io::ErrorKind::AlreadyExists,
                "the folder is not empty; name a new one",
            ));
        }
        let Some(name) = folder.file_name() else {
            return Err(wrong(io::ErrorKind::InvalidInput, "not a folder name"));
        };
        durable::create_parent(folder)?;
        Ok(Self {
            folder: folder.to_owned(),
            format,
            partial: partial(folder, name)?,
            is_finished: false,
        })
    }

    /// Writes the documents of one package; "" for those without one.
    ///
    /// Errors: the name is no folder name or repeated, or writing fails.
    pub fn package(&mut self, name: &str, documents: &[Document]) -> io::Result<()> {
        let folder = if name.is_empty() {
            self.partial.clone()
        } else {
            check_name(name)?;
            let folder = self.partial.join(name);
            fs::create_dir(&folder)?;
            folder
        };
        let file = folder
            .join("catalog")
            .with_extension(self.format.extension());
        let mut out = BufWriter::new(File::create_new(file)?);
        for it in in_order(documents) {
            document(&it.json, self.format, &mut out)?;
        }
        out.into_inner()?.sync_all()?;
        durable::sync_folder(&folder)
    }

    /// Atomic replace: renames the partial folder to its final name.
    ///
    /// Errors: the name is taken by now, or the rename fails.
    pub fn finish(mut self) -> io::Result<()> {
        // Renamed after every file and folder is synced: the final name never leads to truncated or missing files.
        // Replaces an empty folder.
        durable::sync_folder(&self.partial)?;
        fs::rename(&self.partial, &self.folder)?;
        self.is_finished = true;
        durable::sync_parent(&self.folder)
    }
}

/// Removes an unfinished folder.
impl Drop for CatalogWriter {
    fn drop(&mut self) {
        if !self.is_finished {
            // Best effort: leftovers end in `.partial`.
            let _ = fs::remove_dir_all(&self.partial);
        }
    }
}

/// Creates a new partial folder beside `folder`.
fn partial(folder: &Path, name: &OsStr) -> io::Result<PathBuf> {
    let mut number = 0;
    loop {
        let mut partial = OsString::from(".");
        partial.push(name);
        partial.push(format!(".{}-{number}.partial", process::id()));
        let partial = folder.with_file_name(partial);
        match fs::create_dir(&partial) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && number < MAX_LEFT => number += 1,
            made => return made.map(|()| partial),
        }
    }
}

fn check_name(name: &str) -> io::Result<()> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(part)), None) if part == name => Ok(()),
        _ => {
            let why = format!("the name {name:?} of a package cannot be that of a folder");
            Err(io::Error::new(io::ErrorKind::InvalidInput, why))
        }
    }
}
