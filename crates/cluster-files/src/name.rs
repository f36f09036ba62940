//! Object names: relative, plain, without path traversal.

use std::fmt;
use std::path::{Path, PathBuf};

use model::Error;

/// Longest name, within the bounds of file systems and backups. Units: bytes.
const MAX_BYTES: usize = 512;

/// A checked object name: `kubeconfig`, `manifests/openshift/99-mine.yaml`.
///
/// Elements contain no separator or control character, and do not start with a dot: this excludes `..` and the
/// store's own temporary files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName(String);

impl ObjectName {
    /// Checks `text`.
    ///
    /// Errors: `Invalid` – an element is empty, starts with a dot, or contains a control character or backslash.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let refuse = |why: &str| Err(Error::invalid("file_name", format!("{text:?} {why}")));
        if text.is_empty() || text.len() > MAX_BYTES {
            return refuse("must have between 1 and 512 bytes");
        }
        for element in text.split('/') {
            if element.is_empty() {
                return refuse("has an empty path element");
            }
            if element.starts_with('.') {
                return refuse("has a path element that starts with a dot");
            }
            if element
                .chars()
                .any(|character| character.is_control() || character == '\\')
            {
                return refuse("contains a control character or a backslash");
            }
        }
        Ok(Self(text.to_owned()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Path of the object below `folder`.
    pub(crate) fn below(&self, folder: &Path) -> PathBuf {
        folder.join(&self.0)
    }

    /// Whether the object is `prefix` itself or below it.
    pub(crate) fn is_in(&self, prefix: &str) -> bool {
        prefix.is_empty()
            || self
                .0
                .strip_prefix(prefix.trim_end_matches('/'))
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_pass() {
        for text in [
            "kubeconfig",
            "manifests/openshift/99 mine.yaml",
            "logs/controller/logs.tar.gz",
        ] {
            assert_eq!(ObjectName::parse(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn path_traversal_is_refused() {
        let long = "a".repeat(MAX_BYTES + 1);
        for text in [
            "",
            "/etc/passwd",
            "..",
            "a/../b",
            "a//b",
            "a/",
            ".hidden",
            "a/.tmp",
            "a\\b",
            "a\0b",
            "a\nb",
            &long,
        ] {
            assert!(ObjectName::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn prefixes_match_whole_elements() {
        let name = ObjectName::parse("logs/controller/logs.tar.gz").unwrap();
        assert!(name.is_in("logs"));
        assert!(name.is_in("logs/"));
        assert!(name.is_in(""));
        assert!(!name.is_in("log"));
    }
}
