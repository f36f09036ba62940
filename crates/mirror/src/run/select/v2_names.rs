//! Names of the peer's v2 for selected images, in place of those of its v1.

use std::collections::HashMap;

use model::Error;
use model::image_set::ImageSelection;

use crate::additional_images::is_distinguished;
use crate::image_source::ImageSource;
use crate::names::{self, v2};
use crate::section::Section;
use crate::select::Selected;

/// Renames catalogs, and images that their sources name by digest. Releases have the same names in both.
///
/// Errors: Invalid – the name of a catalog's folder is no repository.
pub(super) fn rename(selected: &mut Selected, additional: &[ImageSelection]) -> Result<(), Error> {
    let mut written = HashMap::new();
    let named = additional.iter().filter(|it| it.target_repo.is_empty());
    for image in named.filter(|it| !ImageSource::is_layout(&it.name)) {
        let source = names::reference(&image.name)?;
        let (repository, _) = v2::additional(image, &source)?;
        written.entry(source).or_insert(repository);
    }
    for wanted in &mut selected.wanted {
        let is_named_by_v1 = match Section::of(wanted.kind) {
            Some(Section::Operator) => true,
            // Other tags are those of the configuration.
            Some(Section::Generic) => is_distinguished(wanted),
            Some(Section::Release) | None => false,
        };
        if is_named_by_v1 && wanted.source.registry.folder().is_none() {
            wanted.tag = v2::tag(&wanted.source);
        }
        match Section::of(wanted.kind) {
            // A catalog's image without a host is in the namespace that completes its name.
            Some(Section::Operator) => wanted.repository = wanted.source.repository.clone(),
            Some(Section::Generic) if wanted.repository == wanted.source.canonical().repository => {
                if let Some(repository) = written.get(&wanted.source) {
                    wanted.repository = repository.clone();
                }
            }
            Some(Section::Generic | Section::Release) | None => {}
        }
    }
    for catalog in &mut selected.catalogs {
        catalog.repository = v2::catalog_repository(&catalog.operator)?;
        let digest = &catalog.opened.digest;
        let tag = v2::catalog_tag(&catalog.operator)?;
        catalog.tag = tag.unwrap_or_else(|| v2::tag_of_digest(digest));
    }
    Ok(())
}
