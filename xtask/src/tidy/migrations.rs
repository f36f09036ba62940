//! Migrations are numbered, and never edited: existing databases were made by them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::finding::TidyFinding;
use super::source::WorkspaceSources;
use crate::cargo::root;

/// Checksums of landed migrations, in the format of `sha256sum`.
const COMMITTED: &str = "SHA256SUMS";

pub(super) fn unedited(_: &WorkspaceSources) -> Vec<TidyFinding> {
    let folder = root().join("migrations");
    let found = files(&folder);
    let committed = fs::read_to_string(folder.join(COMMITTED)).unwrap_or_default();
    compare(&found, &committed)
}

/// Checksum of each migration, by name.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
        .filter(|(name, _)| name != COMMITTED)
        .map(|(name, path)| {
            let text = fs::read(path).unwrap_or_default();
            (name, format!("{:x}", Sha256::digest(text)))
        })
        .collect()
}

fn compare(found: &BTreeMap<String, String>, committed: &str) -> Vec<TidyFinding> {
    let finding = |name: &str, remedy: String| TidyFinding {
        place: format!("migrations/{name}"),
        remedy,
    };
    let committed: BTreeMap<&str, &str> = committed
        .lines()
        .filter_map(|line| line.split_once("  "))
        .map(|(checksum, name)| (name, checksum))
        .collect();
    let mut findings = Vec::new();
    for (index, (name, checksum)) in found.iter().enumerate() {
        let number = format!("{:04}_", index + 1);
        let is_sql = Path::new(name).extension() == Some("sql".as_ref());
        if !name.starts_with(&number) || !is_sql {
            let remedy =
                format!("migrations are numbered without gaps: this one is {number}WHAT.sql");
            findings.push(finding(name, remedy));
        }
        match committed.get(name.as_str()) {
            Some(known) if known == checksum => {}
            Some(_) => findings.push(finding(
                name,
                "it has landed and may not change: restore it, and put the change into a new migration".to_owned(),
            )),
            None => findings.push(finding(
                name,
                format!("append `{checksum}  {name}` to migrations/{COMMITTED} when it lands"),
            )),
        }
    }
    for name in committed.keys().filter(|name| !found.contains_key(**name)) {
        findings.push(finding(
            name,
            "it has landed and may not go: restore it".to_owned(),
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remedies(found: &[(&str, &str)], committed: &str) -> Vec<String> {
        let found = found
            .iter()
            .map(|(name, sum)| ((*name).to_owned(), (*sum).to_owned()));
        let findings = compare(&found.collect(), committed);
        findings.into_iter().map(|finding| finding.remedy).collect()
    }

    #[test]
    fn landed_migrations_are_unchanged_and_present() {
        let committed = "aa  0001_first.sql\nbb  0002_second.sql\n";
        assert!(
            remedies(
                &[("0001_first.sql", "aa"), ("0002_second.sql", "bb")],
                committed
            )
            .is_empty()
        );
        let changed = remedies(
            &[("0001_first.sql", "ab"), ("0002_second.sql", "bb")],
            committed,
        );
        assert!(changed[0].contains("may not change"), "{changed:?}");
        let removed = remedies(&[("0001_first.sql", "aa")], committed);
        assert!(removed[0].contains("may not go"), "{removed:?}");
    }

    #[test]
    fn new_migrations_are_numbered_and_listed() {
        let new = remedies(
            &[("0001_first.sql", "aa"), ("0003_third.sql", "cc")],
            "aa  0001_first.sql\n",
        );
        assert!(new[0].contains("0002_"), "{new:?}");
        assert!(new[1].contains("append `cc  0003_third.sql`"), "{new:?}");
    }
}
