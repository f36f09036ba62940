//! The report of a build: a catalog of others is validated package by package, and one that breaks rules does not keep
//! the others from being served.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{CatalogProblem, CatalogProblems, DocumentOrigin, Rule};

/// Report of a build. Packages are by name; "" for documents without one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BuildReport {
    /// Packages that are not served, with the rules that they break.
    pub refused: BTreeMap<String, CatalogProblems>,
    /// Packages that are not served since single bundles break rules; their other bundles can be selected.
    pub partial: BTreeMap<String, CatalogProblems>,
    /// Packages that break rules which older versions of opm lack. Those that are in no other list are served.
    pub warned: BTreeMap<String, CatalogProblems>,
    /// Unreadable documents.
    pub unread: CatalogProblems,
}

impl BuildReport {
    /// Whether every document was read, and no package breaks a rule.
    pub fn is_clean(&self) -> bool {
        *self == Self::default()
    }

    /// Packages that are not served, with the rules that they break; sorted.
    pub fn not_served(&self) -> BTreeMap<&str, &CatalogProblems> {
        let all = self.refused.iter().chain(&self.partial);
        all.map(|(name, problems)| (name.as_str(), problems))
            .collect()
    }

    /// All problems: unreadable documents, then package by package, each once.
    pub fn problems(&self) -> CatalogProblems {
        let mut by_package: BTreeMap<&str, Vec<&CatalogProblem>> = BTreeMap::new();
        for (name, problems) in self.not_served().into_iter().chain(self.warnings()) {
            let read = problems.0.iter().filter(|it| !self.unread.0.contains(it));
            by_package.entry(name).or_default().extend(read);
        }
        for problems in by_package.values_mut() {
            problems.sort_by(|a, b| a.origin.cmp(&b.origin));
        }
        let of_packages = by_package.into_values().flatten();
        CatalogProblems(self.unread.0.iter().chain(of_packages).cloned().collect())
    }

    fn warnings(&self) -> impl Iterator<Item = (&str, &CatalogProblems)> {
        let warned = self.warned.iter();
        warned.map(|(name, problems)| (name.as_str(), problems))
    }

    /// Whether a later build of the same files may read more: an I/O error may be transient.
    pub(super) fn is_final(&self) -> bool {
        let mut unread = self.unread.0.iter();
        unread.all(|problem| problem.rule != Rule::Readable)
    }

    pub(super) fn to_json(&self) -> Vec<u8> {
        let by_name = |packages: &BTreeMap<String, CatalogProblems>| {
            let packages = packages.iter();
            packages
                .map(|(name, problems)| (name.clone(), stored(problems)))
                .collect()
        };
        let report = StoredReport {
            refused: by_name(&self.refused),
            partial: by_name(&self.partial),
            warned: by_name(&self.warned),
            unread: stored(&self.unread),
        };
        serde_json::to_vec(&report).expect("names and texts are written as JSON")
    }

    /// `None` for the JSON of another version.
    pub(super) fn from_json(json: &[u8]) -> Option<Self> {
        let report: StoredReport = serde_json::from_slice(json).ok()?;
        let by_name = |packages: BTreeMap<String, Vec<StoredProblem>>| {
            let packages = packages.into_iter();
            packages
                .map(|(name, problems)| Some((name, read(problems)?)))
                .collect::<Option<_>>()
        };
        Some(Self {
            refused: by_name(report.refused)?,
            partial: by_name(report.partial)?,
            warned: by_name(report.warned)?,
            unread: read(report.unread)?,
        })
    }
}

/// The report as it is stored in the cache.
#[derive(Serialize, Deserialize)]
struct StoredReport {
    refused: BTreeMap<String, Vec<StoredProblem>>,
    partial: BTreeMap<String, Vec<StoredProblem>>,
    warned: BTreeMap<String, Vec<StoredProblem>>,
    unread: Vec<StoredProblem>,
}

#[derive(Serialize, Deserialize)]
struct StoredProblem {
    origin: Option<(String, u64)>,
    package: String,
    rule: String,
    text: String,
}

fn stored(problems: &CatalogProblems) -> Vec<StoredProblem> {
    let stored = problems.0.iter().map(|problem| StoredProblem {
        origin: problem
            .origin
            .as_ref()
            .map(|origin| (origin.file.to_string_lossy().into_owned(), origin.line)),
        package: problem.package.clone(),
        rule: problem.rule.name().to_owned(),
        text: problem.text.clone(),
    });
    stored.collect()
}

fn read(problems: Vec<StoredProblem>) -> Option<CatalogProblems> {
    let read = problems.into_iter().map(|problem| {
        Some(CatalogProblem {
            origin: problem
                .origin
                .map(|(file, line)| DocumentOrigin::new(file, line)),
            package: problem.package,
            rule: *Rule::ALL.iter().find(|rule| rule.name() == problem.rule)?,
            text: problem.text,
        })
    });
    read.collect::<Option<_>>().map(CatalogProblems)
}

#[cfg(test)]
mod tests;
