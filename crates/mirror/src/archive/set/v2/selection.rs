//! The images that a configuration selects, as the storage tree has them.

use model::Error;
use model::image_set::{ImageSelection, MirrorSelection};
use model::mirror_metadata::ImageType;
use oci::{Digest, Reference, Registry, Repository, Tag, Transport};

use super::tree::StorageTree;
use super::{catalogs, charts, releases};
use crate::archive::set::Set;
use crate::config::expression;
use crate::content::{ResolvedImage, SelectedImage, Why};
use crate::image_source::ImageSource;
use crate::names;
use crate::platform::graph_image_name;

/// Registry of the upgrade graph's image, which v2 builds in its cache.
const CACHE: &str = "localhost";

/// The images that a configuration selects.
#[derive(Debug)]
pub(super) struct Selection<'a> {
    pub(super) set: &'a Set,
    pub(super) tree: &'a StorageTree,
    pub(super) images: Vec<ResolvedImage>,
    /// Images that the tree does not have.
    pub(super) absent: Vec<SelectedImage>,
}

impl<'a> Selection<'a> {
    /// Blocking. Errors: Invalid – a malformed name or file; Internal – the archive cannot be read.
    pub(super) fn of(
        set: &'a Set,
        tree: &'a StorageTree,
        mirror: &MirrorSelection,
    ) -> Result<Self, Error> {
        let mut selection = Self {
            set,
            tree,
            images: Vec::new(),
            absent: Vec::new(),
        };
        releases::add(&mut selection)?;
        if mirror.platform.graph {
            let name = graph_image_name()?;
            let source = Reference {
                registry: Registry::Host(CACHE.to_owned()),
                repository: name.0.clone(),
                tag: Some(name.1.clone()),
                digest: None,
            };
            selection.add(name, source, ImageType::CincinnatiGraph);
        }
        for operator in &mirror.operators {
            catalogs::add(&mut selection, operator)?;
        }
        for image in &mirror.additional_images {
            let source = if ImageSource::is_layout(&image.name) {
                in_layout(image)?
            } else {
                names::reference(&image.name)?
            };
            let name = names::v2::additional(image, &source)?;
            selection.add(name, source, ImageType::Generic);
        }
        charts::add(&mut selection, mirror)?;
        let mut blocked = Vec::new();
        for pattern in &mirror.blocked_images {
            let wrong = |reason| Error::invalid("blockedImages", reason);
            blocked.push(expression(&pattern.name).map_err(wrong)?);
        }
        selection.absent.retain(|image| {
            let source = image.source.to_string();
            !blocked.iter().any(|pattern| pattern.is_match(&source))
        });
        Ok(selection)
    }

    /// Adds the image that the tree has under a name.
    pub(super) fn add(
        &mut self,
        (repository, tag): (Repository, Tag),
        source: Reference,
        kind: ImageType,
    ) {
        let digest = self.tree.tagged(&repository, &tag).cloned();
        self.put((repository, tag), source, kind, digest);
    }

    /// Adds an image under a name, with its digest if the tree has it.
    pub(super) fn put(
        &mut self,
        (repository, tag): (Repository, Tag),
        source: Reference,
        kind: ImageType,
        digest: Option<Digest>,
    ) {
        let wanted = SelectedImage {
            source,
            repository,
            tag,
            kind,
            why: vec![Why::Archive],
            platforms: Vec::new(),
            may_be_missing: false,
        };
        match digest {
            Some(digest) => self.images.push(ResolvedImage { wanted, digest }),
            None => self.absent.push(wanted),
        }
    }
}

/// The reference of an image in a folder, which has the folder's path as its name.
fn in_layout(image: &ImageSelection) -> Result<Reference, Error> {
    let path = Transport::split(&image.name).1;
    let repository = path.trim_matches('/').parse();
    let repository =
        repository.map_err(|e: Error| Error::invalid(image.name.clone(), e.to_string()));
    Ok(Reference {
        registry: Registry::Layout(path.into()),
        repository: repository?,
        tag: None,
        digest: None,
    })
}
