//! Rule about type names: one that fits every module names nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

use super::finding::TidyFinding;
use super::record::{self, ClassCounts, CountClass, CrateCounts};
use super::source::WorkspaceSources;

/// Modules that may define the same name.
const MOST_MODULES: usize = 2;
/// Names that any module may define, and the reason.
const EXCEPTIONS: &[(&str, &str)] = &[(
    "Error",
    "the convention of Rust, always written with its module",
)];
/// Owner of the count in the record.
const OWNER: &str = "workspace";
const KEY: &str = "type-names";

/// Finds a count that differs from its record, and lists the names then.
pub(super) fn distinct(sources: &WorkspaceSources) -> Vec<TidyFinding> {
    let repeated = repeated(sources);
    let names: Vec<_> = repeated
        .iter()
        .map(|(name, modules)| format!("{name} ({modules})"))
        .collect();
    let class = CountClass {
        key: KEY,
        noun: "type names in more than two modules",
        advice: "qualify one of these by its noun, as in `FoundRelease`",
    };
    let mut findings = record::check(&recordable(repeated.len()), &[&class]);
    if !findings.is_empty() {
        findings.push(TidyFinding {
            place: OWNER.to_owned(),
            remedy: names.join(", "),
        });
    }
    findings
}

/// The number of repeated names.
pub(super) fn counts(sources: &WorkspaceSources) -> CrateCounts {
    recordable(repeated(sources).len())
}

fn recordable(count: usize) -> CrateCounts {
    let classes = ClassCounts::from([(KEY.to_owned(), count)]);
    CrateCounts::from([(OWNER.to_owned(), classes)])
}

/// Names in more modules than allowed, with the number of these.
fn repeated(sources: &WorkspaceSources) -> BTreeMap<&str, usize> {
    static DEFINITION: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r"(?m)^(?:pub(?:\([a-z: ]+\))? +)?(?:unsafe +)?(?:struct|enum|trait|type|union) +([A-Z]\w*)",
        )
        .expect("the tests use this constant")
    });
    let mut modules: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for file in sources.files.iter().filter(|file| is_source(&file.path)) {
        for captures in DEFINITION.captures_iter(&file.text) {
            let (_, [name]) = captures.extract();
            modules.entry(name).or_default().insert(&file.path);
        }
    }
    modules
        .into_iter()
        .map(|(name, modules)| (name, modules.len()))
        .filter(|(name, count)| *count > MOST_MODULES && !is_exception(name))
        .collect()
}

/// Whether a file belongs to the `src` of a crate.
fn is_source(path: &str) -> bool {
    let of_crate = path.strip_prefix("crates/");
    let of_crate = of_crate.and_then(|path| path.split_once('/'));
    of_crate.is_some_and(|(_, path)| path.starts_with("src/"))
        || path.starts_with("tests/src/")
        || path.starts_with("xtask/src/")
}

fn is_exception(name: &str) -> bool {
    EXCEPTIONS.iter().any(|(exception, _)| *exception == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::source::SourceFile;

    fn names(files: &[(&str, &str)]) -> Vec<String> {
        let file = |(path, text): &(&str, &str)| SourceFile {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        };
        let sources = WorkspaceSources {
            files: files.iter().map(file).collect(),
            ..WorkspaceSources::default()
        };
        let repeated = repeated(&sources);
        repeated.into_keys().map(str::to_owned).collect()
    }

    #[test]
    fn names_in_three_modules_are_found() {
        let mut files = vec![
            ("crates/a/src/lib.rs", "pub struct Entry;\n"),
            ("tests/src/lib.rs", "pub(crate) enum Entry {}\n"),
        ];
        assert!(names(&files).is_empty());
        files.push(("xtask/src/a.rs", "use a;\ntype Entry = u8;\n"));
        assert_eq!(names(&files), ["Entry"]);
    }

    #[test]
    fn each_kind_of_type_counts() {
        for text in [
            "struct A;",
            "pub enum A {}",
            "pub(super) trait A {}",
            "pub(in crate::x) type A = u8;",
            "pub unsafe trait A {}",
            "union A {}",
        ] {
            let files = ["a", "b", "c"].map(|name| format!("crates/{name}/src/lib.rs"));
            let files = files.each_ref().map(|path| (path.as_str(), text));
            assert_eq!(names(&files), ["A"], "{text}");
        }
    }

    #[test]
    fn other_places_do_not_count() {
        for (folder, text) in [
            ("src", "pub enum Error {}"),
            ("tests/it", "struct Entry;"),
            ("src", "    struct Entry;"),
            ("src", "// struct Entry;"),
        ] {
            let files = ["a", "b", "c"].map(|name| format!("crates/{name}/{folder}/x.rs"));
            let files = files.each_ref().map(|path| (path.as_str(), text));
            assert!(names(&files).is_empty(), "{folder}: {text}");
        }
    }
}
