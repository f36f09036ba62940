//! Lists, read from the folders themselves.

use std::fs;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use model::time::Timestamp;
use uuid::Uuid;

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
        let mut found = self
            .having("_manifests")
            .map_err(StoreError::io("listing repositories"))?;
        found.sort_unstable();
        Ok(found)
    }

    pub(super) fn purge_uploads(&self, before: Timestamp) -> Result<usize> {
        let before = SystemTime::from(before);
        let failed = || StoreError::io("looking for abandoned uploads");
        let mut purged = 0;
        for repository in self.having("_uploads").map_err(failed())? {
            for name in folders(&self.layout.uploads(&repository)).map_err(failed())? {
                let Ok(upload) = name.parse::<Uuid>() else {
                    continue;
                };
                let session = self.sessions.get(upload);
                // Whoever writes holds the lock, however long ago the last byte was.
                let Ok(_guard) = session.try_lock() else {
                    continue;
                };
                let dir = self.layout.upload(&repository, upload);
                if is_older(&dir, before).map_err(failed())? {
                    self.drop_upload(&repository, upload)?;
                    self.sessions.forget(upload);
                    purged += 1;
                }
            }
        }
        Ok(purged)
    }

    /// Repositories with a folder of this name.
    fn having(&self, folder: &str) -> io::Result<Vec<Repository>> {
        let root = self.layout.repositories();
        let mut found = Vec::new();
        let mut open = vec![String::new()];
        while let Some(parent) = open.pop() {
            for name in folders(&root.join(&parent))? {
                if name == folder {
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
        Ok(found)
    }
}

/// Whether nothing in an upload's folder changed since `before`; one that vanishes meanwhile is not.
fn is_older(dir: &Path, before: SystemTime) -> io::Result<bool> {
    for path in [dir.join("data"), dir.to_owned()] {
        match fs::metadata(path).and_then(|metadata| metadata.modified()) {
            Ok(changed_at) if changed_at >= before => return Ok(false),
            Ok(_) => {}
            Err(error) if durable::is_absent(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
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
