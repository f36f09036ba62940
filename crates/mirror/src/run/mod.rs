//! Runs: an image set goes from its registries to a target.

mod catalogs;
mod direct;
mod prepare;

use std::path::Path;

use model::Error;
use model::image_set::ImageSet;
use model::mirror_metadata::ImageType;
use oci::{Client, Reference};

use crate::content::{Content, Wanted};
use crate::progress::{Amount, Progress};
use crate::publish::{Limits, Published, Target};

pub use direct::direct;
pub use prepare::{Prepared, prepare};

/// What a run is given.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// For the sources.
    pub client: &'a Client,
    pub set: &'a ImageSet,
    pub limits: Limits,
    /// Whether images that are found inside content may be missing in their registries.
    pub skip_missing: bool,
    /// For what is temporary; it exists.
    pub workspace: &'a Path,
    /// Units: seconds since 1970.
    pub now: i64,
    pub progress: &'a Progress,
}

/// An image that is in the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirrored {
    /// The source, by digest.
    pub source: Reference,
    /// Where it is now, by tag.
    pub target: Reference,
    pub kind: ImageType,
}

/// A catalog that is in the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirroredCatalog {
    /// The name under which it is remembered.
    pub name: String,
    /// Where it is now, by tag.
    pub target: Reference,
}

/// What a run did.
#[derive(Debug, Default)]
pub struct Outcome {
    pub images: Vec<Mirrored>,
    pub catalogs: Vec<MirroredCatalog>,
    /// What is not there, and why.
    pub failed: Vec<(Wanted, Error)>,
    /// What people should know.
    pub notes: Vec<String>,
    /// What was sent.
    pub sent: Amount,
}

impl Outcome {
    /// What became of the images of `content`.
    ///
    /// Errors: the first failure, unless the run goes on then; Invalid – a name does not fit into the target.
    fn of(
        content: &Content,
        published: Published,
        target: &Target,
        limits: Limits,
    ) -> Result<Self, Error> {
        let mut outcome = Self {
            sent: published.sent,
            ..Self::default()
        };
        for (index, error) in published.failed {
            if !limits.goes_on {
                return Err(error);
            }
            let wanted = content.images[index].wanted.clone();
            outcome.failed.push((wanted, error));
        }
        for index in published.images {
            let image = &content.images[index];
            outcome.images.push(Mirrored {
                source: image.pinned(),
                target: Reference {
                    tag: Some(image.wanted.tag.clone()),
                    ..target.place(&image.wanted.repository)?
                },
                kind: image.wanted.kind,
            });
        }
        Ok(outcome)
    }
}
