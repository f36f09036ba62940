//! Runs: an image set goes from its registries to a target.

mod built_image;
mod catalogs;
mod direct;
mod explain;
mod graph;
mod pack;
mod prepare;
mod push;
mod remember;
mod settle;
mod unpack;

use std::path::Path;

use model::Error;
use model::image_set::{ImageSet, MirrorSelection};
use oci_client::Client;

use crate::content::{Content, Wanted};
use crate::platform::Sources;
use crate::progress::{Amount, Progress};
use crate::publish::{Limits, Published, Target};
use crate::results;

pub use direct::{Direct, PlannedCopy, direct, plan_direct};
pub use explain::{mapping, publication_mapping, reasons};
pub use pack::{Archives, Planned, pack, pack_what_is_there, plan};
pub use prepare::{Prepared, prepare};
pub use push::push_catalogs;
pub use unpack::{Publication, Unpacked, names_of, open, unpack};

/// What a run is given.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// For the sources.
    pub client: &'a Client,
    pub set: &'a ImageSet,
    /// Where releases of the platform are asked for.
    pub platform: &'a Sources,
    pub limits: Limits,
    /// Whether images that are found inside content may be missing in their registries.
    pub skip_missing: bool,
    /// Whether what is attached to images is carried with them: signatures, attestations, lists of components.
    pub with_attached: bool,
    pub catalogs: CatalogForm,
    /// For what is temporary; it exists.
    pub workspace: &'a Path,
    /// Units: seconds since 1970.
    pub now: i64,
    pub progress: &'a Progress,
}

/// How catalogs of operators come into a target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CatalogForm {
    /// With what is chosen of them. All images are named by digest: clusters are led to them by policies of any kind.
    #[default]
    Pinned,
    /// With what is chosen of them. Images are named as their source names them, and those by tag have it in the target.
    Tagged,
    /// As their sources have them, with packages whose images are not carried, and with their digests.
    Original,
}

/// What a run did.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What is in the target now.
    pub results: results::Outcome,
    /// What is not there, and why.
    pub failed: Vec<(Wanted, Error)>,
    /// Charts that could not be read.
    pub unread: Vec<Error>,
    /// What was sent.
    pub sent: Amount,
    /// Images that have left the target.
    pub pruned: usize,
    /// What should have left it, and could not be deleted.
    pub stayed: Vec<Error>,
    /// What results are copied of lies there.
    pub(crate) scratch: Option<tempfile::TempDir>,
    /// What is remembered of it in the end.
    memory: Option<settle::Memory>,
}

impl Outcome {
    /// What became of the images of `content`.
    ///
    /// Errors: the first failure, unless the run goes on then; Invalid – a name does not fit into the target.
    pub(crate) fn of(
        content: &Content,
        published: Published,
        target: &Target,
        mirror: &MirrorSelection,
        limits: Limits,
    ) -> Result<Self, Error> {
        let mut outcome = Self {
            results: results::Outcome::new(content, &published, target, mirror)?,
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
        Ok(outcome)
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(Error::internal("working with files", error)))
}
