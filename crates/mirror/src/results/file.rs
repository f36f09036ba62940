//! Files of the results.

use std::path::Path;

use bytes::Bytes;
use model::api_group_map::ApiGroupMap;

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

/// The files with the groups of their resources replaced.
pub(super) fn in_groups(files: Vec<ResultFile>, groups: &ApiGroupMap) -> Vec<ResultFile> {
    let replaced = |file: ResultFile| match std::str::from_utf8(&file.content) {
        Ok(text)
            if Path::new(&file.path)
                .extension()
                .is_some_and(|it| it == "yaml") =>
        {
            ResultFile {
                content: groups.replaced(text).into_owned().into(),
                ..file
            }
        }
        _ => file,
    };
    files.into_iter().map(replaced).collect()
}
