//! What the files of a catalog are made of.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The schema of packages.
pub const PACKAGE: &str = "olm.package";

/// One document, as it is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pub schema: String,
    /// As it stands in the document; empty where nothing does, so in packages themselves. See
    /// [`Document::group`].
    pub package: String,
    /// Empty where there is none.
    pub name: String,
    /// The whole document in one line and in the normal form: keys sorted, the last of equal keys, numbers as
    /// ECMAScript prints them.
    pub json: String,
    pub origin: DocumentOrigin,
}

/// Where a document begins.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentOrigin {
    /// Inside the catalog.
    pub file: Arc<Path>,
    /// From 1.
    pub line: u64,
}

impl Document {
    /// The package that it belongs to; empty: to none.
    pub fn group(&self) -> &str {
        if self.schema == PACKAGE {
            &self.name
        } else {
            &self.package
        }
    }
}

impl DocumentOrigin {
    /// A line of a file inside the catalog.
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
