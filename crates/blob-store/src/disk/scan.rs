//! Scan of the folder, without the index: its repositories, links and manifests.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _};
use std::path::Path;

use super::change::ContentName;
use super::layout::FolderLayout;
use super::staged;
use crate::{Result, StoreError};
use oci::{Algorithm, Digest, Hasher, Kind, MANIFEST_LIMIT_BYTES, Manifest, Repository};

const DOING: &str = "reading the storage folder";
/// Units: bytes. Read buffer of a rehash.
const REHASH_BYTES: usize = 256 * 1024;
/// Units: bytes. Longest link: `sha512:` and 128 digits; anything longer is no link.
const LINK_LIMIT_BYTES: u64 = 256;

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

/// The error of work that the closing store interrupts.
pub(super) fn closing() -> StoreError {
    let failed = StoreError::io("comparing the storage folder with its index");
    failed(io::ErrorKind::Interrupted.into())
}

/// Digest of a file. Errors: also Interrupted – `is_wanted` returned false.
pub(super) fn hash(
    mut file: &File,
    algorithm: Algorithm,
    is_wanted: impl Fn() -> bool,
) -> io::Result<Digest> {
    file.rewind()?;
    let mut hasher = Hasher::new(algorithm);
    let mut buffer = vec![0; REHASH_BYTES];
    loop {
        if !is_wanted() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            n => hasher.update(&buffer[..n]),
        }
    }
}
