//! Documents of a catalog (`Meta` in operator-registry).

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The schema of packages.
pub const PACKAGE: &str = "olm.package";

/// One document in the served form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pub schema: String,
    /// Member `package`, verbatim; empty when absent, so in packages themselves. See [`Document::group`].
    pub package: String,
    /// Empty when absent.
    pub name: String,
    /// The document in the normal form: one line, keys sorted, the last of duplicate keys, numbers as ECMAScript prints
    /// them.
    pub json: String,
    pub origin: DocumentOrigin,
}

/// File and line of a document's first byte.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentOrigin {
    /// Path inside the catalog.
    pub file: Arc<Path>,
    /// First line: 1.
    pub line: u64,
}

impl Document {
    /// Package of the document; empty for documents without one.
    pub fn group(&self) -> &str {
        if self.schema == PACKAGE {
            &self.name
        } else {
            &self.package
        }
    }
}

impl DocumentOrigin {
    /// A line of a file in the catalog.
    pub fn new(file: impl Into<PathBuf>, line: u64) -> Self {
        let file = Arc::from(file.into());
        Self { file, line }
    }
}

impl fmt::Display for DocumentOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}
