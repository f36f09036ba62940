//! Content of a target.

use std::collections::BTreeSet;
use std::path::Path;

use bytes::Bytes;
use model::Error;
use model::image_set::MirrorSelection;
use model::mirror_metadata::ImageType;
use oci::{Reference, Repository, live_image};
use serde_json::Value;

use super::file::Copied;
use crate::content::{ImageContent, ResolvedImage};
use crate::names;
use crate::operators::template;
use crate::platform::BootImageOffer;
use crate::publish::{MirrorTarget, Published};
use crate::section::Section;
use oci::artifact_tag;

/// Scheme of images in registries in `OS_IMAGES`.
const OCI: &str = "oci://";

/// Content that a run put into a target.
#[derive(Debug, Clone, Default)]
pub struct MirrorResults {
    pub images: Vec<MirroredImage>,
    /// Images that previous runs have put there, and that are still wanted.
    pub previous: Vec<MirroredImage>,
    pub catalogs: Vec<MirroredCatalog>,
    /// The image with the data of the upgrade graph in the target, by digest.
    pub graph: Option<Reference>,
    /// Signatures of releases, by the names of their files.
    pub signatures: Vec<(String, Bytes)>,
    /// Boot images of the target.
    pub boot_images: Vec<BootImageOffer>,
    /// Charts, for helm.
    pub charts: Vec<Copied>,
    /// Whether the target limits how many components its names have, and has joined the last ones of some.
    pub is_flattened: bool,
    /// Whether the target is a folder, from which clusters fetch nothing.
    pub is_folder: bool,
    /// Whether the target was reached without a certificate that is trusted here.
    pub is_insecure: bool,
}

/// An image in the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirroredImage {
    /// The source by digest.
    pub source: Reference,
    /// Its name in the target, with its tag.
    pub destination: Reference,
    pub kind: ImageType,
    /// Whether it is known by a tag, which the target has as well.
    pub is_tagged: bool,
}

/// A catalog in the target.
#[derive(Debug, Clone, PartialEq)]
pub struct MirroredCatalog {
    /// Its [unique name](names::catalog::unique_name).
    pub name: String,
    /// Its repository below the target's namespace.
    pub repository: Repository,
    /// Its name in the target, with its tag.
    pub destination: Reference,
    /// A CatalogSource to take the rest from.
    pub template: Option<Value>,
}

impl MirrorResults {
    /// The images of `content` that are in the target now, without catalogs. Images that `mirror` names by tag have that
    /// tag.
    ///
    /// Errors: Invalid – a name does not fit into the target.
    pub fn new(
        content: &ImageContent,
        published: &Published,
        target: &MirrorTarget,
        mirror: &MirrorSelection,
    ) -> Result<Self, Error> {
        let images = published.images.iter();
        let images = images.filter_map(|&it| content.images.get(it));
        Self::of(images, target, mirror)
    }

    /// The results for these images, published or not.
    ///
    /// Errors: as [`Self::new`].
    pub fn of<'a>(
        images: impl IntoIterator<Item = &'a ResolvedImage>,
        target: &MirrorTarget,
        mirror: &MirrorSelection,
    ) -> Result<Self, Error> {
        let host = target.registry.host();
        Ok(Self {
            images: mirrored(images, target, mirror)?,
            is_flattened: target.max_components > 0,
            is_folder: target.is_layout(),
            is_insecure: host.is_some_and(|host| target.client.is_insecure(host)),
            ..Self::default()
        })
    }

    /// Adds the images of previous runs: policies of this run replace earlier ones.
    ///
    /// Errors: as [`Self::new`].
    pub fn remember(
        &mut self,
        previous: &[ResolvedImage],
        target: &MirrorTarget,
        mirror: &MirrorSelection,
    ) -> Result<(), Error> {
        self.previous = mirrored(previous, target, mirror)?;
        Ok(())
    }

    /// Adds the catalogs and the upgrade graph among these images of the target: archives of the peer's v2 have them as images.
    ///
    /// Blocking. Errors: Invalid – a name does not fit into the target, or the template of a CatalogSource is malformed.
    pub(crate) fn add_built(
        &mut self,
        images: &[ResolvedImage],
        target: &MirrorTarget,
        mirror: &MirrorSelection,
    ) -> Result<(), Error> {
        for image in images {
            let wanted = &image.wanted;
            let place = target.place(&wanted.repository)?;
            if wanted.kind == ImageType::CincinnatiGraph {
                self.graph = Some(place.with_digest(image.digest.clone()));
            }
            if wanted.kind != ImageType::OperatorCatalog {
                continue;
            }
            let mut operators = mirror.operators.iter();
            let operator = operators.find(|it| {
                let tag = names::v2::catalog_tag(it).ok().flatten();
                let repository = names::v2::catalog_repository(it).ok();
                repository.as_ref() == Some(&wanted.repository)
                    && tag.is_none_or(|tag| tag == wanted.tag)
            });
            let name =
                operator.map_or_else(|| wanted.source.to_string(), names::catalog::unique_name);
            // It is a file of the machine that packed the archive, which may be another one.
            let template = operator.and_then(|it| it.target_catalog_source_template.as_deref());
            let template = template.filter(|file| Path::new(file).is_file());
            let template = template
                .map(|file| template::read(file, &name))
                .transpose()?;
            self.catalogs.push(MirroredCatalog {
                name,
                repository: wanted.repository.clone(),
                destination: Reference {
                    tag: Some(wanted.tag.clone()),
                    ..place
                },
                template,
            });
        }
        Ok(())
    }

    /// Adds the boot images that are in the target, with their addresses.
    ///
    /// Errors: Invalid – a name does not fit into the target.
    pub(crate) fn offer(
        &mut self,
        offers: &[BootImageOffer],
        target: &MirrorTarget,
    ) -> Result<(), Error> {
        let place = target.place(&live_image::repository()?)?;
        for offer in offers {
            let image = Reference {
                tag: Some(offer.tag()?),
                ..place.clone()
            };
            let mut all = self.images.iter().chain(&self.previous);
            if all.any(|it| it.destination == image) {
                let url = format!("{OCI}{image}");
                let offer = offer.clone();
                self.boot_images.push(BootImageOffer { url, ..offer });
            }
        }
        Ok(())
    }

    /// Whether catalogs name images by tag: clusters are led to those by tag policies alone.
    pub fn names_by_tag(&self) -> bool {
        let mut images = self.all_images();
        images.any(|it| it.is_tagged && Section::of(it.kind) == Some(Section::Operator))
    }

    /// Images of policies: those from image layouts have no name in a registry.
    pub(super) fn all_images(&self) -> impl Iterator<Item = &MirroredImage> {
        let all = self.images.iter().chain(&self.previous);
        all.filter(|image| image.source.registry.folder().is_none())
    }
}

fn mirrored<'a>(
    images: impl IntoIterator<Item = &'a ResolvedImage>,
    target: &MirrorTarget,
    mirror: &MirrorSelection,
) -> Result<Vec<MirroredImage>, Error> {
    let tagged = tagged(mirror);
    let images = images.into_iter();
    let images = images.filter(|image| image.wanted.kind != ImageType::OperatorCatalog);
    let mirrored = images.map(|image| {
        let wanted = &image.wanted;
        // Charts name images by tag, unless that is a digest.
        let is_of_chart = wanted.kind == ImageType::HelmImage;
        let is_tagged_by_chart =
            is_of_chart && artifact_tag::subject(wanted.tag.as_str()).is_none();
        let by_tag = Reference {
            tag: Some(wanted.tag.clone()),
            digest: None,
            ..wanted.source.clone()
        };
        Ok(MirroredImage {
            source: image.pinned(),
            destination: Reference {
                tag: Some(wanted.tag.clone()),
                ..target.place(&wanted.repository)?
            },
            kind: wanted.kind,
            is_tagged: wanted.is_known_by_tag() || is_tagged_by_chart || tagged.contains(&by_tag),
        })
    });
    mirrored.collect()
}

/// Additional images that are named by tag: metadata has them by digest only.
fn tagged(mirror: &MirrorSelection) -> BTreeSet<Reference> {
    let named = mirror.additional_images.iter();
    let named = named.filter_map(|image| names::reference(&image.name).ok());
    named
        .filter(|reference| reference.digest.is_none())
        .map(|reference| match reference.target() {
            oci::Target::Tag(tag) => Reference {
                tag: Some(tag),
                ..reference
            },
            oci::Target::Digest(_) => reference,
        })
        .collect()
}
