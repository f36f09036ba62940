//! The licences of the copied files: they have to be distributed with them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The licence files of the packages of `files`, on distributions of Debian's family.
pub(super) fn of<'a>(files: impl Iterator<Item = &'a Path>) -> Vec<PathBuf> {
    owners(files)
        .into_iter()
        .map(|name| Path::new("/usr/share/doc").join(name).join("copyright"))
        .filter(|path| path.exists())
        .chain(whole_texts())
        .collect()
}

/// The packages of `files`, on distributions of Debian's family.
pub(super) fn owners<'a>(files: impl Iterator<Item = &'a Path>) -> BTreeSet<String> {
    let paths: BTreeSet<_> = files.flat_map(spellings).collect();
    // Its status is a failure when one spelling is unknown, as for most files.
    let output = Command::new("dpkg-query")
        .arg("--search")
        .args(paths)
        .env("LC_ALL", "C")
        .output();
    output
        .map(|output| {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            packages(&text).into_iter().map(str::to_owned).collect()
        })
        .unwrap_or_default()
}

/// Licence texts that packages refer to instead of repeating them.
fn whole_texts() -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir("/usr/share/common-licenses");
    let entries = entries.into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

/// Possible names of a file in a package: folders of the root are links into /usr, as are many libraries' names.
fn spellings(file: &Path) -> BTreeSet<PathBuf> {
    let real = fs::canonicalize(file).unwrap_or_default();
    let mut found = BTreeSet::from([file.to_owned(), real.clone()]);
    if let Ok(below) = real.strip_prefix("/usr") {
        found.insert(Path::new("/").join(below));
    }
    found.retain(|path| path.is_absolute());
    found
}

/// The names in lines like `libc6:amd64, libc-bin: /path`.
fn packages(text: &str) -> BTreeSet<&str> {
    text.lines()
        .filter_map(|line| line.split_once(": "))
        .filter(|(names, _)| !names.starts_with("diversion by "))
        .flat_map(|(names, _)| names.split(", "))
        .filter_map(|name| name.split(':').next())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_read_from_lines() {
        let text = "libc6:amd64: /lib/libc.so.6\ndiversion by dash from: /bin/sh\n\
                    dash: /bin/dash\nlibc6:amd64, locales: /usr/lib/locale\n";
        assert_eq!(packages(text), BTreeSet::from(["dash", "libc6", "locales"]));
    }

    #[test]
    fn a_file_is_searched_for_with_and_without_usr() {
        let folder = Path::new("/usr/bin/env");
        let found = spellings(folder);
        assert!(found.contains(folder));
        assert!(found.iter().any(|path| path.starts_with("/bin")) || !folder.exists());
        assert!(spellings(Path::new("none")).is_empty());
    }
}
