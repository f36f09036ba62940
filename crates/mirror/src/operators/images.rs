//! The images of chosen bundles.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use catalog::cache::CatalogCache;
use catalog::content::Bundle;
use model::Error;
use model::mirror_metadata::ImageType;
use oci::{Digest, Reference, Target};

use super::choice::{Choice, with_package};
use crate::config::ImageSource;
use crate::content::{SelectedImage, Why};
use crate::names;

/// The catalog whose images are collected.
#[derive(Debug, Clone)]
pub struct CatalogInfo {
    /// The catalog's name in messages.
    pub catalog: String,
    /// Whether it is an image layout.
    pub is_folder: bool,
    /// Whether missing images are skipped.
    pub skip_missing: bool,
}

/// The images of all chosen bundles and their related images, each once, and malformed references with their reasons.
///
/// Errors: the catalog cannot be read.
pub fn wanted(
    cache: &CatalogCache,
    choice: &Choice,
    of: &CatalogInfo,
) -> Result<(Vec<SelectedImage>, Vec<Error>), Error> {
    let mut found = FoundImages {
        of,
        wanted: BTreeMap::new(),
        order: Vec::new(),
        unusable: Vec::new(),
    };
    for (name, part) in choice {
        let bundles: Vec<&String> = part.channels.values().flatten().collect();
        with_package(cache, name, |package| {
            for bundle in bundles.iter().filter_map(|bundle| package.bundle(bundle)) {
                found.bundle(name, bundle);
            }
        })?;
    }
    let FoundImages {
        mut wanted,
        order,
        unusable,
        ..
    } = found;
    let wanted = order.iter().filter_map(|text| wanted.remove(text));
    Ok((wanted.collect(), unusable))
}

struct FoundImages<'a> {
    of: &'a CatalogInfo,
    wanted: BTreeMap<String, SelectedImage>,
    order: Vec<String>,
    unusable: Vec<Error>,
}

impl FoundImages<'_> {
    fn bundle(&mut self, package: &str, bundle: &Bundle<'_>) {
        let (catalog, package) = (self.of.catalog.clone(), package.to_owned());
        let name = bundle.name.to_owned();
        let why = Why::Bundle {
            catalog: catalog.clone(),
            package: package.clone(),
            bundle: name.clone(),
        };
        self.image(&bundle.image, why);
        for related in bundle
            .related_images
            .iter()
            .filter(|it| it.image != bundle.image)
        {
            let why = Why::Related {
                catalog: catalog.clone(),
                package: package.clone(),
                bundle: name.clone(),
            };
            self.image(&related.image, why);
        }
    }

    fn image(&mut self, text: &str, why: Why) {
        // A bundle may embed its objects instead, and some authors leave entries empty.
        if text.is_empty() {
            return;
        }
        match self.wanted.entry(text.to_owned()) {
            Entry::Occupied(mut known) => {
                let known = &mut known.get_mut().why;
                if !known.contains(&why) {
                    known.push(why);
                }
            }
            Entry::Vacant(free) => match names::reference(text) {
                Ok(source) => {
                    self.order.push(text.to_owned());
                    free.insert(SelectedImage {
                        repository: source.canonical().repository,
                        tag: tag(&source, self.of.is_folder),
                        source,
                        kind: ImageType::OperatorBundle,
                        why: vec![why],
                        platforms: Vec::new(),
                        may_be_missing: self.of.skip_missing,
                    });
                }
                Err(error) => {
                    let reason = format!("{why}: {error}");
                    self.unusable.push(Error::invalid(text.to_owned(), reason));
                }
            },
        }
    }
}

/// Gives an image that a catalog names by tag the tag of a pinned one, as the pruned catalog names it.
pub(crate) fn name_by_digest(wanted: &mut SelectedImage, digest: &Digest) {
    let Some(Why::Bundle { catalog, .. } | Why::Related { catalog, .. }) = wanted.why.first()
    else {
        return;
    };
    if wanted.source.digest.is_none() {
        let pinned = wanted.source.with_digest(digest.clone());
        wanted.tag = tag(&pinned, ImageSource::is_layout(catalog));
    }
}

fn tag(source: &Reference, is_folder: bool) -> oci::Tag {
    match source.target() {
        Target::Tag(tag) => tag,
        Target::Digest(digest) if is_folder => names::tag_of_digest(&digest, names::LAYOUT_DIGITS),
        Target::Digest(_) => names::tag_of_pinned(source),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_named_by_tag_get_the_tag_of_their_digest() {
        let digest = Digest::sha256(b"");
        let named = |catalog: &str, source: &str| {
            let source: Reference = source.parse().unwrap();
            let why = Why::Related {
                catalog: catalog.to_owned(),
                package: String::new(),
                bundle: String::new(),
            };
            let mut wanted = SelectedImage {
                repository: source.repository.clone(),
                tag: "v1".parse().unwrap(),
                source,
                kind: ImageType::OperatorBundle,
                why: vec![why],
                platforms: Vec::new(),
                may_be_missing: false,
            };
            name_by_digest(&mut wanted, &digest);
            wanted.tag.to_string()
        };
        let pinned: Reference = format!("r:1/acme/tool@{digest}").parse().unwrap();
        let hash = names::tag_of_pinned(&pinned).to_string();
        assert_eq!(named("r:1/index:v1", "r:1/acme/tool:v1"), hash);
        assert_eq!(named("oci:///folder", "r:1/acme/tool:v1"), "e3b0c4");
        assert_eq!(named("r:1/index:v1", &pinned.to_string()), "v1");
    }
}
