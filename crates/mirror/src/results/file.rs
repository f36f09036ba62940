//! Files of the results.

use bytes::Bytes;

use crate::archive::FilePlace;

/// A file of the results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultFile {
    /// Relative, without `..`.
    pub path: String,
    pub content: Bytes,
}

/// A file that is copied when the results are written.
#[derive(Debug, Clone)]
pub struct Copied {
    /// Relative, without `..`.
    pub path: String,
    pub from: FilePlace,
}

impl ResultFile {
    pub fn new(path: impl Into<String>, content: impl Into<Bytes>) -> Self {
        Self {
            path: path.into(),
            content: content.into(),
        }
    }
}
