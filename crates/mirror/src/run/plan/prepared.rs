//! The content of a run, prepared for any destination.

use std::collections::BTreeMap;
use std::path::PathBuf;

use model::Error;
use model::image_set::MirrorSelection;
use oci::Digest;
use tempfile::TempDir;

use crate::archive::{Extra, LocalBlob};
use crate::content::{ImageContent, LeftOut, ResolvedImage, SelectedImage};
use crate::helm::Fetched;
use crate::operators::Original;
use crate::platform::Releases;
use crate::select::SelectedCatalog;

/// The content of a run, wherever it goes.
#[derive(Debug)]
pub struct PreparedRun {
    /// The configuration, with the selected versions.
    pub mirror: MirrorSelection,
    pub catalogs: Vec<PreparedCatalog>,
    pub releases: Releases,
    /// Charts to be mirrored.
    pub charts: Vec<Fetched>,
    pub content: ImageContent,
    /// Selected images that previous runs mirrored.
    pub mirrored: Vec<ResolvedImage>,
    /// Images that are not mirrored, with the cause.
    pub failed: Vec<(SelectedImage, Error)>,
    /// Charts that could not be read: their images are unknown.
    pub unread: Vec<Error>,
    /// Parts of catalogs that are selected and cannot be mirrored.
    pub left_out: Vec<LeftOut>,
    /// Images that their sources do not have and the run may skip.
    pub missing: Vec<SelectedImage>,
    /// Warnings for the user.
    pub notes: Vec<String>,
    /// Packages of the catalogs that break rules, with the consequence.
    pub rule_violations: Vec<String>,
    /// Whether no run follows: the set has no storage for metadata.
    pub(in crate::run) is_single_use: bool,
    /// Units: GiB, as the configuration has it.
    pub(in crate::run) archive_size: Option<u64>,
    /// Further content of archives of the peer's v2, where the run writes any.
    pub(in crate::run) v2: Option<V2Content>,
    /// Temporary files of the run.
    pub(in crate::run) scratch: TempDir,
}

/// Content of archives of the peer's v2 beside the images of a run.
#[derive(Debug, Default)]
pub(in crate::run) struct V2Content {
    /// Catalogs and the upgrade graph.
    pub(in crate::run) images: ImageContent,
    /// Their built blobs, and those of catalogs in folders.
    pub(in crate::run) local: BTreeMap<Digest, LocalBlob>,
    /// Files of the workspace, and the configuration, by path.
    pub(in crate::run) files: BTreeMap<String, Extra>,
}

/// A catalog to be mirrored.
#[derive(Debug)]
pub struct PreparedCatalog {
    pub catalog: SelectedCatalog,
    pub original: Original,
    /// File of the pruned catalog.
    pub index: PathBuf,
}
