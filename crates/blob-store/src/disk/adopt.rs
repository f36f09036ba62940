//! Reading a folder into the index: one that distribution wrote, or one whose index was lost.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use super::change::ContentName;
use super::committer::now;
use super::compare::closing;
use super::layout::FolderLayout;
use super::staged;
use super::tables::{BLOB, MANIFEST, Tables};
use crate::{Result, StoreError};
use oci::{Algorithm, Digest, Kind, MANIFEST_LIMIT_BYTES, Manifest, Repository, Tag};

/// Units: bytes. Longest link: `sha512:` and 128 digits; anything longer is no link.
const LINK_LIMIT_BYTES: u64 = 256;
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

/// The manifest under a digest. Errors: Damaged – it has another digest, or is malformed.
pub(super) fn manifest(layout: &FolderLayout, canonical: &Digest) -> Result<Option<Manifest>> {
    let damaged = |why: String| StoreError::Damaged {
        what: format!("manifest {canonical}"),
        why,
    };
    let bytes = match read_bounded(&layout.data(canonical)) {
        Ok(bytes) => bytes,
        Err(error) if staged::is_absent(&error) => return Ok(None),
        Err(error) => return Err(StoreError::io("reading a manifest")(error)),
    };
    let manifest = Manifest::parse(bytes.into(), None).map_err(|e| damaged(e.to_string()))?;
    if manifest.digest != *canonical {
        let why = format!("its bytes have the digest {}", manifest.digest);
        return Err(damaged(why));
    }
    Ok(Some(manifest))
}

/// The manifest of a repository, with its signatures if it has some.
pub(super) fn manifest_of(
    layout: &FolderLayout,
    repository: &Repository,
    canonical: &Digest,
) -> Result<Option<Manifest>> {
    let found = manifest(layout, canonical)?;
    let is_old = |manifest: &Manifest| matches!(manifest.kind, Kind::Schema1 { .. });
    if !found.as_ref().is_some_and(is_old) {
        return Ok(found);
    }
    match read_bounded(&layout.signed(repository, canonical)) {
        Ok(signed) => {
            let signed = Manifest::parse(signed.into(), None).ok();
            Ok(signed
                .filter(|signed| signed.digest == *canonical)
                .or(found))
        }
        // Distribution stores no signatures.
        Err(error) if staged::is_absent(&error) => Ok(found),
        Err(error) => Err(StoreError::io("reading a manifest")(error)),
    }
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    if fs::metadata(path)?.len() > MANIFEST_LIMIT_BYTES as u64 {
        let why = "larger than any manifest";
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    fs::read(path)
}

/// Every repository with content, sorted.
///
/// Errors: also Interrupted – `is_wanted` returned false.
pub(super) fn repositories(
    layout: &FolderLayout,
    is_wanted: impl Fn() -> bool,
) -> Result<Vec<Repository>> {
    let failed = || StoreError::io(DOING);
    let mut found = having(layout, &["_manifests", "_layers"], is_wanted).map_err(failed())?;
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Repositories with a folder of one of these names. Errors: also Interrupted – `is_wanted` returned false.
pub(super) fn having(
    layout: &FolderLayout,
    wanted: &[&str],
    is_wanted: impl Fn() -> bool,
) -> io::Result<Vec<Repository>> {
    let root = layout.repositories();
    let mut found = Vec::new();
    let mut open = vec![String::new()];
    while let Some(parent) = open.pop() {
        if !is_wanted() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        for name in folders(&root.join(&parent))? {
            if wanted.contains(&name.as_str()) {
                found.extend(parent.parse::<Repository>());
            } else if !name.starts_with('_') {
                let path = if parent.is_empty() {
                    name
                } else {
                    format!("{parent}/{name}")
                };
                // Names outside the grammar, and all below them, are no repositories.
                open.extend(path.parse::<Repository>().map(|name| name.to_string()));
            }
        }
    }
    Ok(found)
}

/// Whether a repository has a link or a tag in the folder, also a dangling one.
pub(super) fn has_links(layout: &FolderLayout, repository: &Repository) -> Result<bool> {
    for folder in [layout.layers(repository), layout.revisions(repository)] {
        if !links(&folder)?.is_empty() {
            return Ok(true);
        }
    }
    let tags = layout.tags(repository);
    let names = folders(&tags).map_err(StoreError::io(DOING))?;
    Ok(names
        .iter()
        .any(|name| tags.join(name).join("current/link").exists()))
}

/// Content that has links in a folder, by algorithm and hash; malformed links are skipped.
pub(super) fn links(folder: &Path) -> Result<Vec<ContentName>> {
    let failed = || StoreError::io(DOING);
    let mut found = Vec::new();
    for algorithm in folders(folder).map_err(failed())? {
        let below = folder.join(&algorithm);
        for hex in folders(&below).map_err(failed())? {
            let path = below.join(&hex).join("link");
            if let Ok(name) = format!("{algorithm}:{hex}").parse::<Digest>()
                && let Some(canonical) = link(&path)?
                // Only a SHA-512 can be an alias.
                && (name == canonical || name.algorithm() != Algorithm::Sha256 || warn_mismatch(&path))
            {
                found.push(ContentName::new(canonical, &name));
            }
        }
    }
    Ok(found)
}

fn warn_mismatch(link: &Path) -> bool {
    tracing::warn!(link = %link.display(), "a damaged link is ignored: it names other content");
    false
}

/// The digest in a link; `None` when the link is missing or malformed.
pub(super) fn link(path: &Path) -> Result<Option<Digest>> {
    let mut text = String::new();
    let read =
        File::open(path).and_then(|file| file.take(LINK_LIMIT_BYTES).read_to_string(&mut text));
    match read {
        Ok(_) => {}
        Err(error) if staged::is_absent(&error) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
        Err(error) => return Err(StoreError::io("reading a link")(error)),
    }
    let digest = text.trim().parse();
    if let Err(error) = &digest {
        tracing::warn!(link = %path.display(), %error, "a damaged link is ignored");
    }
    Ok(digest.ok())
}

/// Names of the folders in `dir`; none when it is absent.
pub(super) fn folders(dir: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if staged::is_absent(&error) => return Ok(Vec::new()),
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
