//! References inside of mirror archives: payloads of releases, and pruned catalogs.

use std::collections::BTreeSet;
use std::io::Read as _;

use mirror::archive::{FilePlace, Set};
use mirror::content::ImageContent;
use model::Error;
use model::mirror_metadata::ImageType;
use model::release_payload::IMAGE_REFERENCES;
use oci::{Digest, Kind};
use oci_client::layer::{LayerMatch, extract_files};

use crate::payload::components;
use crate::references::References;

/// Folder of pruned catalogs, and that of their file-based catalog within them.
const CATALOGS: &str = "catalogs/";
const CATALOG_FILES: &str = "/index/";
/// Units: bytes. Largest catalog.
const CATALOG_LIMIT_BYTES: u64 = 512 << 20;

/// Images of archives.
#[derive(Debug, Clone, Default)]
pub struct ArchivedImages {
    /// Digests of all manifests, also of the entries of indexes.
    pub(crate) digests: BTreeSet<Digest>,
    /// References by which images were selected.
    pub(crate) names: BTreeSet<String>,
    pub(crate) references: References,
}

impl ArchivedImages {
    /// Adds the images of a set, and the references in their payloads and catalogs. Manifests are compared with their
    /// digests, and their blobs have to be in the set.
    ///
    /// Blocking. Errors: Invalid – a manifest or blob is missing or damaged; Internal – a file cannot be read.
    pub(crate) fn add(&mut self, set: &Set) -> Result<(), Error> {
        self.digests.extend(set.manifests());
        let content = set.content()?;
        for image in &content.images {
            self.names.insert(image.wanted.source.to_string());
            if image.wanted.kind == ImageType::OcpRelease {
                let name = image.pinned().to_string();
                self.add_release(set, &content, &image.digest, &name)?;
            }
        }
        for (path, place) in set.below(CATALOGS) {
            if path.contains(CATALOG_FILES) {
                let text = text(&place)?;
                self.references.find(&format!("archives: {path}"), &text)?;
            }
        }
        Ok(())
    }

    /// Counts images of previous archives of the set as present: the registry has them already.
    ///
    /// Errors: Invalid – a malformed name in the metadata.
    pub(crate) fn add_previous(&mut self, set: &Set) -> Result<(), Error> {
        for image in set.all_images()? {
            self.names.insert(image.wanted.source.to_string());
            self.digests.insert(image.digest);
        }
        Ok(())
    }

    fn add_release(
        &mut self,
        set: &Set,
        content: &ImageContent,
        digest: &Digest,
        name: &str,
    ) -> Result<(), Error> {
        let scratch = tempfile::tempdir();
        let scratch = scratch.map_err(|e| Error::internal("making a temporary folder", e))?;
        for manifest in content.manifests_of(digest) {
            let Kind::Image { layers, .. } = &manifest.kind else {
                continue;
            };
            // The last layer has it; without one here, a previous archive of the set has it.
            for layer in layers.iter().rev() {
                let Some(place) = set.blob(&layer.digest) else {
                    continue;
                };
                let wanted = [IMAGE_REFERENCES.to_owned()];
                let found = extract_files(place.open()?, &wanted, scratch.path())?;
                if let Some(LayerMatch::File(file)) = found.get(IMAGE_REFERENCES) {
                    let text = std::fs::read_to_string(file);
                    let text =
                        text.map_err(|e| Error::internal("reading a file of an image", e))?;
                    components(&mut self.references, name, &text)?;
                    break;
                }
            }
        }
        Ok(())
    }
}

fn text(place: &FilePlace) -> Result<String, Error> {
    if place.size > CATALOG_LIMIT_BYTES {
        let what = "catalog of an archive";
        let limit = CATALOG_LIMIT_BYTES;
        return Err(Error::TooLarge { what, limit });
    }
    let mut text = String::new();
    let read = place.open()?.read_to_string(&mut text);
    let failed = |e| Error::internal(format!("reading {}", place.file), e);
    read.map(|_| text).map_err(failed)
}
