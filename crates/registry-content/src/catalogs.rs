//! Operator catalogs: found by the tags of platform versions, confirmed by their label, with the mirrors of the images
//! that their operators need.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use catalog::bundle_images;
use catalog::image::FOLDER_LABEL;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use model::Error;
use oci::{Digest, Reference, Repository};
use oci_client::Client;
use oci_client::image::{FolderLimits, ImageLocation};

use crate::payload::is_closed;
use crate::{HeldCatalog, HeldMirror};

/// Files of a catalog, and their bytes: those of the largest public ones are a tenth of it.
const LIMITS: FolderLimits = FolderLimits {
    files: 100_000,
    bytes: 1 << 30,
};
/// Repositories that the operators of a catalog name at most; those of the largest public one name a thousand.
const MAX_REPOSITORIES: usize = 5_000;
/// Longest name of one. Units: bytes.
const NAME_BYTES: usize = 255;
/// Repositories that are looked for at a time.
const CONCURRENT: usize = 8;

/// Platform version of the tag of a catalog, `v4.18`; none of other tags.
pub(crate) fn platform_version(tag: &str) -> Option<&str> {
    let version = tag.strip_prefix('v')?;
    let (major, minor) = version.split_once('.')?;
    let is_number = |text: &str| text.parse::<u16>().is_ok_and(|it| it.to_string() == text);
    (is_number(minor) && is_number(major) && major != "0").then_some(version)
}

/// Reader of catalogs in one registry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CatalogReader<'a> {
    pub(crate) client: &'a Client,
    pub(crate) namespace: &'a str,
    /// Folder of its own, for the files of a catalog.
    pub(crate) scratch: &'a Path,
}

impl CatalogReader<'_> {
    /// Reads the catalog in an image; none if it has none.
    ///
    /// Errors: Invalid, TooLarge – of this image; Internal – of the scratch folder; those of the registry.
    pub(crate) async fn catalog(
        &self,
        image: &Reference,
        version: &str,
        digest: &Digest,
    ) -> Result<Option<HeldCatalog>, Error> {
        let location = ImageLocation::Registry {
            client: self.client.clone(),
            reference: image.clone(),
        };
        let found = location.image(digest).await?;
        let labels = found.labels().await?;
        let Some(folder) = labels.get(FOLDER_LABEL) else {
            return Ok(None);
        };
        let (files, content) = (self.scratch.join("files"), self.scratch.join("catalog"));
        let (own, emptied) = (self.scratch.to_owned(), [files.clone(), content.clone()]);
        blocking(move || empty(&own, &emptied)).await?;
        found.fetch_folder(folder, LIMITS, &files, &content).await?;
        let own = self.scratch.to_owned();
        let images = blocking(move || {
            let images = images(&content);
            // Those of a killed server are removed by the next reading.
            let _ = std::fs::remove_dir_all(own);
            images
        });
        let mut catalog = HeldCatalog {
            image: image.to_string(),
            digest: digest.to_string(),
            version: version.to_owned(),
            missing: images.await?.into_values().collect(),
            mirrors: BTreeSet::new(),
            tag_mirrors: BTreeSet::new(),
        };
        self.complete(image, &mut catalog, |_| true).await?;
        Ok(Some(catalog))
    }

    /// Looks for the missing images of a catalog in the repositories that may have them now.
    ///
    /// Errors: those of the registry.
    pub(crate) async fn complete(
        &self,
        image: &Reference,
        catalog: &mut HeldCatalog,
        may_have: impl Fn(&Repository) -> bool,
    ) -> Result<(), Error> {
        let namespaces = namespaces(image, self.namespace);
        let look = |sample: String| {
            let mut places = places(&sample, image, &namespaces);
            places.retain(|place| may_have(&place.repository));
            async move {
                let place = self.first_held(places).await?;
                Ok::<_, Error>((sample, place))
            }
        };
        let sought: Vec<_> = std::mem::take(&mut catalog.missing)
            .into_iter()
            .map(look)
            .collect();
        let mut sought = stream::iter(sought).buffered(CONCURRENT);
        while let Some((sample, place)) = sought.try_next().await? {
            match place {
                Some(place) if place.digest.is_some() => {
                    catalog.mirrors.extend(HeldMirror::of(&sample, &place));
                }
                Some(place) => catalog.tag_mirrors.extend(HeldMirror::of(&sample, &place)),
                None => catalog.missing.push(sample),
            }
        }
        Ok(())
    }

    /// The first place that has an image.
    async fn first_held(&self, places: Vec<Reference>) -> Result<Option<Reference>, Error> {
        for place in places {
            match self.client.manifest_digest(&place).await {
                Ok(Some(_)) => return Ok(Some(place)),
                Ok(None) => {}
                Err(error) if is_closed(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// Where an image may be in the registry of its catalog.
fn places(image: &str, catalog: &Reference, namespaces: &[String]) -> Vec<Reference> {
    let Ok(image) = image.parse::<Reference>() else {
        return Vec::new();
    };
    let own = (image.registry == catalog.registry).then(|| image.clone());
    let below = namespaces.iter().filter_map(|namespace| {
        let path = image.repository.as_str();
        let path = if namespace.is_empty() {
            path.to_owned()
        } else {
            format!("{namespace}/{path}")
        };
        Some(Reference {
            registry: catalog.registry.clone(),
            repository: path.parse().ok()?,
            ..image.clone()
        })
    });
    own.into_iter().chain(below).collect()
}

/// Where mirroring tools may have put the images of a catalog's operators: they keep their paths below one namespace, which
/// is a part of the catalog's own path.
fn namespaces(catalog: &Reference, namespace: &str) -> Vec<String> {
    let path = catalog.repository.as_str();
    let folders = path.rmatch_indices('/').map(|(end, _)| &path[..end]);
    let is_inside = |place: &&str| {
        let below = place.strip_prefix(namespace);
        namespace.is_empty() || below.is_some_and(|it| it.is_empty() || it.starts_with('/'))
    };
    let mut found: Vec<String> = Vec::new();
    for place in [namespace].into_iter().chain(folders).filter(is_inside) {
        if !found.iter().any(|it| it == place) {
            found.push(place.to_owned());
        }
    }
    found
}

fn empty(folder: &Path, inside: &[PathBuf]) -> Result<(), Error> {
    let doing = || format!("making the folder {}", folder.display());
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(Error::internal(doing(), error));
        }
        _ => {}
    }
    for folder in inside {
        std::fs::create_dir_all(folder).map_err(|error| Error::internal(doing(), error))?;
    }
    Ok(())
}

/// An image of each repository that the bundles of a catalog name, one by digest and one by tag: clusters have mirrors for
/// each of these ways.
///
/// Errors: Invalid – they name too many.
fn images(folder: &Path) -> Result<BTreeMap<(String, bool), String>, Error> {
    let mut images = BTreeMap::new();
    // Other documents are judged by those that serve the catalog.
    let read = catalog::read(folder, NonZeroUsize::MIN, |document| {
        if images.len() <= MAX_REPOSITORIES {
            let named = bundle_images(&document).unwrap_or_default().into_iter();
            for image in named.filter(|image| image.len() <= NAME_BYTES) {
                let Ok(parsed) = image.parse::<Reference>() else {
                    continue;
                };
                let repository = parsed.without_version().to_string();
                let key = (repository, parsed.digest.is_some());
                // The last is mostly the newest, which a run that keeps the whole catalog has mirrored.
                images.insert(key, image);
            }
        }
        Ok::<(), Infallible>(())
    });
    let Ok(_problems) = read;
    if images.len() > MAX_REPOSITORIES {
        let reason = format!("its operators name more than {MAX_REPOSITORIES} repositories");
        return Err(Error::invalid("catalog", reason));
    }
    Ok(images)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Error::internal("reading a catalog", error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_catalogs_are_recognised() {
        for (tag, expected) in [
            ("v4.18", Some("4.18")),
            ("v5.0", Some("5.0")),
            ("v0.1", None),
            ("v4.18.1", None),
            ("v4.018", None),
            ("v4.-1", None),
            ("4.18", None),
            ("latest", None),
        ] {
            assert_eq!(platform_version(tag), expected, "{tag}");
        }
    }

    #[test]
    fn images_are_looked_for_below_the_namespace_of_a_mirroring_run() {
        let of = |image: &str, namespace| namespaces(&image.parse().unwrap(), namespace);
        assert_eq!(
            of("r:5000/ocp/redhat/redhat-operator-index:v4.18", ""),
            ["", "ocp/redhat", "ocp"]
        );
        assert_eq!(
            of("r:5000/ocp/redhat/redhat-operator-index:v4.18", "ocp"),
            ["ocp", "ocp/redhat"]
        );
        assert_eq!(of("r:5000/redhat-operator-index:v4.18", ""), [""]);
    }
}
