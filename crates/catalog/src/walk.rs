//! Which files of a folder hold documents, and in which order.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::ignore::{FILE_NAME, Ignore};
use crate::{Origin, Problem, Problems, Rule};

/// How many files a catalog may have: so many names take some 100 MB. The largest public catalogs have a few thousand.
const MAX_FILES: usize = 1_000_000;

/// What a walk has found.
#[derive(Debug, Default)]
pub struct Walk {
    /// Paths inside the folder, in the order in which they are read.
    pub files: Vec<PathBuf>,
    /// What cannot be a file with documents.
    pub problems: Problems,
}

/// Finds the files of the catalog in `folder`: those at every depth, also hidden ones, but for what `.indexignore` leaves
/// out. The names of each folder come in the order of their bytes; a folder comes where its name does.
///
/// Links are followed to files, never to folders.
pub fn walk(folder: &Path) -> Walk {
    let mut walker = Walker {
        root: folder,
        ignore: Ignore::default(),
        walk: Walk::default(),
    };
    walker.run();
    let Walker {
        ignore, mut walk, ..
    } = walker;
    walk.files.retain(|path| !ignore.fits(&parts(path)));
    walk.problems.0.retain(|problem| {
        let path = problem.origin.as_ref().map(|origin| &*origin.file);
        path.is_none_or(|path| is_ignore_file(path) || !ignore.fits(&parts(path)))
    });
    walk
}

struct Walker<'a> {
    root: &'a Path,
    ignore: Ignore,
    walk: Walk,
}

impl Walker<'_> {
    fn run(&mut self) {
        // What is still to be seen, the next one last.
        let mut ahead = vec![(PathBuf::new(), true)];
        while let Some((path, is_folder)) = ahead.pop() {
            let done = if is_folder {
                entries(self.root, &path).map(|entries| ahead.extend(entries.into_iter().rev()))
            } else {
                self.file(&path)
            };
            if let Err(error) = done {
                self.problem(&path, format!("it cannot be read: {error}"));
            }
        }
    }

    fn file(&mut self, path: &Path) -> io::Result<()> {
        let full = self.root.join(path);
        let kind = fs::metadata(&full)?;
        if is_ignore_file(path) {
            let folder = path.parent().map(parts).unwrap_or_default();
            self.ignore.add(&folder, &fs::read(full)?);
        } else if kind.is_file() && self.walk.files.len() < MAX_FILES {
            self.walk.files.push(path.to_owned());
        } else if kind.is_file() {
            let text = format!("a catalog has at most {MAX_FILES} files; this one is too many");
            self.problem(path, text);
        } else if kind.is_dir() {
            let text = "it is a link to a folder; only links to files are followed".to_owned();
            self.problem(path, text);
        } else {
            self.problem(path, "it is neither a file nor a folder".to_owned());
        }
        Ok(())
    }

    fn problem(&mut self, path: &Path, text: String) {
        self.walk.problems.0.push(Problem {
            origin: Some(Origin::new(path, 1)),
            package: String::new(),
            rule: Rule::Readable,
            text,
        });
    }
}

/// What is in a folder, in order, and whether it is a folder too.
fn entries(root: &Path, folder: &Path) -> io::Result<Vec<(PathBuf, bool)>> {
    let entries = fs::read_dir(root.join(folder))?.map(|entry| {
        let entry = entry?;
        let is_folder = entry.file_type()?.is_dir();
        Ok((folder.join(entry.file_name()), is_folder))
    });
    let mut entries = entries.collect::<io::Result<Vec<_>>>()?;
    entries.sort_unstable();
    Ok(entries)
}

fn is_ignore_file(path: &Path) -> bool {
    path.file_name() == Some(OsStr::new(FILE_NAME))
}

fn parts(path: &Path) -> Vec<&[u8]> {
    path.iter().map(OsStr::as_encoded_bytes).collect()
}
