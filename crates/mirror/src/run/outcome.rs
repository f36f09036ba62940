//! The result of a run to a target.

use bytes::Bytes;
use model::Error;
use model::image_set::MirrorSelection;

use crate::content::{ImageContent, LeftOut, SelectedImage};
use crate::history::MetadataStore;
use crate::progress::Amount;
use crate::publish::{MirrorTarget, Published, TransferLimits};
use crate::results;

/// The result of a run to a target.
#[derive(Debug, Default)]
pub struct RunOutcome {
    /// Content of the target now.
    pub results: results::MirrorResults,
    /// Images that were not mirrored, with the cause.
    pub failed: Vec<(SelectedImage, Error)>,
    /// Charts that could not be read.
    pub unread: Vec<Error>,
    /// Parts of catalogs that were selected and cannot be mirrored.
    pub left_out: Vec<LeftOut>,
    /// Warnings for the user.
    pub notes: Vec<String>,
    /// Blobs that were sent.
    pub sent: Amount,
    /// Images that were pruned.
    pub pruned: usize,
    /// Manifests that could not be deleted.
    pub stayed: Vec<Error>,
    /// Temporary files that the results are copied from.
    pub(crate) scratch: Option<tempfile::TempDir>,
    pub(super) metadata: Option<MetadataWrites>,
}

impl RunOutcome {
    /// The result of publishing `content`.
    ///
    /// Errors: the first failure, unless the run continues on errors; Invalid – a name does not fit into the target.
    pub(crate) fn of(
        content: &ImageContent,
        published: Published,
        target: &MirrorTarget,
        mirror: &MirrorSelection,
        limits: TransferLimits,
    ) -> Result<Self, Error> {
        let mut outcome = Self {
            results: results::MirrorResults::new(content, &published, target, mirror)?,
            sent: published.sent,
            ..Self::default()
        };
        for (index, error) in published.failed {
            if !limits.continue_on_error {
                return Err(error);
            }
            let wanted = content.images[index].wanted.clone();
            outcome.failed.push((wanted, error));
        }
        Ok(outcome)
    }
}

impl RunOutcome {
    /// Whether all images that left the set are gone.
    ///
    /// Errors: Conflict – some manifests could not be deleted.
    pub fn check_stayed(&self) -> Result<(), Error> {
        match self.stayed.len() {
            0 => Ok(()),
            stayed => Err(Error::conflict(format!(
                "{stayed} manifests were not deleted; the next run retries"
            ))),
        }
    }
}

/// Metadata of a run, and the stores that it is written to, in this order.
#[derive(Debug, Clone, Default)]
pub(super) struct MetadataWrites {
    pub(super) metadata: Bytes,
    pub(super) stores: Vec<MetadataStore>,
}
