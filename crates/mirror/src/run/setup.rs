//! The input of a run: its sources and its context.

use std::path::Path;

use model::Error;
use model::image_set::ImageSet;
use oci_client::Client;

use crate::archive::ArchiveFormat;
use crate::history::PreviousRuns;
use crate::names::Naming;
use crate::platform::ReleaseSources;
use crate::progress::RunProgress;
use crate::publish::{MirrorTarget, TransferLimits};

/// The image set, and the sources of its images.
#[derive(Debug, Clone, Copy)]
pub struct Sources<'a> {
    /// Client for their registries.
    pub client: &'a Client,
    pub set: &'a ImageSet,
    /// Update services for releases of the platform.
    pub platform: &'a ReleaseSources,
    /// Skip images that a catalog references but the registry does not have, and boot images that a release does not have.
    pub skip_missing: bool,
    /// Mirror the attached artifacts of images: signatures, attestations, SBOMs.
    pub with_attached: bool,
}

/// How a run works.
#[derive(Debug, Clone, Copy)]
pub struct RunContext<'a> {
    pub limits: TransferLimits,
    pub catalogs: CatalogForm,
    /// Names of images in the target.
    pub naming: Naming,
    /// Archives are those of the peer's v2, in place of v1.
    pub v2_archives: Option<V2Archives<'a>>,
    /// Folder for temporary files; it exists.
    pub workspace: &'a Path,
    /// Units: seconds since 1970.
    pub now: i64,
    pub progress: &'a RunProgress,
}

impl<'a> RunContext<'a> {
    /// A run with the usual limits, names and forms.
    pub fn new(workspace: &'a Path, now: i64, progress: &'a RunProgress) -> Self {
        Self {
            limits: TransferLimits::default(),
            catalogs: CatalogForm::default(),
            naming: Naming::default(),
            v2_archives: None,
            workspace,
            now,
            progress,
        }
    }
}

/// The form of archives of the peer's v2.
#[derive(Debug, Clone, Copy)]
pub struct V2Archives<'a> {
    /// The configuration as it was written.
    pub configuration: &'a str,
    /// Folder of the history.
    pub history: &'a Path,
    /// Members that do not fit into a file of the configured size are refused, rather than written into files of their own.
    pub is_strict: bool,
}

impl V2Archives<'_> {
    pub(super) fn format(self) -> ArchiveFormat {
        let is_strict = self.is_strict;
        ArchiveFormat::V2 { is_strict }
    }
}

/// The form of operator catalogs in a target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CatalogForm {
    /// Pruned to the selection, all images by digest: mirror policies of any kind redirect clusters to them.
    #[default]
    Pinned,
    /// Pruned to the selection, images as the source names them; those by tag keep it in the target.
    Tagged,
    /// As the source has them, with their digests, and with packages whose images are not mirrored.
    Original,
}

/// The history that a run is compared with.
#[derive(Debug, Clone, Copy)]
pub(super) struct PastImages<'a> {
    pub(super) previous: &'a PreviousRuns,
    /// The destination; none for archives.
    pub(super) target: Option<&'a MirrorTarget>,
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(Error::internal("working with files", error)))
}
