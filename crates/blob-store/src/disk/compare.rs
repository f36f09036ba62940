//! Comparison of a repository's links with the index, by name and content. Times and inodes are ignored: a restored
//! backup keeps them, and a tag may be rewritten in place.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::Path;

use super::committer::SharedState;
use super::index::IndexSnapshot;
use super::layout::FolderLayout;
use super::{scan, staged};
use crate::{Result, StoreError};
use oci::{Algorithm, Digest, Repository, Tag};

const DOING: &str = "comparing the storage folder with its index";

/// Links in the index, each with whether it dangles.
pub(super) type IndexedLinks = HashMap<Digest, bool>;

/// Whether the links of a repository in the folder differ from the index.
///
/// Errors: the folder cannot be read; Interrupted – the store is closing.
pub(super) fn differs(shared: &SharedState, repository: &Repository) -> Result<bool> {
    let comparison = Comparison {
        shared,
        snapshot: shared.index.snapshot()?,
        repository,
    };
    let layout = &shared.layout;
    let (layers, revisions) = (layout.layers(repository), layout.revisions(repository));
    let is_listed = layout.manifests(repository).is_dir();
    Ok(comparison.snapshot.is_listed(repository)? != is_listed
        || comparison.links(&layers, &comparison.snapshot.known_blobs(repository)?)?
        || comparison.links(
            &revisions,
            &comparison.snapshot.known_manifests(repository)?,
        )?
        || comparison.tags()?)
}

struct Comparison<'a> {
    shared: &'a SharedState,
    snapshot: IndexSnapshot,
    repository: &'a Repository,
}

impl Comparison<'_> {
    fn layout(&self) -> &FolderLayout {
        &self.shared.layout
    }

    /// Whether links below a folder differ from the known ones, or missing content is back.
    fn links(&self, folder: &Path, known: &IndexedLinks) -> Result<bool> {
        let found = self.names(folder)?;
        if known.keys().any(|name| !found.contains(name)) {
            return Ok(true);
        }
        for name in found.iter().filter(|name| !known.contains_key(name)) {
            let below = format!("{}/{}/link", name.algorithm().as_str(), name.hex());
            // A link whose content differs from its name is ignored by adoption, too.
            if name.algorithm() != Algorithm::Sha256
                || scan::link(&folder.join(below))?.as_ref() == Some(name)
            {
                return Ok(true);
            }
        }
        let mut dangling = known.iter().filter(|(_, is_dangling)| **is_dangling);
        Ok(dangling.any(|(name, _)| self.is_restored(folder, name)))
    }

    fn is_restored(&self, folder: &Path, name: &Digest) -> bool {
        if name.algorithm() != Algorithm::Sha256 || !self.layout().data(name).exists() {
            return false;
        }
        // A damaged manifest exists, but stays dangling.
        folder != self.layout().revisions(self.repository)
            || matches!(scan::manifest(self.layout(), name), Ok(Some(_)))
    }

    /// The digests of links below a folder. Links of a SHA-256 are not read: they can hold only their own name.
    fn names(&self, folder: &Path) -> Result<HashSet<Digest>> {
        let failed = || StoreError::io(DOING);
        let mut found = HashSet::new();
        for algorithm in scan::folders(folder).map_err(failed())? {
            let below = folder.join(&algorithm);
            for hex in scan::folders(&below).map_err(failed())? {
                self.check_open()?;
                let Ok(name) = format!("{algorithm}:{hex}").parse::<Digest>() else {
                    continue;
                };
                let path = below.join(&hex).join("link");
                if name.algorithm() == Algorithm::Sha256 {
                    if is_there(&path).map_err(failed())? {
                        found.insert(name);
                    }
                } else if let Some(canonical) = scan::link(&path)? {
                    found.extend([canonical, name]);
                }
            }
        }
        Ok(found)
    }

    fn tags(&self) -> Result<bool> {
        let tags = self.layout().tags(self.repository);
        let known = self.snapshot.tags(self.repository, "", usize::MAX)?;
        let mut known: HashMap<Tag, Digest> = known.unwrap_or_default().into_iter().collect();
        for name in scan::folders(&tags).map_err(StoreError::io(DOING))? {
            self.check_open()?;
            let Ok(tag) = name.parse::<Tag>() else {
                continue;
            };
            let current = scan::link(&self.layout().tag_current(self.repository, &tag))?;
            let is_same = match (current, known.remove(&tag)) {
                (Some(current), Some(at)) => current == at || self.is_other_name(&at, &current)?,
                (current, at) => current.is_none() && at.is_none(),
            };
            if !is_same {
                return Ok(true);
            }
        }
        Ok(!known.is_empty())
    }

    fn is_other_name(&self, name: &Digest, canonical: &Digest) -> Result<bool> {
        let row = self.snapshot.manifest_link(self.repository, name)?;
        Ok(row.is_some_and(|row| row.canonical == *canonical))
    }

    fn check_open(&self) -> Result<()> {
        if self.shared.adoption.is_stopped() {
            return Err(scan::closing());
        }
        Ok(())
    }
}

fn is_there(path: &Path) -> io::Result<bool> {
    match fs::metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if staged::is_absent(&error) => Ok(false),
        Err(error) => Err(error),
    }
}
