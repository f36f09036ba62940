//! Modules of `rules` know earlier ones alone: the order is that of their documentation.

use std::sync::LazyLock;

use regex::Regex;

use super::finding::TidyFinding;
use super::source::{SourceFile, WorkspaceSources};

const SOURCE: &str = "crates/rules/src/";
/// Each knows those before it. Modules of the root that are in no row know none of these.
const ORDER: &[&str] = &[
    "versions",
    "input",
    "snapshot",
    "event",
    "hardware",
    "host",
    "network",
    "operators",
    "explain",
    "cluster",
    "steps",
    "install_config",
    "manifests",
];
/// They may know all: the root re-exports, the others are for tests.
const FREE: &[&str] = &["lib", "arbitrary", "fixtures", "journey", "samples"];

/// A path from the root of the crate, alone or in an import of several.
static PATHS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\bcrate::(?:(\w+)|\{([^;]*)\};)").ok());

pub(super) fn check(sources: &WorkspaceSources) -> Vec<TidyFinding> {
    sources.files.iter().flat_map(findings).collect()
}

fn findings(file: &SourceFile) -> Vec<TidyFinding> {
    let Some(path) = file.path.strip_prefix(SOURCE) else {
        return Vec::new();
    };
    let own = path.split(['/', '.']).next().unwrap_or_default();
    if FREE.contains(&own) || path.ends_with("_tests.rs") {
        return Vec::new();
    }
    let code: Vec<_> = file.code().map(|(_, line)| line).collect();
    let later = |name: &&str| rank(name).is_some_and(|other| Some(other) > rank(own));
    let named = names(&code.join("\n"));
    let later = named.iter().map(String::as_str).filter(later);
    let finding = |name: &str| TidyFinding {
        place: file.path.clone(),
        remedy: format!("{own} comes before {name}: move what both need below"),
    };
    later.map(finding).collect()
}

fn rank(module: &str) -> Option<usize> {
    ORDER.iter().position(|name| *name == module)
}

/// Modules of the root that a text names.
fn names(code: &str) -> Vec<String> {
    let paths = PATHS.iter().flat_map(|paths| paths.captures_iter(code));
    let mut names: Vec<String> = paths
        .flat_map(|path| match (path.get(1), path.get(2)) {
            (Some(name), _) => vec![name.as_str().to_owned()],
            (None, Some(list)) => first_names(list.as_str()),
            (None, None) => Vec::new(),
        })
        .collect();
    names.sort();
    names.dedup();
    names
}

/// The first name of each item of an import's list.
fn first_names(list: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let mut names = vec![String::new()];
    let mut is_first = true;
    for letter in list.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                names.push(String::new());
                is_first = true;
            }
            ':' => is_first = false,
            letter if is_first && depth == 0 && !letter.is_whitespace() => {
                if let Some(name) = names.last_mut() {
                    name.push(letter);
                }
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        let file = SourceFile {
            path: format!("{SOURCE}{path}"),
            text: text.to_owned(),
        };
        findings(&file).len()
    }

    #[test]
    fn later_modules_are_refused() {
        assert_eq!(found("host/table.rs", "use crate::event::NewEvent;\n"), 0);
        assert_eq!(found("host/table.rs", "use crate::cluster::Facts;\n"), 1);
        assert_eq!(found("host.rs", "fn a() { crate::steps::plan() }\n"), 1);
        let list = "use crate::{\n    bounds,\n    network::{reach, Mac},\n    steps,\n};\n";
        assert_eq!(found("snapshot.rs", list), 2);
        assert_eq!(found("bounds.rs", "use crate::host;\n"), 1);
        assert_eq!(found("samples.rs", "use crate::cluster;\n"), 0);
    }

    #[test]
    fn tests_may_know_all() {
        let text = "#[cfg(test)]\nmod tests {\n    use crate::cluster;\n}\n";
        assert_eq!(found("host.rs", text), 0);
        assert_eq!(found("host/tests.rs", "use crate::cluster;\n"), 0);
    }
}
