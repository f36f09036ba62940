//! Everything that is known before bytes move.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use catalog::cache::CatalogCache;
use model::Error;
use model::image_set::MirrorSelection;
use oci::{Digest, Manifest};

use super::catalogs::apart;
use super::{CatalogForm, Setup};
use crate::attached::attach;
use crate::content::{Content, Image, Wanted};
use crate::folder::NamedFile;
use crate::helm::Fetched;
use crate::history::Former;
use crate::operators::{self, Choice, Original};
use crate::platform::{GraphData, Releases};
use crate::publish::Target;
use crate::resolve::{Resolved, resolve};
use crate::select::{SelectOptions, SelectedCatalog, select};

/// How many failures one error tells; the others are counted.
const TOLD: usize = 20;

/// What a run will carry.
#[derive(Debug)]
pub struct Prepared {
    /// What was wanted, with the versions that were chosen.
    pub mirror: MirrorSelection,
    pub catalogs: Vec<PreparedCatalog>,
    pub releases: Releases,
    /// Charts that will be carried.
    pub charts: Vec<Fetched>,
    pub content: Content,
    /// Images that former runs have carried.
    pub known: Vec<Image>,
    /// Images that are not carried, and why.
    pub failed: Vec<(Wanted, Error)>,
    /// Charts that could not be read: which images they name is not known.
    pub unread: Vec<Error>,
    /// Images that their sources do not have, and that may be missing.
    pub missing: Vec<Wanted>,
    /// What people should know.
    pub notes: Vec<String>,
    /// Packages of the catalogs that break rules: which ones, and what becomes of the packages.
    pub breaches: Vec<String>,
    /// What is temporary lies there.
    pub(super) scratch: tempfile::TempDir,
}

/// A catalog that will be carried.
#[derive(Debug)]
pub struct PreparedCatalog {
    pub catalog: SelectedCatalog,
    pub original: Original,
    /// The file with the smaller catalog.
    pub index: PathBuf,
}

/// Finds what the set names and what of it former runs did not carry: to `target`, or else to archives.
///
/// Errors: as [`select`]; Invalid – two catalogs have one place in the target; an image that cannot be had, unless the run
/// goes on then.
pub async fn prepare(
    setup: Setup<'_>,
    former: &Former,
    target: Option<&Target>,
) -> Result<Prepared, Error> {
    let scratch = tempfile::Builder::new()
        .prefix("run-")
        .tempdir_in(setup.workspace)
        .map_err(|e| Error::internal("making a temporary folder", e))?;
    let options = SelectOptions {
        scratch: scratch.path(),
        platform: setup.platform,
        goes_on: setup.limits.goes_on,
        skip_missing: setup.skip_missing,
    };
    let Setup {
        client, progress, ..
    } = setup;
    let last = former.metadata().map(|it| &it.past_mirror);
    let selected = select(client, &setup.set.mirror, last, options, progress).await?;
    let places = selected.catalogs.iter();
    apart(places.map(|it| (it.name.as_str(), &it.repository, &it.tag)))?;
    let mut notes = selected.notes;
    let (mut known, wanted) = former.divide(selected.wanted, target)?;
    let resolved = resolve(client, wanted, setup.limits.parallel, progress).await;
    let Resolved {
        mut content,
        mut failed,
    } = resolved;
    if setup.catalogs == CatalogForm::Pinned {
        for Image { wanted, digest } in &mut content.images {
            operators::name_by_digest(wanted, digest);
        }
    }
    known.extend(former.take_known(&mut content, target)?);
    if setup.with_attached {
        let attached = attach(client, &mut content, setup.limits.parallel, progress).await;
        failed.extend(attached.failed);
        let refused = attached.refused.iter();
        notes.extend(refused.map(|(wanted, error)| failure(wanted, error)));
    }
    let (missing, failed): (Vec<_>, Vec<_>) = failed.into_iter().partition(|(wanted, error)| {
        wanted.may_be_missing && matches!(error, Error::NotFound { .. })
    });
    notes.extend(missing.iter().map(|(wanted, error)| failure(wanted, error)));
    if !setup.limits.goes_on && !failed.is_empty() {
        return Err(all_of(&failed));
    }
    notes.extend(clashes(content.images.iter().chain(&known)));
    let pins = match setup.catalogs {
        CatalogForm::Pinned => pins(content.images.iter().chain(&known)),
        CatalogForm::Tagged | CatalogForm::Original => BTreeMap::new(),
    };
    let mut catalogs = Vec::new();
    for (number, catalog) in selected.catalogs.into_iter().enumerate() {
        let opened = &catalog.opened;
        let original = Original::fetch(&opened.place, &opened.digest).await?;
        let index = scratch.path().join(format!("index-{number}.json"));
        write_index(&opened.cache, &catalog.choice, &pins, &index).await?;
        catalogs.push(PreparedCatalog {
            catalog,
            original,
            index,
        });
    }
    Ok(Prepared {
        mirror: chosen(&setup.set.mirror, &selected.releases),
        catalogs,
        releases: selected.releases,
        charts: selected.charts,
        content,
        known,
        failed,
        unread: selected.unread,
        missing: missing.into_iter().map(|(wanted, _)| wanted).collect(),
        notes,
        breaches: selected.breaches,
        scratch,
    })
}

impl Prepared {
    /// Leaves out the images of which these blobs could not be had.
    ///
    /// Errors: the first failure, where no image needs any of them: nothing is right without it.
    pub(super) fn leave_out(&mut self, failed: Vec<(Digest, Error)>) -> Result<(), Error> {
        let told = |(digest, error): &(Digest, Error)| (digest.clone(), error.chain());
        let reasons: BTreeMap<Digest, String> = failed.iter().map(told).collect();
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

/// What was wanted, with what was chosen.
fn chosen(mirror: &MirrorSelection, releases: &Releases) -> MirrorSelection {
    let mut mirror = mirror.clone();
    mirror.platform = releases.platform.clone();
    for operator in &mut mirror.operators {
        // Metadata does not have it, and what was read is compared with what would be written.
        operator.from_exact = false;
    }
    let base = releases.graph.as_ref().map(GraphData::base_image);
    if let Some(base) = base.filter(|base| !mirror.additional_images.contains(base)) {
        mirror.additional_images.push(base);
    }
    mirror
}

/// What is told of an image that cannot be had.
pub(super) fn failure(wanted: &Wanted, error: &Error) -> String {
    let why = wanted
        .why
        .first()
        .map_or_else(String::new, |why| format!(" ({why})"));
    format!("{}{why}: {}", wanted.source, model::error::chain(error))
}

/// One error that tells of all.
fn all_of(failed: &[(Wanted, Error)]) -> Error {
    let told = failed.iter().take(TOLD);
    let mut lines: Vec<_> = told.map(|(wanted, error)| failure(wanted, error)).collect();
    let others = failed.len() - lines.len();
    if others > 0 {
        lines.push(format!("and {others} others"));
    }
    Error::invalid("images that cannot be carried", lines.join("\n"))
}

/// Tells of different images that have one name in the target.
fn clashes<'a>(images: impl Iterator<Item = &'a Image>) -> Vec<String> {
    let mut first = BTreeMap::new();
    let mut notes = Vec::new();
    for image in images {
        let Wanted {
            repository, tag, ..
        } = &image.wanted;
        let other: &Image = first.entry((repository, tag)).or_insert(image);
        if other.digest != image.digest {
            notes.push(format!(
                "{} and {} have the same name in the target, {repository}:{tag}, which one of them loses",
                other.wanted.source, image.wanted.source
            ));
        }
    }
    notes
}

/// Images that catalogs name by tag, by digest.
fn pins<'a>(images: impl Iterator<Item = &'a Image>) -> BTreeMap<String, String> {
    let by_tag = images.filter(|image| image.wanted.source.digest.is_none());
    by_tag
        .map(|image| {
            let source = image.wanted.source.to_string();
            (source, image.pinned().to_string())
        })
        .collect()
}

pub(super) async fn write_index(
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
