//! Stage 5, plan: everything that is decided before bytes move. Dry runs end here.

mod archives;
mod copy;
mod prepared;
mod publication;
mod v2_content;

use std::collections::BTreeMap;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::Arc;

use catalog::cache::CatalogCache;
use model::Error;
use model::image_set::MirrorSelection;
use oci::{Digest, Manifest};

pub use self::archives::{ArchivesPlan, PlannedArchives, archives};
pub use self::copy::{CopyPlan, PlannedCopy, copy};
pub use self::prepared::{PreparedCatalog, PreparedRun};
pub use self::publication::{PlannedPublication, Publication, publication};
pub(super) use self::v2_content::v2_content;
use super::attach::AttachedImages;
use super::select::SetSelection;
use super::setup::{CatalogForm, RunContext, Sources};
use crate::content::ResolvedImage;
use crate::folder::NamedFile;
use crate::operators::{self, Choice, Original};
use crate::platform::{GraphData, Releases};
use crate::select::{Selected, SelectedCatalog};

/// Plans the part that all destinations share: names, pinned references, and pruned catalogs in files.
///
/// Errors: those of the catalogs' sources; Internal – a file cannot be written.
pub(super) async fn contents(
    sources: Sources<'_>,
    context: RunContext<'_>,
    selection: SetSelection,
    attached: AttachedImages,
) -> Result<PreparedRun, Error> {
    let SetSelection { selected, scratch } = selection;
    let Selected {
        catalogs,
        releases,
        charts,
        unread,
        left_out,
        mut notes,
        rule_violations,
        wanted: _,
    } = selected;
    let AttachedImages {
        content,
        mirrored,
        failed,
        missing,
        notes: of_images,
    } = attached;
    notes.extend(of_images);
    let pins = match context.catalogs {
        CatalogForm::Pinned => pins(content.images.iter().chain(&mirrored)),
        CatalogForm::Tagged | CatalogForm::Original => BTreeMap::new(),
    };
    Ok(PreparedRun {
        mirror: with_selected_versions(&sources.set.mirror, &releases),
        catalogs: pruned_catalogs(catalogs, &pins, scratch.path()).await?,
        releases,
        charts,
        content,
        mirrored,
        failed,
        unread,
        left_out,
        missing,
        notes,
        rule_violations,
        is_single_use: sources.set.storage.is_none(),
        archive_size: sources.set.archive_size,
        v2: None,
        scratch,
    })
}

/// Writes each catalog's pruned form into a file of the folder.
///
/// Errors: as [`contents`].
pub(super) async fn pruned_catalogs(
    catalogs: Vec<SelectedCatalog>,
    pins: &BTreeMap<String, String>,
    folder: &Path,
) -> Result<Vec<PreparedCatalog>, Error> {
    let mut prepared = Vec::new();
    for (number, catalog) in catalogs.into_iter().enumerate() {
        let opened = &catalog.opened;
        let original = Original::fetch(&opened.place, &opened.digest).await?;
        let index = folder.join(format!("index-{number}.json"));
        write_index(&opened.cache, &catalog.choice, pins, &index).await?;
        prepared.push(PreparedCatalog {
            catalog,
            original,
            index,
        });
    }
    Ok(prepared)
}

impl PreparedRun {
    /// Leaves out the images that need these unavailable blobs.
    ///
    /// Errors: the first failure, where no image needs any of the blobs: a catalog or the like does.
    pub(super) fn leave_out(&mut self, failed: Vec<(Digest, Error)>) -> Result<(), Error> {
        let reason = |(digest, error): &(Digest, Error)| (digest.clone(), error.chain());
        let reasons: BTreeMap<Digest, String> = failed.iter().map(reason).collect();
        let (mut kept, before) = (Vec::new(), self.content.images.len());
        for image in std::mem::take(&mut self.content.images) {
            let manifests = self.content.manifests_of(&image.digest).into_iter();
            let mut blobs = manifests.flat_map(Manifest::blobs);
            let lost = blobs.find_map(|blob| reasons.get(&blob.digest));
            match lost {
                Some(reason) => {
                    let error = Error::invalid("content", reason.clone());
                    self.failed.push((image.wanted, error));
                }
                None => kept.push(image),
            }
        }
        self.content.images = kept;
        self.content.forget_unused();
        match failed.into_iter().next() {
            Some((_, error)) if self.content.images.len() == before => Err(error),
            _ => Ok(()),
        }
    }
}

/// The configuration as metadata records it.
fn with_selected_versions(mirror: &MirrorSelection, releases: &Releases) -> MirrorSelection {
    let mut mirror = mirror.clone();
    mirror.platform = releases.platform.clone();
    let base = releases.graph.as_ref().map(GraphData::base_image);
    if let Some(base) = base.filter(|base| !mirror.additional_images.contains(base)) {
        mirror.additional_images.push(base);
    }
    mirror
}

/// Pinned references, by the references with tags that catalogs have.
pub(super) fn pins<'a>(
    images: impl Iterator<Item = &'a ResolvedImage>,
) -> BTreeMap<String, String> {
    let by_tag = images.filter(|image| image.wanted.source.digest.is_none());
    by_tag
        .map(|image| {
            let source = image.wanted.source.to_string();
            (source, image.pinned().to_string())
        })
        .collect()
}

async fn write_index(
    cache: &Arc<CatalogCache>,
    choice: &Choice,
    pins: &BTreeMap<String, String>,
    path: &Path,
) -> Result<(), Error> {
    let (cache, choice) = (Arc::clone(cache), choice.clone());
    let (pins, path) = (pins.clone(), path.to_owned());
    let work = move || {
        let failed = |e| Error::internal(format!("writing {}", path.display()), e);
        let mut file = BufWriter::new(NamedFile::create(&path).map_err(failed)?);
        operators::write_index(&cache, &choice, &pins, &mut file)?;
        file.flush().map_err(failed)
    };
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(Error::internal("writing a catalog", error)))
}
