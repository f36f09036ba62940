//! Rule about packages: programs with little to do compile few.

use std::collections::BTreeSet;

use super::finding::TidyFinding;
use super::source::WorkspaceSources;
use crate::cargo::cargo;
use crate::command::output;

/// Programs that forward requests and serve pages.
const SMALL_PROGRAMS: &[&str] = &["proxy", "webui"];
/// Each package is compiled, shipped, and watched for advisories.
const MAX_PACKAGES: usize = 149;
/// The target of the images.
const TARGET: &str = "x86_64-unknown-linux-musl";

pub(super) fn few(_: &WorkspaceSources) -> Vec<TidyFinding> {
    let programs = SMALL_PROGRAMS.iter().copied();
    programs
        .filter_map(|program| finding(program, &tree(program)))
        .collect()
}

/// The packages of `program` as lines, its own included.
fn tree(program: &str) -> Result<String, String> {
    let mut command = cargo(&["tree", "--locked", "--edges", "normal", "--prefix", "none"]);
    command.args(["--target", TARGET, "--package", program]);
    let tree = output(&mut command).map_err(|error| format!("{error:#}"))?;
    String::from_utf8(tree).map_err(|error| error.to_string())
}

fn finding(program: &str, tree: &Result<String, String>) -> Option<TidyFinding> {
    let remedy = match tree {
        Ok(tree) => {
            // Name and version; repeated packages end in a mark.
            let packages: BTreeSet<_> = tree
                .lines()
                .map(|line| line.split(" (").next().unwrap_or(line))
                .collect();
            let count = packages.len();
            if count <= MAX_PACKAGES {
                return None;
            }
            format!("{count} packages, at most {MAX_PACKAGES}: cargo tree --package {program}")
        }
        Err(error) => error.clone(),
    };
    Some(TidyFinding {
        place: program.to_owned(),
        remedy,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_package_too_many_is_found() {
        let tree = |count: usize| {
            let packages = (0..count).map(|number| format!("package{number} v1.0.0\n"));
            let repeated = "package0 v1.0.0 (*)\npackage1 v1.0.0 (proc-macro)\n";
            Ok(packages.chain([repeated.to_owned()]).collect())
        };
        assert_eq!(finding("x", &tree(MAX_PACKAGES)), None);
        let found = finding("x", &tree(MAX_PACKAGES + 1)).unwrap();
        assert!(found.remedy.starts_with("150 packages"), "{found:?}");
        assert!(finding("x", &Err("no lock file".to_owned())).is_some());
    }
}
