//! Finds the archive sets below a folder, as a medium that is carried in has them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use model::Error;

use super::file::unreadable;
use super::name::NamedSet;
use super::set::locate;

/// Levels of folders that are searched.
const DEPTH: usize = 4;

/// The files of one set in one folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSet {
    /// The first file, relative to the searched folder: it names the set.
    pub name: String,
    /// By the names of the files. Those of the peer's v2 have none: it is 1.
    pub sequence: u64,
    /// Names and sizes, in the order of their numbers. Units: bytes.
    pub files: Vec<(String, u64)>,
}

/// The sets below `folder` by name.
///
/// Blocking. Errors: Internal – a folder cannot be read.
pub fn sets_below(folder: &Path) -> Result<Vec<FoundSet>, Error> {
    let paths = locate::search(folder, DEPTH).map_err(|e| unreadable(folder.display(), e))?;
    let mut sets: BTreeMap<(PathBuf, NamedSet), FoundSet> = BTreeMap::new();
    let mut numbered: Vec<_> = paths.into_iter().filter_map(named).collect();
    numbered.sort();
    for (named, number, path) in numbered {
        let Some(relative) = path.strip_prefix(folder).ok().and_then(Path::to_str) else {
            continue;
        };
        let size = path.metadata().map_or(0, |it| it.len());
        let name = named.file_name(number);
        let place = path.parent().unwrap_or(folder).to_owned();
        let set = sets.entry((place, named)).or_insert_with(|| FoundSet {
            name: relative.to_owned(),
            sequence: named.sequence(),
            files: Vec::new(),
        });
        set.files.push((name, size));
    }
    let mut sets: Vec<_> = sets.into_values().collect();
    sets.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(sets)
}

fn named(path: PathBuf) -> Option<(NamedSet, usize, PathBuf)> {
    let (set, number) = NamedSet::parse(path.file_name()?.to_str()?)?;
    Some((set, number, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_found_by_folder_and_sequence() {
        let dir = tempfile::tempdir().unwrap();
        for path in [
            "stick/mirror_seq2_000001.tar",
            "stick/mirror_seq2_000000.tar",
            "stick/mirror_seq10_000000.tar",
            "stick/other.tar",
            "mirror_seq1_000000.tar",
            "peer/mirror_000002.tar",
            "peer/mirror_000001.tar",
            "peer/mirror_seq3_000000.tar",
            "a/b/c/d/e/mirror_seq1_000000.tar",
        ] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "12").unwrap();
        }
        let found = sets_below(dir.path()).unwrap();
        let names: Vec<_> = found
            .iter()
            .map(|it| (it.name.as_str(), it.files.len()))
            .collect();
        let expected = [
            ("mirror_seq1_000000.tar", 1),
            ("peer/mirror_000001.tar", 2),
            ("peer/mirror_seq3_000000.tar", 1),
            ("stick/mirror_seq10_000000.tar", 1),
            ("stick/mirror_seq2_000000.tar", 2),
        ];
        assert_eq!(names, expected);
        assert_eq!(found[1].files[1], ("mirror_000002.tar".to_owned(), 2));
        assert_eq!(found[4].files[1], ("mirror_seq2_000001.tar".to_owned(), 2));
        assert!(sets_below(&dir.path().join("absent")).is_err());
    }
}
