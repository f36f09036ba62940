//! Which images of the storage tree a configuration selects.

use model::Error;
use model::image_set::{ImageSelection, MirrorSelection};
use model::mirror_metadata::ImageType;
use oci::{Reference, Registry, Transport};

use super::selection::Selection;
use super::tree::StorageTree;
use super::{catalogs, charts, releases};
use crate::archive::set::Set;
use crate::config::expression;
use crate::image_source::ImageSource;
use crate::names;
use crate::platform::graph_image_name;

/// Registry of the upgrade graph's image, which v2 builds in its cache.
const CACHE: &str = "localhost";

/// Selects the images of the configuration `mirror`.
///
/// Blocking. Errors: Invalid – a malformed name or file; Internal – the archive cannot be read.
pub(super) fn select<'a>(
    set: &'a Set,
    tree: &'a StorageTree,
    mirror: &MirrorSelection,
) -> Result<Selection<'a>, Error> {
    let mut selection = Selection {
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
