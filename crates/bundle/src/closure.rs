//! The closure: every image that a file of the bundle names has to be inside.
//!
//! Nothing is listed by hand: references are found in the files themselves, the payload of release images and the catalogs
//! of operator indexes.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use model::Error;
use oci::Reference;

use crate::archives::ArchivedImages;
use crate::images::{ImageSet, path_in_registry};
use crate::manifest::ClosureImage;
use crate::payload;
use crate::references::References;

/// Placeholder of the host name in settings: the local registry.
const HOST: &str = "<host>";
/// Missing images that an error names; more are counted.
const SHOWN: usize = 50;

impl References {
    /// Adds the payloads of release images and the catalogs of operator indexes.
    ///
    /// Errors: the registry's; Invalid – a damaged image.
    pub(crate) async fn find_in_images(&mut self, images: &ImageSet) -> Result<(), Error> {
        for (name, location, digest) in &images.locations {
            payload::find(self, name, location, digest).await?;
        }
        Ok(())
    }

    /// The closure, when all of it is in `images` or in archives, and the images that may be elsewhere.
    ///
    /// Errors: Invalid – with every image that is not inside, and the places that name it.
    pub(crate) fn closure(
        self,
        images: &ImageSet,
        others: &ArchivedImages,
        is_elsewhere: impl Fn(&str) -> bool,
    ) -> Result<(Vec<ClosureImage>, Vec<ClosureImage>), Error> {
        let inside = Inside::new(images, others);
        let (mut closure, mut elsewhere) = (Vec::new(), Vec::new());
        let mut missing = Vec::new();
        for (image, places) in self.0 {
            let named_by: Vec<String> = places.into_iter().collect();
            if inside.has(&image) {
                closure.push(ClosureImage { image, named_by });
            } else if is_elsewhere(&image) {
                elsewhere.push(ClosureImage { image, named_by });
            } else {
                missing.push(format!("{image}, named by {}", named_by.join(" and ")));
            }
        }
        if missing.is_empty() {
            return Ok((closure, elsewhere));
        }
        let count = missing.len();
        let subject = if count == 1 {
            "1 image is".to_owned()
        } else {
            format!("{count} images are")
        };
        let mut text = format!("{subject} named and not inside:");
        for line in missing.iter().take(SHOWN) {
            text.push_str("\n  ");
            text.push_str(line);
        }
        if count > SHOWN {
            write!(text, "\n  and {} more", count - SHOWN).ok();
        }
        text.push_str("\nAdd them with --image, or the archives that have them with --archives.");
        Err(Error::invalid("bundle", text))
    }
}

/// Whether the reference names the local registry of the installed host.
pub fn is_of_local_registry(image: &str) -> bool {
    image.starts_with(HOST)
}

struct Inside<'a> {
    names: BTreeSet<&'a str>,
    paths: BTreeSet<String>,
    images: &'a ImageSet,
    others: &'a ArchivedImages,
}

impl<'a> Inside<'a> {
    fn new(images: &'a ImageSet, others: &'a ArchivedImages) -> Self {
        let names: BTreeSet<&str> = images.images().iter().map(|image| &*image.name).collect();
        let paths = names.iter().map(|name| path_in_registry(name));
        Self {
            paths: paths.collect(),
            names,
            images,
            others,
        }
    }

    fn has(&self, image: &str) -> bool {
        if self.names.contains(image) || self.others.names.contains(image) {
            return true;
        }
        if let Some(rest) = image.strip_prefix(HOST) {
            let path = rest.split_once('/').map(|(_, path)| path);
            return path.is_some_and(|path| self.paths.contains(path));
        }
        let reference: Option<Reference> = image.parse().ok();
        let digest = reference.and_then(|reference| reference.digest);
        digest.is_some_and(|digest| {
            self.images.has_digest(&digest) || self.others.digests.contains(&digest)
        })
    }
}
