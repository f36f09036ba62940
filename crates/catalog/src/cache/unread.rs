//! Unreadable documents: the packages that they may belong to.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use super::record::Line;
use super::spool::Spool;
use crate::{CatalogProblem, CatalogProblems};

/// Unreadable documents that may belong to a package.
#[derive(Debug, Clone, Default)]
pub(super) struct UnreadDocuments {
    /// Those in its folders, or of its name.
    pub(super) near: CatalogProblems,
    /// Whether one of them can be of no other package.
    pub(super) is_own: bool,
}

/// The unreadable documents of each group.
///
/// A document belongs to the package that it names. One without a readable name is of the only package in its file, or
/// else in its folder. Where several packages are there, those that are valid do not miss it.
pub(super) fn unread_documents(
    spool: &Spool,
    groups: &[Vec<Line>],
    unread: &CatalogProblems,
) -> Vec<UnreadDocuments> {
    let mut all = vec![UnreadDocuments::default(); groups.len()];
    if unread.0.is_empty() {
        return all;
    }
    let places = Places::of(spool, groups);
    // Custom documents are not served with packages.
    let unread = unread.0.iter().filter(|it| it.rule.since().is_none());
    for problem in unread {
        let (near, owner) = places.packages(problem);
        for group in near {
            all[group].near.0.push(problem.clone());
            all[group].is_own |= owner == Some(group);
        }
    }
    all
}

/// Groups by name, and by the files and folders of their documents.
struct Places<'a> {
    named: HashMap<&'a str, usize>,
    files: HashMap<&'a Path, BTreeSet<usize>>,
    folders: HashMap<&'a Path, BTreeSet<usize>>,
}

impl<'a> Places<'a> {
    fn of(spool: &'a Spool, groups: &[Vec<Line>]) -> Self {
        let mut places = Self {
            named: HashMap::new(),
            files: HashMap::new(),
            folders: HashMap::new(),
        };
        for (number, group) in groups.iter().enumerate() {
            let name = group.first().map_or("", |line| spool.group_name(line));
            // Documents without a package miss nothing.
            if name.is_empty() {
                continue;
            }
            places.named.insert(name, number);
            let files: HashSet<_> = group.iter().map(|line| line.file).collect();
            for file in files {
                let file = Path::new(spool.texts.get(file));
                places.files.entry(file).or_default().insert(number);
                let folder = file.parent().unwrap_or(Path::new(""));
                places.folders.entry(folder).or_default().insert(number);
            }
        }
        places
    }

    /// The groups that an unread document may belong to, and the one that it must.
    fn packages(&self, problem: &CatalogProblem) -> (Vec<usize>, Option<usize>) {
        if let Some(named) = self.named.get(problem.package.as_str()) {
            return (vec![*named], Some(*named));
        }
        let Some(origin) = &problem.origin else {
            return (self.named.values().copied().collect(), None);
        };
        let folder = origin.file.parent().unwrap_or(Path::new(""));
        let of_file = self.files.get(&*origin.file);
        let of_folder = self.folders.get(folder);
        let near: Vec<_> = of_folder.into_iter().flatten().copied().collect();
        let owner = match of_file.or(of_folder) {
            Some(only) if only.len() == 1 => only.first().copied(),
            _ => None,
        };
        (near, owner)
    }
}
