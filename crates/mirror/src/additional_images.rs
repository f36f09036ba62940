//! Images that are named one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use model::Error;
use model::image_set;
use model::mirror_metadata::ImageType;
use oci::{Platform, Reference, Registry, Repository, Tag, Target};
use oci_client::image::Layout;

use crate::content::{SelectedImage, Why};
use crate::image_source::ImageSource;
use crate::names;

/// Tag of images without one.
const LATEST: &str = "latest";
/// Hexadecimal digits of a digest that distinguish untagged images of one repository.
const DIGITS: usize = 8;

/// The additional images of a configuration: in registries, and in image layouts.
///
/// Errors: Invalid – a malformed reference or name; NotFound – a layout or an image in it.
pub(crate) async fn from_configuration(
    images: &[image_set::ImageSelection],
) -> Result<Vec<SelectedImage>, Error> {
    let mut wanted = Vec::new();
    for image in images {
        if let Ok(ImageSource::Layout(layout)) = image.name.parse() {
            let image = image.clone();
            let read = tokio::task::spawn_blocking(move || in_layout(layout, &image)).await;
            let read = read.map_err(|e| Error::internal("reading an image layout", e))?;
            wanted.extend(read?);
        } else {
            wanted.push(additional_image(image, Why::Additional)?);
        }
    }
    Ok(wanted)
}

/// An image in a registry.
///
/// Errors: Invalid – a malformed reference or name.
pub(crate) fn additional_image(
    image: &image_set::ImageSelection,
    why: Why,
) -> Result<SelectedImage, Error> {
    named(names::reference(&image.name)?, image, why)
}

/// An image in a folder, or all that have names there where the configuration names none.
///
/// Blocking.
fn in_layout(
    layout: Layout,
    image: &image_set::ImageSelection,
) -> Result<Vec<SelectedImage>, Error> {
    let names = match &layout.name {
        Some(_) => Vec::new(),
        None => layout.names()?,
    };
    let is_renamed = !image.target_repo.is_empty() || !image.target_tag.is_empty();
    let layouts = match names.len() {
        0 | 1 => vec![layout],
        _ if is_renamed => {
            let reason = "it holds several images, which cannot all have one name: name one, as in oci://FOLDER:NAME";
            return Err(Error::invalid(image.name.clone(), reason));
        }
        _ => {
            let folder = layout.folder;
            let one = |name| Layout {
                folder: folder.clone(),
                name: Some(name),
            };
            names.into_iter().map(one).collect()
        }
    };
    let images = layouts.iter();
    let images = images.map(|layout| named(reference(layout, image)?, image, Why::Additional));
    images.collect()
}

/// The image, by digest. The folder's name stands in for a repository that the image's name lacks.
fn reference(layout: &Layout, image: &image_set::ImageSelection) -> Result<Reference, Error> {
    let name = match &layout.name {
        Some(name) => name.clone(),
        None => layout.names()?.pop().unwrap_or_default(),
    };
    let (repository, tag) = match name.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => (repository, tag),
        _ if name.contains('/') => (name.as_str(), "latest"),
        _ if name.is_empty() => ("", "latest"),
        _ => ("", name.as_str()),
    };
    let repository = match repository {
        "" => {
            let folder = layout.folder.file_name().unwrap_or_default();
            folder.to_string_lossy().to_lowercase()
        }
        // Some tools write the whole reference.
        written => match written.parse::<Reference>() {
            Ok(whole) => whole.repository.to_string(),
            Err(_) => written.to_owned(),
        },
    };
    Ok(Reference {
        registry: Registry::Layout(layout.folder.clone()),
        repository: own_or_given(&repository, &image.target_repo, image)?,
        tag: Some(own_or_given(tag, &image.target_tag, image)?),
        digest: Some(layout.digest()?),
    })
}

/// A name of the layout, or the configured one where it is malformed.
fn own_or_given<T: FromStr<Err = Error>>(
    own: &str,
    given: &str,
    image: &image_set::ImageSelection,
) -> Result<T, Error> {
    own.parse().or_else(|error| match given {
        "" => {
            let reason = format!("{error}; choose a name with targetRepo and targetTag");
            Err(Error::invalid(image.name.clone(), reason))
        }
        given => given.parse(),
    })
}

/// Adds its name in the target.
fn named(
    source: Reference,
    image: &image_set::ImageSelection,
    why: Why,
) -> Result<SelectedImage, Error> {
    let repository = match image.target_repo.as_str() {
        "" => source.canonical().repository,
        other => other.parse()?,
    };
    let tag = match (image.target_tag.as_str(), source.target()) {
        ("", Target::Tag(tag)) => tag,
        ("", Target::Digest(_)) => match &source.tag {
            Some(tag) => tag.clone(),
            None => LATEST.parse()?,
        },
        (other, _) => other.parse()?,
    };
    Ok(SelectedImage {
        source,
        repository,
        tag,
        kind: ImageType::Generic,
        why: vec![why],
        platforms: platforms(&image.platforms),
        may_be_missing: false,
    })
}

/// Gives images named by digest unique tags, where several would have one name.
pub(crate) fn make_unique(wanted: &mut [SelectedImage]) {
    let mut users: BTreeMap<(Repository, Tag), BTreeSet<Reference>> = BTreeMap::new();
    for it in &*wanted {
        let place = (it.repository.clone(), it.tag.clone());
        users.entry(place).or_default().insert(it.source.clone());
    }
    for it in wanted {
        let place = (it.repository.clone(), it.tag.clone());
        if let Some(digest) = &it.source.digest
            && users.get(&place).is_some_and(|users| users.len() > 1)
        {
            it.tag = names::tag_of_digest(digest, DIGITS);
        }
    }
}

/// Whether the image has its tag from [`named`] or [`make_unique`], since its source has none.
pub(crate) fn is_distinguished(image: &SelectedImage) -> bool {
    let (None, Some(digest)) = (&image.source.tag, &image.source.digest) else {
        return false;
    };
    image.tag.as_str() == LATEST || image.tag == names::tag_of_digest(digest, DIGITS)
}

pub(crate) fn platforms(instances: &[image_set::Instance]) -> Vec<Platform> {
    let platforms = instances.iter().map(|it| Platform {
        architecture: it.architecture.clone(),
        os: it.os.clone(),
    });
    platforms.collect()
}
