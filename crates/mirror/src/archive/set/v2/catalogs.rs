//! Catalogs, and the images that they name.

use std::collections::BTreeSet;
use std::path::PathBuf;

use catalog::{Document, bundle_images};
use model::Error;
use model::image_set::OperatorSelection;
use model::mirror_metadata::ImageType;
use oci::{Digest, Reference, Registry, Repository, Tag};

use super::selection::Selection;
use super::tree::StorageTree;
use crate::archive::set::Set;
use crate::archive::v2_paths::{self, CATALOG_FILES};
use crate::image_source::ImageSource;
use crate::names;
use crate::operators;

/// The largest public catalog takes a quarter, in one of its files. Units: bytes.
const FILE_LIMIT_BYTES: u64 = 512 << 20;

/// A catalog that the tree has: as it was filtered, or whole.
struct KeptCatalog {
    /// Its tag in the tree.
    tag: Tag,
    /// Folder of its files.
    folder: String,
}

/// Adds a catalog and the images that it names.
///
/// Errors: Invalid – a malformed name or file; Internal – the archive cannot be read.
pub(super) fn add(
    selection: &mut Selection<'_>,
    operator: &OperatorSelection,
) -> Result<(), Error> {
    let Selection { set, tree, .. } = *selection;
    let repository = names::v2::catalog_repository(operator)?;
    let given = names::v2::catalog_tag(operator)?;
    let by_digest = names::v2::catalog_digest(operator);
    let source = source(operator, &repository)?;
    let original = original(tree, &repository, given.as_ref(), by_digest);
    let kept = original.and_then(|it| kept(set, tree, operator, &repository, &it));
    let digest = kept
        .as_ref()
        .and_then(|kept| tree.tagged(&repository, &kept.tag));
    if let (Some(kept), Some(_)) = (&kept, digest) {
        for source in named_images(set, &kept.folder)? {
            let name = (source.repository.clone(), names::v2::tag(&source));
            selection.add(name, source, ImageType::OperatorBundle);
        }
    }
    let by_digest = || digest.map_or_else(|| names::v2::tag(&source), names::v2::tag_of_digest);
    let tag = given.unwrap_or_else(by_digest);
    let name = (repository, tag);
    selection.put(name, source, ImageType::OperatorCatalog, digest.cloned());
    Ok(())
}

/// The digest of the catalog at its source.
fn original(
    tree: &StorageTree,
    repository: &Repository,
    tag: Option<&Tag>,
    by_digest: Option<Digest>,
) -> Option<Digest> {
    by_digest.or_else(|| tree.tagged(repository, tag?).cloned())
}

/// The catalog in the workspace. Other configurations may have filtered it as well: the tag of this one is the digest of its
/// part. Where a version of the peer computes another, it has the packages, and is in this archive rather than in a previous one.
fn kept(
    set: &Set,
    tree: &StorageTree,
    operator: &OperatorSelection,
    repository: &Repository,
    original: &Digest,
) -> Option<KeptCatalog> {
    let component = names::v2::catalog_component(operator);
    let own = operators::filter_tags(operator, original).unwrap_or_default();
    if operators::is_whole(operator) {
        let by_digest = names::v2::tag_of_digest(original);
        let given = names::v2::catalog_tag(operator).ok().flatten();
        let files = |folder: String| format!("{folder}/{CATALOG_FILES}/");
        let whole = files(v2_paths::catalog(component, original));
        // Archives of ours have the files of whole catalogs where those of their parts are.
        let parts = own.iter();
        let mut parts =
            parts.map(|tag| files(v2_paths::filtered_catalog(component, original, tag)));
        let has_files = |folder: &String| set.below(folder).next().is_some();
        let part = parts.find(|part| has_files(part) && !has_files(&whole));
        return Some(KeptCatalog {
            tag: given.unwrap_or(by_digest),
            folder: part.unwrap_or(whole),
        });
    }
    let filtered = format!("{}/", v2_paths::filtered_catalogs(component, original));
    let tags = set.below(&filtered).filter_map(|(path, _)| {
        let (tag, _) = path.strip_prefix(&filtered)?.split_once('/')?;
        tag.parse().ok()
    });
    let tags: BTreeSet<String> = tags.map(|tag: Tag| tag.to_string()).collect();
    let candidates = tags.iter().filter_map(|tag| {
        let tag: Tag = tag.parse().ok()?;
        let digest = tree.tagged(repository, &tag)?;
        let folder = format!("{filtered}{tag}/{CATALOG_FILES}/");
        let is_here = set.blob(digest).is_some();
        let is_own = own.contains(&tag);
        let has_packages = packages(set, &folder) == selected_packages(operator);
        Some(((is_own, has_packages, is_here), KeptCatalog { tag, folder }))
    });
    let best = candidates.max_by_key(|(rank, _)| *rank);
    best.map(|(_, kept)| kept)
}

/// The packages of a filtered catalog, each of which has a folder.
fn packages<'a>(set: &'a Set, folder: &'a str) -> BTreeSet<&'a str> {
    let files = set.below(folder);
    let names = files.filter_map(|(path, _)| Some(path.strip_prefix(folder)?.split_once('/')?.0));
    names.collect()
}

fn selected_packages(operator: &OperatorSelection) -> BTreeSet<&str> {
    let packages = operator.packages.iter();
    packages.map(|package| package.name.as_str()).collect()
}

/// The images of all bundles.
fn named_images(set: &Set, folder: &str) -> Result<Vec<Reference>, Error> {
    let mut unread = None;
    let files = set.below(folder);
    let files = files.map_while(|(path, place)| match place.read(FILE_LIMIT_BYTES) {
        Ok(bytes) => Some((PathBuf::from(path), bytes.to_vec())),
        Err(error) => {
            unread = Some(error);
            None
        }
    });
    let mut named = BTreeSet::new();
    let each = |document: Document| {
        let images = bundle_images(&document);
        named.extend(images.map_err(|e| Error::invalid(document.origin.to_string(), e))?);
        Ok::<_, Error>(())
    };
    // Faults of documents were found when the catalog was filtered.
    catalog::read_files(files, catalog::cores(), each)?;
    if let Some(error) = unread {
        return Err(error);
    }
    let images = named.iter().filter_map(|name| names::reference(name).ok());
    Ok(images.collect())
}

/// The reference of a catalog; that of a folder is a layout.
fn source(operator: &OperatorSelection, repository: &Repository) -> Result<Reference, Error> {
    match operator.catalog.parse()? {
        ImageSource::Registry(reference) => Ok(reference),
        ImageSource::Layout(layout) => Ok(Reference {
            registry: Registry::Layout(layout.folder),
            repository: repository.clone(),
            tag: None,
            digest: None,
        }),
    }
}
