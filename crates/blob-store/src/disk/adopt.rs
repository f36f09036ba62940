//! Reading a folder into the index: one that distribution wrote, or one whose index was lost.

use std::fs;

use super::change::ContentName;
use super::committer::now;
use super::layout::FolderLayout;
use super::scan::{closing, folders, link, links, manifest};
use super::staged;
use super::tables::{BLOB, MANIFEST, Tables};
use crate::{Result, StoreError};
use oci::{Digest, Repository, Tag};

const DOING: &str = "reading the storage folder";

/// Replaces the rows of one repository by its links in the folder.
///
/// Errors: also Interrupted – `is_wanted` returned false.
pub(super) fn repository(
    layout: &FolderLayout,
    tables: &mut Tables<'_>,
    repository: &Repository,
    is_wanted: impl Fn() -> bool,
) -> Result<()> {
    let check = || if is_wanted() { Ok(()) } else { Err(closing()) };
    tables.forget(repository)?;
    let layers = links(&layout.layers(repository))?;
    let manifests = layout.manifests(repository);
    let is_listed = manifests.is_dir();
    if is_listed || !layers.is_empty() {
        tables.note_adopted(repository, now())?;
    }
    for name in layers {
        check()?;
        match fs::metadata(layout.data(&name.canonical)) {
            Ok(found) => tables.add_blob(repository, &name, found.len())?,
            Err(error) if staged::is_absent(&error) => {
                dangling(repository, &name);
                tables.add_dangling(repository, &name, BLOB)?;
            }
            Err(error) => return Err(StoreError::io(DOING)(error)),
        }
    }
    if !is_listed {
        return Ok(());
    }
    tables.add_repository(repository)?;
    for name in links(&layout.revisions(repository))? {
        check()?;
        match manifest(layout, &name.canonical) {
            Ok(Some(manifest)) => tables.add_manifest(repository, &name, &manifest)?,
            Ok(None) => {
                dangling(repository, &name);
                tables.add_dangling(repository, &name, MANIFEST)?;
            }
            Err(error @ StoreError::Damaged { .. }) => {
                tracing::error!(repo.name = %repository, %error, "a manifest cannot be read and is not served");
                // A dangling row keeps its bytes from being collected as garbage.
                tables.add_dangling(repository, &name, MANIFEST)?;
            }
            Err(error) => return Err(error),
        }
    }
    for name in folders(&layout.tags(repository)).map_err(StoreError::io(DOING))? {
        check()?;
        let Ok(tag) = name.parse() else { continue };
        // After kill -9, distribution leaves tag folders without a current link: those are no tags.
        if let Some(current) = link(&layout.tag_current(repository, &tag))? {
            let history = links(&layout.tag_digests(repository, &tag))?;
            let requested = requested(layout, repository, &tag, &current, &history);
            tables.set_tag(repository, &tag, requested)?;
        }
    }
    Ok(())
}

/// The digest of the latest push of a tag, of all aliases in the tag's history.
fn requested<'a>(
    layout: &FolderLayout,
    repository: &Repository,
    tag: &Tag,
    current: &'a Digest,
    history: &'a [ContentName],
) -> &'a Digest {
    let names = history.iter().filter(|name| name.canonical == *current);
    let latest = names.map(ContentName::requested).max_by_key(|name| {
        let link = layout.tag_history(repository, tag, name);
        fs::metadata(link).and_then(|found| found.modified()).ok()
    });
    latest.unwrap_or(current)
}

fn dangling(repository: &Repository, name: &ContentName) {
    let digest = &name.canonical;
    tracing::warn!(repo.name = %repository, %digest, "a link points at missing content");
}
