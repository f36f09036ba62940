//! Locates the files of a set: in folders, or as members of a bundle, which are read at their place in it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::Error;

use crate::archive::name::{file_name, parse_file_name};
use crate::archive::read::{FilePlace, unreadable};
use crate::archive::walk::walk;

/// Levels of folders that are searched.
const DEPTH: usize = 16;
/// First member of a bundle, and the folder of its archives.
const BUNDLE: &str = "manifest.json";
const ARCHIVES: &str = "archives";

/// The files of one sequence; where none is called as ours are, all tar files.
#[derive(Debug)]
pub(in crate::archive) struct Located {
    /// By number, or by name.
    files: Vec<SetFile>,
    sequence: Option<u64>,
}

/// A file of a set: a whole file, or a member of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetFile {
    /// Its path; that of a member is below the bundle's.
    pub path: Arc<Path>,
    /// Its bytes.
    pub place: FilePlace,
}

impl Located {
    /// In a folder and those below, next to a file, or in a bundle, also by the path of a member or its folder.
    ///
    /// Errors: NotFound; Invalid – several sequences, or a file twice.
    pub(in crate::archive) fn find(path: &Path) -> Result<Self, Error> {
        let metadata = match path.metadata() {
            Ok(metadata) => metadata,
            Err(error) => match bundle_of(path) {
                Some((bundle, below)) => return Self::of(path, members(bundle, below)?),
                None => return Err(unreadable(path, error)),
            },
        };
        if metadata.is_dir() {
            let found = search(path, DEPTH).map_err(|e| unreadable(path, e))?;
            return Self::of(path, SetFile::all(found)?);
        }
        let Some((sequence, _)) = named(path) else {
            let members = members(path, Path::new(ARCHIVES))?;
            if !members.is_empty() {
                return Self::of(path, members);
            }
            return Self::of(path, SetFile::all(vec![path.to_owned()])?);
        };
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let mut beside = search(folder, 0).map_err(|e| unreadable(folder, e))?;
        beside.retain(|other| named(other).is_some_and(|(other, _)| other == sequence));
        Self::of(path, SetFile::all(beside)?)
    }

    fn of(path: &Path, mut files: Vec<SetFile>) -> Result<Self, Error> {
        if files.is_empty() {
            return Err(Error::invalid(
                path.display().to_string(),
                format!("no archives found in directory {}", path.display()),
            ));
        }
        let sequences = files.iter().filter_map(|it| Some(named(&it.path)?.0));
        let sequences: BTreeSet<u64> = sequences.collect();
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
            files.retain(|it| named(&it.path).is_some());
        }
        files.sort_by_key(|it| (named(&it.path), it.path.clone()));
        let mut pairs = files.windows(2);
        let is_twice =
            |two: &&[SetFile]| sequence.is_some() && named(&two[0].path) == named(&two[1].path);
        if let Some([one, other]) = pairs.find(is_twice) {
            let reason = format!("the same file is {} as well", other.path.display());
            return Err(Error::invalid(one.path.display().to_string(), reason));
        }
        Ok(Self { files, sequence })
    }

    pub(in crate::archive) fn files(&self) -> impl Iterator<Item = &SetFile> {
        self.files.iter()
    }

    /// Errors: Invalid – a number is left out.
    pub(in crate::archive) fn check_numbers(&self) -> Result<(), Error> {
        let Some(sequence) = self.sequence else {
            return Ok(());
        };
        for (number, file) in self.files.iter().enumerate() {
            let name = file_name(sequence, number);
            if file
                .path
                .file_name()
                .is_none_or(|other| other != name.as_str())
            {
                return Err(missing(&name));
            }
        }
        Ok(())
    }

    /// Errors: Invalid – the names have another one.
    pub(in crate::archive) fn check_sequence(&self, sequence: u64) -> Result<(), Error> {
        match (self.sequence, self.files.first()) {
            (Some(named), Some(file)) if named != sequence => {
                let reason =
                    format!("it is called as sequence {named}, its metadata says {sequence}");
                Err(Error::invalid(file.path.display().to_string(), reason))
            }
            _ => Ok(()),
        }
    }

    /// Errors: Invalid – it is not there.
    pub(in crate::archive) fn named(&self, name: &str) -> Result<&SetFile, Error> {
        let has_name = |file: &&SetFile| file.path.file_name().is_some_and(|other| other == name);
        match (self.files.iter().find(has_name), &self.files[..]) {
            (Some(file), _) => Ok(file),
            // One that was given another name.
            (None, [only]) if self.sequence.is_none() => Ok(only),
            (None, _) => Err(missing(name)),
        }
    }
}

impl SetFile {
    /// Whole files.
    ///
    /// Errors: NotFound; Internal – one cannot be read.
    pub(in crate::archive) fn all(paths: Vec<PathBuf>) -> Result<Vec<Self>, Error> {
        let paths = paths.into_iter().map(Arc::<Path>::from);
        paths.map(Self::whole).collect()
    }

    fn whole(path: Arc<Path>) -> Result<Self, Error> {
        let size = path.metadata().map_err(|e| unreadable(&path, e))?.len();
        let place = FilePlace {
            file: path.clone(),
            offset: 0,
            size,
        };
        Ok(Self { path, place })
    }

    /// Place of a part of it.
    pub(in crate::archive) fn part(&self, offset: u64, size: u64) -> FilePlace {
        FilePlace {
            file: self.place.file.clone(),
            offset: self.place.offset.saturating_add(offset),
            size,
        }
    }
}

/// The file that a path leads through, and the rest of the path: a folder of members.
fn bundle_of(path: &Path) -> Option<(&Path, &Path)> {
    let bundle = path.ancestors().skip(1).find(|it| it.is_file())?;
    let below = path.strip_prefix(bundle).ok()?;
    let folder = named(below).and_then(|_| below.parent());
    Some((bundle, folder.unwrap_or(below)))
}

/// The archives below a folder of a bundle; none in other files.
fn members(bundle: &Path, below: &Path) -> Result<Vec<SetFile>, Error> {
    let whole = SetFile::whole(bundle.into())?;
    let mut files = Vec::new();
    let mut is_first = true;
    walk(&whole, |found| {
        if std::mem::take(&mut is_first) && found.path != BUNDLE {
            return Ok(false);
        }
        let path = Path::new(&found.path);
        if path.starts_with(below) && path.extension().is_some_and(|it| it == "tar") {
            files.push(SetFile {
                path: bundle.join(&found.path).into(),
                place: whole.part(found.offset, found.size),
            });
        }
        Ok(true)
    })?;
    Ok(files)
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
