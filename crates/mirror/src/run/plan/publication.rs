//! The plan of a publication: an archive set into a target.

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use model::Error;
use oci::{Repository, Tag};
use serde_json::Value;

use crate::archive::Set;
use crate::content::{ImageContent, SelectedImage};
use crate::history::{MetadataStore, Pruning, SAME_SEQUENCE, SequenceStep, held, step};
use crate::names;
use crate::operators::{Original, archived_name, folder_of, is_whole, template};
use crate::publish::{HeldBlobs, MirrorTarget};
use crate::run::outcome::MetadataWrites;
use crate::run::select::refuse_equal_names;
use crate::run::setup::blocking;

/// Requests for images of previous archives at a time.
const CHECKS: usize = 8;

/// Whether a run from archives has something to publish.
#[derive(Debug)]
pub enum PlannedPublication {
    Publish(Box<Publication>),
    /// The target has this sequence; the message for the user.
    Nothing(&'static str),
}

/// An archive set to be published.
#[derive(Debug)]
pub struct Publication {
    /// Its images.
    pub content: ImageContent,
    /// Images of previous archives that the target lacks.
    pub(in crate::run) unpublished: Vec<SelectedImage>,
    /// Images to prune; none after `std::mem::take`.
    pub pruning: Pruning,
    pub(in crate::run) catalogs: Vec<ArchivedCatalog>,
    pub(in crate::run) set: Set,
    /// Blobs that the target's metadata lists, by repository.
    pub(in crate::run) held: HeldBlobs,
    /// Empty for a set without history.
    pub(in crate::run) metadata: MetadataWrites,
}

/// A catalog of an archive set.
#[derive(Debug)]
pub(in crate::run) struct ArchivedCatalog {
    /// Its unique name in metadata.
    pub(in crate::run) name: String,
    pub(in crate::run) original: Original,
    /// Its name below the target's namespace.
    pub(in crate::run) repository: Repository,
    pub(in crate::run) tag: Tag,
    pub(in crate::run) template: Option<Value>,
    /// Whether it is served as its source has it.
    pub(in crate::run) is_original: bool,
    /// Whether its digest in the target is its tag there.
    pub(in crate::run) is_tagged_by_digest: bool,
}

/// Plans the publication of an archive set. `is_checked`: the set must follow the sequence of the target.
///
/// Errors: Conflict – another sequence comes first; Invalid – an archive is damaged; those of the target.
pub async fn publication(
    set: Set,
    target: &MirrorTarget,
    is_checked: bool,
) -> Result<PlannedPublication, Error> {
    let set = blocking(move || set.check().map(|()| set)).await?;
    let archived = set.metadata();
    let store = MetadataStore::in_target(target, archived.uid)?;
    let store = (!archived.single_use).then_some(store);
    let there = match &store {
        Some(store) => store.read().await?,
        None => None,
    };
    if is_checked && step(there.as_ref(), archived)? == SequenceStep::Nothing {
        return Ok(PlannedPublication::Nothing(SAME_SEQUENCE));
    }
    let unpublished = if archived.single_use {
        unpublished(&set, target).await?
    } else {
        Vec::new()
    };
    let past = there.as_ref().map_or(&[][..], |it| &it.past_associations);
    let coming = &archived.past_associations;
    let pruning = Pruning::plan(archived.uid, past, coming, target).await?;
    let mut held = held(past, target)?;
    for (digest, repositories) in set.previous_blobs() {
        for repository in repositories {
            let place = target.place(repository)?;
            held.entry(digest.clone())
                .or_default()
                .insert(place.repository);
        }
    }
    blocking(move || {
        Ok(PlannedPublication::Publish(Box::new(Publication {
            content: set.content()?,
            unpublished,
            pruning,
            catalogs: archived_catalogs(&set)?,
            metadata: MetadataWrites {
                metadata: set.stored_metadata().clone(),
                stores: store.into_iter().collect(),
            },
            set,
            held,
        })))
    })
    .await
}

/// Images of previous archives that the target lacks, where no metadata says which ones were published there.
///
/// Errors: those of the target.
async fn unpublished(set: &Set, target: &MirrorTarget) -> Result<Vec<SelectedImage>, Error> {
    let previous = set.previous_images()?;
    let checks = stream::iter(previous).map(|image| async move {
        let place = target.place(&image.wanted.repository)?;
        let name = place.with_digest(image.digest.clone());
        let there = target.client.manifest_digest(&name).await?;
        Ok::<_, Error>(there.is_none().then_some(image.wanted))
    });
    let checked: Vec<_> = checks.buffered(CHECKS).try_collect().await?;
    Ok(checked.into_iter().flatten().collect())
}

/// Blocking.
fn archived_catalogs(set: &Set) -> Result<Vec<ArchivedCatalog>, Error> {
    let past_mirror = &set.metadata().past_mirror;
    let starts = past_mirror.operators.iter();
    let catalog = |name: &String| {
        let folder = folder_of(name);
        let original = Original::of_archive(set, &folder)?;
        let mut operators = past_mirror.mirror.operators.iter();
        let operator = operators.find(|it| names::catalog::unique_name(it) == *name);
        let operator = operator.ok_or_else(|| {
            let reason = format!("{name} is not among the operators of the configuration");
            Error::invalid("metadata", reason)
        })?;
        let named = archived_name::of_archive(set, &folder)?;
        // Names of v2 are in the archive.
        let is_original = named.is_some() && is_whole(operator);
        let is_tagged_by_digest = named.is_some() && names::v2::is_by_digest(operator);
        let (repository, tag) = match named {
            Some(named) => named,
            None => names::catalog::rebuilt(operator, &original.root)?,
        };
        Ok(ArchivedCatalog {
            name: name.clone(),
            original,
            repository,
            tag,
            template: template::of_archive(set, &folder, name)?,
            is_original,
            is_tagged_by_digest,
        })
    };
    let starts = starts.map(|start| catalog(&start.catalog));
    let archived: Vec<_> = starts.collect::<Result<_, _>>()?;
    let names = archived.iter();
    refuse_equal_names(names.map(|it| (it.name.as_str(), &it.repository, &it.tag)))?;
    Ok(archived)
}
