//! Files of settings (NAME=value): their variables are set or removed, other lines kept.

use std::path::Path;

use crate::file::rewrite_atomic;
use crate::{Error, ResultExt as _};

/// Sets variables in an env file: their lines are replaced, others kept.
///
/// Errors: it cannot be read or written.
pub fn set(path: &Path, values: &[(String, String)]) -> Result<(), Error> {
    change(path, values, "")
}

/// As [`set`], and removes the lines of the variable `removed`, in one atomic replace.
///
/// Errors: as [`set`].
pub fn change(path: &Path, values: &[(String, String)], removed: &str) -> Result<(), Error> {
    let text = std::fs::read_to_string(path).doing(|| format!("reading {}", path.display()))?;
    let is_removed = |line: &str| {
        let name = line.split_once('=').map(|(name, _)| name.trim());
        name.is_some_and(|name| name == removed && !removed.is_empty())
    };
    let lines: Vec<&str> = text.lines().filter(|line| !is_removed(line)).collect();
    rewrite_atomic(
        path,
        with_values(&lines.join("\n"), values).as_bytes(),
        0o600,
    )
}

/// The text of an env file with these values: their lines are replaced, others kept.
pub fn with_values(text: &str, values: &[(String, String)]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (name, value) in values {
        let new = format!("{name}={value}");
        let is_own = |line: &&mut String| {
            line.split_once('=')
                .is_some_and(|(own, _)| own.trim() == name)
        };
        // The last line counts.
        match lines.iter_mut().rev().find(is_own) {
            Some(line) => *line = new,
            None => lines.push(new),
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_replaced_in_their_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".env");
        std::fs::write(&path, "# A=0\nA=1\nB=2").unwrap();
        let values = [("A", "x=y"), ("C", "3")];
        let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
        set(&path, &values).unwrap();
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "# A=0\nA=x=y\nB=2\nC=3\n"
        );
        change(&path, &values, "B").unwrap();
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "# A=0\nA=x=y\nC=3\n"
        );
    }
}
