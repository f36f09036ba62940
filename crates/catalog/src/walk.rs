//! Walks the files of a catalog. Source: operator-registry, `alpha/declcfg/load.go`, `walkFiles`.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::ignore::{FILE_NAME, Ignore};
use crate::{CatalogProblem, CatalogProblems, DocumentOrigin, Rule};

/// Most files in a catalog: so many names take some 100 MB. The largest public catalogs have a few thousand.
const MAX_FILES: usize = 1_000_000;
/// Largest `.indexignore`; every pattern is matched with every file. Units: bytes.
const MAX_PATTERNS: u64 = 1 << 20;

/// Result of a walk.
#[derive(Debug, Default)]
pub struct FolderWalk {
    /// Paths inside the folder, in reading order.
    pub files: Vec<PathBuf>,
    /// Errors of entries that cannot be documents.
    pub problems: CatalogProblems,
}

/// Lists the files of the catalog in `folder`, at every depth, hidden ones too, except those that `.indexignore`
/// excludes. Names are sorted by bytes; a folder is descended into where its name sorts. Symlinks to files are
/// followed, never those to folders.
pub fn walk(folder: &Path) -> FolderWalk {
    let mut walker = Walker {
        root: folder,
        ignore: Ignore::default(),
        walk: FolderWalk::default(),
    };
    walker.run();
    let Walker {
        ignore, mut walk, ..
    } = walker;
    walk.files.retain(|path| !ignore.matches(&parts(path)));
    walk.problems.0.retain(|problem| {
        let path = problem.origin.as_ref().map(|origin| &*origin.file);
        path.is_none_or(|path| is_ignore_file(path) || !ignore.matches(&parts(path)))
    });
    walk
}

struct Walker<'a> {
    root: &'a Path,
    ignore: Ignore,
    walk: FolderWalk,
}

impl Walker<'_> {
    fn run(&mut self) {
        // Stack of pending entries, the next one last.
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
        if kind.is_file() && is_ignore_file(path) {
            return self.patterns(path, File::open(full)?);
        }
        if kind.is_file() && self.walk.files.len() < MAX_FILES {
            self.walk.files.push(path.to_owned());
        } else if kind.is_file() {
            let text = format!("a catalog has at most {MAX_FILES} files; this one is too many");
            self.problem(path, text);
        } else if kind.is_dir() {
            let text = "symlink to a folder; only symlinks to files are followed".to_owned();
            self.problem(path, text);
        } else {
            self.problem(path, "neither a file nor a folder".to_owned());
        }
        Ok(())
    }

    fn patterns(&mut self, path: &Path, file: File) -> io::Result<()> {
        let mut text = Vec::new();
        file.take(MAX_PATTERNS + 1).read_to_end(&mut text)?;
        if text.len() as u64 > MAX_PATTERNS {
            let text = format!("patterns take at most {} KiB", MAX_PATTERNS >> 10);
            self.problem(path, text);
        } else {
            let folder = path.parent().map(parts).unwrap_or_default();
            self.ignore.add(&folder, &text);
        }
        Ok(())
    }

    fn problem(&mut self, path: &Path, text: String) {
        self.walk.problems.0.push(CatalogProblem {
            origin: Some(DocumentOrigin::new(path, 1)),
            package: String::new(),
            rule: Rule::Readable,
            text,
        });
    }
}

/// Sorted entries of a folder, and whether each is a folder.
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    fn folder(files: &[(&str, &str)]) -> TempDir {
        let folder = TempDir::new().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn found(folder: &TempDir) -> (Vec<String>, Vec<String>) {
        let walk = walk(folder.path());
        let name = |path: &Path| path.to_str().unwrap().to_owned();
        let problems = walk.problems.0.iter();
        (
            walk.files.iter().map(|path| name(path)).collect(),
            problems
                .map(|it| name(&it.origin.as_ref().unwrap().file))
                .collect(),
        )
    }

    #[test]
    fn files_are_sorted_by_bytes_of_their_names() {
        let folder = folder(&[
            ("b", ""),
            ("a.b", ""),
            ("a/z", ""),
            ("a/B/c", ""),
            ("a-b", ""),
            (".hidden/.x", ""),
            ("Z", ""),
            ("ä", ""),
        ]);
        let (files, problems) = found(&folder);
        assert_eq!(
            files,
            [".hidden/.x", "Z", "a/B/c", "a/z", "a-b", "a.b", "b", "ä"]
        );
        assert!(problems.is_empty());
    }

    #[test]
    fn an_empty_folder_is_an_empty_catalog() {
        assert_eq!(found(&folder(&[])), (Vec::new(), Vec::new()));
    }

    #[test]
    fn ignored_files_are_skipped_even_if_unreadable() {
        let folder = folder(&[
            (".indexignore", "*.md\n/only-here\nbroken\n"),
            ("README.md", ""),
            ("only-here", ""),
            ("a/only-here", ""),
            ("a/.indexignore", "*\n!keep\n"),
            ("a/x/y", ""),
            ("a/x/keep", ""),
        ]);
        symlink("nowhere", folder.path().join("broken")).unwrap();
        let (files, problems) = found(&folder);
        assert_eq!(files, ["a/x/keep"]);
        assert!(problems.is_empty());
    }

    #[test]
    fn a_folder_called_like_the_ignore_file_is_a_folder() {
        let folder = folder(&[(".indexignore/x", "y"), ("y", "")]);
        assert_eq!(found(&folder).0, [".indexignore/x", "y"]);
    }

    #[test]
    fn symlinks_are_followed_to_files_only() {
        let folder = folder(&[("a", ""), ("b/c", "")]);
        symlink("a", folder.path().join("good")).unwrap();
        symlink("b", folder.path().join("to-a-folder")).unwrap();
        symlink("x", folder.path().join("to-nothing")).unwrap();
        symlink("/dev/null", folder.path().join("to-a-device")).unwrap();
        symlink("x", folder.path().join("b/.indexignore")).unwrap();
        let (files, problems) = found(&folder);
        assert_eq!(files, ["a", "b/c", "good"]);
        assert_eq!(
            problems,
            ["b/.indexignore", "to-a-device", "to-a-folder", "to-nothing"]
        );
    }

    #[test]
    fn pattern_files_are_bounded() {
        let long = "x\n".repeat(600_000);
        let folder = folder(&[("a", ""), ("b/.indexignore", &long), ("c/x", "")]);
        symlink("/dev/zero", folder.path().join(".indexignore")).unwrap();
        symlink("../b", folder.path().join("c/.indexignore")).unwrap();
        let (files, problems) = found(&folder);
        assert_eq!(files, ["a", "c/x"]);
        assert_eq!(
            problems,
            [".indexignore", "b/.indexignore", "c/.indexignore"]
        );
    }

    #[test]
    fn a_folder_may_be_a_link_itself_but_not_a_file() {
        let real = folder(&[("a", "")]);
        let other = TempDir::new().unwrap();
        symlink(real.path(), other.path().join("link")).unwrap();
        assert_eq!(walk(&other.path().join("link")).files, [Path::new("a")]);
        assert_eq!(walk(&real.path().join("a")).problems.0.len(), 1);
        assert_eq!(walk(&real.path().join("b")).problems.0.len(), 1);
    }
}
