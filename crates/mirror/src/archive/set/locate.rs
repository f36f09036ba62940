//! Locates the files of a set.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::Error;

use crate::archive::name::{file_name, parse_file_name};
use crate::archive::read::unreadable;

/// Levels of folders that are searched.
const DEPTH: usize = 16;

/// The files of one sequence; where none is called as ours are, all tar files.
#[derive(Debug)]
pub(in crate::archive) struct Located {
    /// By number, or by name.
    files: Vec<Arc<Path>>,
    sequence: Option<u64>,
}

impl Located {
    /// In a folder and those below, or next to a file.
    ///
    /// Errors: NotFound; Invalid – several sequences, or a file twice.
    pub(in crate::archive) fn find(path: &Path) -> Result<Self, Error> {
        let metadata = path.metadata().map_err(|e| unreadable(path, e))?;
        if metadata.is_dir() {
            return Self::of(path, search(path, DEPTH).map_err(|e| unreadable(path, e))?);
        }
        let Some((sequence, _)) = named(path) else {
            return Self::of(path, vec![path.to_owned()]);
        };
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let mut beside = search(folder, 0).map_err(|e| unreadable(folder, e))?;
        beside.retain(|other| named(other).is_some_and(|(other, _)| other == sequence));
        Self::of(path, beside)
    }

    fn of(path: &Path, mut files: Vec<PathBuf>) -> Result<Self, Error> {
        if files.is_empty() {
            return Err(Error::invalid(
                path.display().to_string(),
                format!("no archives found in directory {}", path.display()),
            ));
        }
        let sequences: BTreeSet<u64> = files.iter().filter_map(|it| Some(named(it)?.0)).collect();
        if sequences.len() > 1 {
            let all: Vec<_> = sequences.iter().map(u64::to_string).collect();
            let reason = format!(
                "it has archives of the sequences {}: name a file of one of them",
                all.join(", ")
            );
            return Err(Error::invalid(path.display().to_string(), reason));
        }
        let sequence = sequences.into_iter().next();
        if sequence.is_some() {
            files.retain(|it| named(it).is_some());
        }
        files.sort_by_key(|it| (named(it), it.clone()));
        let mut pairs = files.windows(2);
        let is_twice = |two: &&[PathBuf]| sequence.is_some() && named(&two[0]) == named(&two[1]);
        if let Some([one, other]) = pairs.find(is_twice) {
            let reason = format!("the same file is {} as well", other.display());
            return Err(Error::invalid(one.display().to_string(), reason));
        }
        Ok(Self {
            files: files.into_iter().map(Arc::from).collect(),
            sequence,
        })
    }

    pub(in crate::archive) fn paths(&self) -> impl Iterator<Item = &Arc<Path>> {
        self.files.iter()
    }

    /// Errors: Invalid – a number is left out.
    pub(in crate::archive) fn check_numbers(&self) -> Result<(), Error> {
        let Some(sequence) = self.sequence else {
            return Ok(());
        };
        for (number, path) in self.files.iter().enumerate() {
            let name = file_name(sequence, number);
            if path.file_name().is_none_or(|other| other != name.as_str()) {
                return Err(missing(&name));
            }
        }
        Ok(())
    }

    /// Errors: Invalid – the names have another one.
    pub(in crate::archive) fn check_sequence(&self, sequence: u64) -> Result<(), Error> {
        match (self.sequence, self.files.first()) {
            (Some(named), Some(path)) if named != sequence => {
                let reason =
                    format!("it is called as sequence {named}, its metadata says {sequence}");
                Err(Error::invalid(path.display().to_string(), reason))
            }
            _ => Ok(()),
        }
    }

    /// Errors: Invalid – it is not there.
    pub(in crate::archive) fn named(&self, name: &str) -> Result<&Arc<Path>, Error> {
        let has_name = |path: &&Arc<Path>| path.file_name().is_some_and(|other| other == name);
        match (self.files.iter().find(has_name), &self.files[..]) {
            (Some(path), _) => Ok(path),
            // One that was given another name.
            (None, [only]) if self.sequence.is_none() => Ok(only),
            (None, _) => Err(missing(name)),
        }
    }
}

fn missing(name: &str) -> Error {
    Error::invalid(name, "this file of the set is missing")
}

fn named(path: &Path) -> Option<(u64, usize)> {
    parse_file_name(path.file_name()?.to_str()?)
}

/// Tar files below a folder. Links to folders are not followed, as the peer does not.
fn search(folder: &Path, depth: usize) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let kind = fs::symlink_metadata(&path)?.file_type();
        if kind.is_dir() && depth > 0 {
            found.extend(search(&path, depth - 1)?);
        } else if !kind.is_dir() && path.extension().is_some_and(|it| it == "tar") && path.is_file()
        {
            found.push(path);
        }
    }
    Ok(found)
}
