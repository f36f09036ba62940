//! Local files, which the caller reads: this crate has no file access.

use std::fmt;

/// Units: bytes. All local files of one document; a machine-config server carries far less.
pub const MAX_LOCAL_BYTES: usize = 64 * 1024 * 1024;

/// Files, links and directories of all trees of one document.
pub const MAX_TREE_ENTRIES: usize = 20_000;

/// A folder of local files. Paths are relative to it, have slashes, and neither `.` nor `..`; the folder itself is
/// the empty path.
pub trait LocalFiles: fmt::Debug {
    /// Reads a file.
    ///
    /// Errors: a message without the path. The file is missing, is no regular file, is outside of the folder
    /// (through a link), or has more than `limit` bytes.
    fn read(&self, path: &str, limit: usize) -> Result<Vec<u8>, String>;

    /// Lists all files, links and directories below a directory in any order, without following links.
    ///
    /// Errors: a message without the path. The directory is missing, is none, is outside of the folder (through a
    /// link), or has more than `limit` entries.
    fn list(&self, path: &str, limit: usize) -> Result<Vec<LocalEntry>, String>;
}

/// An entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalEntry {
    /// Path from the tree's directory.
    pub path: String,
    /// Its type.
    pub kind: LocalEntryKind,
}

/// The type of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocalEntryKind {
    /// A directory.
    Directory,
    /// A regular file.
    File {
        /// Whether anybody may execute it.
        is_executable: bool,
    },
    /// A symbolic link.
    Link {
        /// Its target as it is stored.
        target: String,
    },
    /// A device, a socket, a pipe.
    Other,
}

/// The folder of one translation, with the rest of its bounds.
pub(super) struct FileReader<'f> {
    files: Option<&'f dyn LocalFiles>,
    bytes: usize,
    entries: usize,
}

impl<'f> FileReader<'f> {
    pub(super) fn new(files: Option<&'f dyn LocalFiles>) -> Self {
        Self {
            files,
            bytes: MAX_LOCAL_BYTES,
            entries: MAX_TREE_ENTRIES,
        }
    }

    /// Reads a file by the path in the document.
    ///
    /// Errors: the message.
    pub(super) fn read(&mut self, path: &str) -> Result<Vec<u8>, String> {
        let files = self.files()?;
        let bytes = files
            .read(&inside(path)?, self.bytes)
            .map_err(|reason| format!("{path:?}: {reason}"))?;
        let rest = self.bytes.checked_sub(bytes.len());
        self.bytes = rest.ok_or_else(|| {
            format!("{path:?}: all local files together may have {MAX_LOCAL_BYTES} bytes")
        })?;
        Ok(bytes)
    }

    /// Lists a tree by the path in the document; parents before their children, otherwise sorted by name.
    ///
    /// Errors: the message.
    pub(super) fn list(&mut self, path: &str) -> Result<Vec<LocalEntry>, String> {
        let files = self.files()?;
        let mut entries = files
            .list(&inside(path)?, self.entries)
            .map_err(|reason| format!("{path:?}: {reason}"))?;
        let rest = self.entries.checked_sub(entries.len());
        self.entries = rest.ok_or_else(|| {
            format!("{path:?}: all trees together may have {MAX_TREE_ENTRIES} entries")
        })?;
        entries.sort_by(|one, other| one.path.split('/').cmp(other.path.split('/')));
        Ok(entries)
    }

    fn files(&self) -> Result<&'f dyn LocalFiles, String> {
        self.files
            .ok_or_else(|| "local files are read from a folder, which --files-dir names".to_owned())
    }
}

/// The path inside the folder: a leading slash is the folder itself.
fn inside(path: &str) -> Result<String, String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                let reason = || format!("{path:?} leads out of the folder of local files");
                parts.pop().ok_or_else(reason)?;
            }
            _ => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

/// The parent's path and a relative one, without `.`, `..` and repeated slashes; `..` ends at the root.
pub(super) fn join(base: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let is_absolute = base.starts_with('/');
    for part in base.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if is_absolute => {}
            _ => parts.push(part),
        }
    }
    let joined = parts.join("/");
    if is_absolute {
        format!("/{joined}")
    } else {
        joined
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    /// Files in memory.
    #[derive(Debug, Default)]
    pub(in crate::butane) struct MemoryFiles(pub(in crate::butane) BTreeMap<String, Vec<u8>>);

    impl LocalFiles for MemoryFiles {
        fn read(&self, path: &str, limit: usize) -> Result<Vec<u8>, String> {
            let bytes = self.0.get(path).ok_or("no such file")?;
            if bytes.len() > limit {
                return Err("too large".to_owned());
            }
            Ok(bytes.clone())
        }

        fn list(&self, path: &str, limit: usize) -> Result<Vec<LocalEntry>, String> {
            let start = format!("{path}/");
            let below = self.0.keys().filter_map(|path| path.strip_prefix(&start));
            let below: Vec<_> = below.collect();
            let folders = below
                .iter()
                .flat_map(|path| path.match_indices('/').map(|(end, _)| &path[..end]));
            let folders: BTreeSet<&str> = folders.collect();
            let entry = |path: &&str, kind: LocalEntryKind| LocalEntry {
                path: (*path).to_owned(),
                kind,
            };
            let files = below.iter().map(|path| {
                let is_executable = false;
                entry(path, LocalEntryKind::File { is_executable })
            });
            let folders = folders
                .iter()
                .map(|path| entry(path, LocalEntryKind::Directory));
            let entries: Vec<_> = files.chain(folders).collect();
            if entries.len() > limit {
                return Err("too many entries".to_owned());
            }
            Ok(entries)
        }
    }

    #[test]
    fn paths_stay_in_the_folder() {
        for (path, expected) in [
            ("a/b", Some("a/b")),
            ("/a//b/", Some("a/b")),
            ("./a/../b", Some("b")),
            ("", Some("")),
            (".", Some("")),
            ("..", None),
            ("a/../../b", None),
            ("../files/a", None),
        ] {
            assert_eq!(inside(path).ok().as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn paths_join_without_detours() {
        for (base, path, expected) in [
            ("/", "a/b", "/a/b"),
            ("/opt/", "a", "/opt/a"),
            ("/opt/../..", "a", "/a"),
            ("opt", "a", "opt/a"),
            ("../opt", "a", "../opt/a"),
            ("opt/../..", "a", "../a"),
        ] {
            assert_eq!(join(base, path), expected);
        }
    }

    #[test]
    fn bytes_are_bounded_over_all_files() {
        let half = vec![0; MAX_LOCAL_BYTES / 2];
        let files = MemoryFiles(
            [("a", half.clone()), ("b", half), ("c", vec![0])]
                .map(|(path, bytes)| (path.to_owned(), bytes))
                .into(),
        );
        let mut reader = FileReader::new(Some(&files));
        assert!(reader.read("a").is_ok() && reader.read("b").is_ok());
        assert_eq!(reader.read("c").unwrap_err(), "\"c\": too large");
    }

    #[test]
    fn entries_are_bounded_over_all_trees_and_sorted() {
        let names = (0..MAX_TREE_ENTRIES - 1).map(|number| format!("t/f{number:05}"));
        let names = names.chain(["u/x-y".to_owned(), "u/x/y".to_owned()]);
        let files = MemoryFiles(names.map(|name| (name, Vec::new())).collect());
        let mut reader = FileReader::new(Some(&files));
        assert_eq!(reader.list("t").unwrap().len(), MAX_TREE_ENTRIES - 1);
        assert_eq!(reader.list("u").unwrap_err(), "\"u\": too many entries");
        let listed = FileReader::new(Some(&files)).list("u").unwrap();
        let listed: Vec<_> = listed.iter().map(|entry| &entry.path).collect();
        assert_eq!(listed, ["x", "x/y", "x-y"]);
        let error = FileReader::new(None).read("a").unwrap_err();
        assert!(error.contains("--files-dir"), "{error}");
    }

    proptest! {
        #[test]
        fn no_path_escapes(path in "(\\.\\.|\\.|a|/|//){0,12}") {
            if let Ok(inside) = inside(&path) {
                prop_assert!(!inside.starts_with('/') && inside.split('/').all(|part| part != ".."));
            }
        }
    }
}
