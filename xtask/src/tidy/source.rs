//! The input of rules.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::cargo::{metadata, root};

/// A Rust file.
#[derive(Debug, Clone)]
pub(super) struct SourceFile {
    /// Path from the workspace's root.
    pub(super) path: String,
    /// Its text.
    pub(super) text: String,
}

impl SourceFile {
    /// Whether it only exists for tests.
    pub(super) fn is_test(&self) -> bool {
        let path = &self.path;
        path.contains("/tests/")
            || path.ends_with("/tests.rs")
            || path.starts_with("tests/")
            || path.starts_with("crates/testkit/")
            || path.starts_with("crates/faults/")
    }

    /// Number of lines before the module of unit tests; one of a file of its own ends nothing.
    pub(super) fn length(&self) -> usize {
        let mut lines = self.text.lines().peekable();
        let mut count = 0;
        while let Some(line) = lines.next() {
            let is_declared = lines
                .peek()
                .is_some_and(|next| next.starts_with("mod ") && next.ends_with(';'));
            if line == "#[cfg(test)]" && !is_declared {
                break;
            }
            count += 1;
        }
        count
    }

    /// The lines before the module of unit tests without comment lines, numbered from one.
    pub(super) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let length = if self.is_test() { 0 } else { self.length() };
        self.text
            .lines()
            .take(length)
            .enumerate()
            .map(|(index, line)| (index + 1, line))
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
    }
}

/// A dependency of a crate of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CrateDependency {
    /// The dependent crate.
    pub(super) from: String,
    /// The dependency.
    pub(super) on: String,
    /// Whether only its tests use it.
    pub(super) is_dev: bool,
}

/// The workspace.
#[derive(Debug, Clone, Default)]
pub(super) struct WorkspaceSources {
    /// Every Rust file that is, or could be, committed.
    pub(super) files: Vec<SourceFile>,
    /// Manifests of our crates, by path.
    pub(super) manifests: Vec<SourceFile>,
    /// Direct dependencies of our crates.
    pub(super) dependencies: Vec<CrateDependency>,
}

impl WorkspaceSources {
    /// Reads the workspace.
    pub(super) fn read() -> Result<Self> {
        let mut sources = Self {
            dependencies: dependencies(&metadata()?)?,
            ..Self::default()
        };
        for path in paths()? {
            // A listed file may have been deleted since.
            let Ok(text) = std::fs::read_to_string(root().join(&path)) else {
                continue;
            };
            let is_manifest = path.ends_with("/Cargo.toml");
            let list = if is_manifest {
                &mut sources.manifests
            } else {
                &mut sources.files
            };
            list.push(SourceFile { path, text });
        }
        Ok(sources)
    }
}

fn paths() -> Result<Vec<String>> {
    let output = Command::new("git")
        .current_dir(root())
        .args([
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "--",
            "*.rs",
            "*/Cargo.toml",
        ])
        .output()
        .context("running git ls-files")?;
    ensure!(
        output.status.success(),
        "git ls-files: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).context("a path is not UTF-8")?;
    Ok(text.lines().map(str::to_owned).collect())
}

fn dependencies(metadata: &serde_json::Value) -> Result<Vec<CrateDependency>> {
    let packages = metadata["packages"]
        .as_array()
        .context("cargo metadata has no packages")?;
    let name = |value: &serde_json::Value| value["name"].as_str().unwrap_or_default().to_owned();
    Ok(packages
        .iter()
        .flat_map(|package| {
            package["dependencies"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|dependency| CrateDependency {
                    from: name(package),
                    on: name(dependency),
                    is_dev: dependency["kind"] == "dev",
                })
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_comments_are_skipped() {
        let file = SourceFile {
            path: "crates/x/src/a.rs".to_owned(),
            text: "fn a() {}\n// b\n#[cfg(test)]\nmod tests {}\n".to_owned(),
        };
        assert_eq!(file.code().collect::<Vec<_>>(), [(1, "fn a() {}")]);
        let test = SourceFile {
            path: "crates/x/tests/it/main.rs".to_owned(),
            ..file
        };
        assert_eq!(test.code().count(), 0);
    }

    #[test]
    fn code_goes_on_after_tests_of_another_file() {
        let file = SourceFile {
            path: "crates/x/src/a.rs".to_owned(),
            text: "#[cfg(test)]\nmod tests;\nfn a() {}\n#[cfg(test)]\nmod more {}\n".to_owned(),
        };
        assert_eq!(file.length(), 3);
        assert_eq!(file.code().last(), Some((3, "fn a() {}")));
    }

    #[test]
    fn the_workspace_can_be_read() {
        let sources = WorkspaceSources::read().unwrap();
        assert!(
            sources
                .files
                .iter()
                .any(|file| file.path == "xtask/src/main.rs")
        );
        assert!(
            sources
                .dependencies
                .iter()
                .any(|one| one.from == "xtask" && one.on == "anyhow")
        );
    }
}
