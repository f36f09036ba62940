//! Lists, read from the folders themselves.

use std::fs;
use std::io;
use std::path::Path;

use super::durable;
use super::inner::Inner;
use crate::store::{Result, StoreError};
use crate::{Repository, Tag};

impl Inner {
    pub(super) fn tags(&self, repository: &Repository) -> Result<Vec<Tag>> {
        if !self.layout.manifests(repository).is_dir() {
            return Err(StoreError::UnknownRepository(repository.clone()));
        }
        let _guard = self.shared(repository);
        let mut tags = self
            .read_tags(repository)
            .map_err(StoreError::io("listing tags"))?;
        // After kill -9, distribution leaves folders without a current link: those are no tags.
        tags.retain(|tag| self.layout.tag_current(repository, tag).is_file());
        tags.sort_unstable();
        Ok(tags)
    }

    pub(super) fn read_tags(&self, repository: &Repository) -> io::Result<Vec<Tag>> {
        let names = folders(&self.layout.tags(repository))?;
        Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
    }

    pub(super) fn repositories(&self) -> Result<Vec<Repository>> {
        let root = self.layout.repositories();
        let mut found = Vec::new();
        let mut open = vec![String::new()];
        while let Some(parent) = open.pop() {
            let dir = root.join(&parent);
            for name in folders(&dir).map_err(StoreError::io("listing repositories"))? {
                if name == "_manifests" {
                    found.extend(parent.parse::<Repository>());
                } else if !name.starts_with('_') {
                    let path = if parent.is_empty() {
                        name
                    } else {
                        format!("{parent}/{name}")
                    };
                    // What does not parse lies outside the grammar, and so does all below it.
                    open.extend(path.parse::<Repository>().map(|name| name.to_string()));
                }
            }
        }
        found.sort_unstable();
        Ok(found)
    }
}

/// Names of the folders in `dir`; none when it is absent.
fn folders(dir: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if durable::is_absent(&error) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            names.extend(entry.file_name().into_string());
        }
    }
    Ok(names)
}
