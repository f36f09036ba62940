//! From archives to a registry.

use std::fs::File;
use std::io;
use std::path::Path;

use bytes::Bytes;
use model::Error;
use oci::{Repository, Tag};
use serde_json::Value;

use super::catalogs::{self, Item};
use super::graph;
use super::settle::{Memory, settle};
use super::{Outcome, Setup, blocking};
use crate::archive::{SIGNATURES, Set};
use crate::content::Content;
use crate::helm;
use crate::history::{Pruning, SAME_SEQUENCE, Step, Store, held, step};
use crate::names;
use crate::operators::{Original, folder_of, index_path, template};
use crate::platform::{GRAPH_BASE, GRAPH_DATA, GraphData, usual_graph_base};
use crate::publish::{Held, Target, publish};
use crate::results::{self, Copied};

/// Units: bytes. A reference is shorter.
const BASE_LIMIT_BYTES: u64 = 4096;
/// Units: bytes. The signatures of one release take a few thousand.
const SIGNATURES_LIMIT_BYTES: u64 = 16 << 20;

/// What a run from archives will do.
#[derive(Debug)]
pub enum Unpacked {
    Publish(Box<Publication>),
    /// The target has it.
    Nothing(&'static str),
}

/// A set of archives that is to be published.
#[derive(Debug)]
pub struct Publication {
    /// Its images.
    pub content: Content,
    /// What leaves the target; nothing of it, after `std::mem::take`.
    pub pruning: Pruning,
    pub(super) catalogs: Vec<ArchivedCatalog>,
    set: Set,
    held: Held,
    /// Where the target remembers it; nowhere for a set without history.
    stores: Vec<Store>,
}

/// A catalog of an archive.
#[derive(Debug)]
pub(super) struct ArchivedCatalog {
    /// The name under which it is remembered.
    pub(super) name: String,
    original: Original,
    /// Where it goes, below the target's namespace.
    pub(super) repository: Repository,
    pub(super) tag: Tag,
    template: Option<Value>,
}

/// Opens a set of archives for a target. `is_checked` says whether it has to be the one that follows what the target has.
///
/// Errors: Conflict – another one has to come first; Invalid – an archive is damaged; those of the target.
pub async fn open(set: Set, target: &Target, is_checked: bool) -> Result<Unpacked, Error> {
    let set = blocking(move || set.check().map(|()| set)).await?;
    let archived = set.metadata();
    let store = Store::in_target(target, archived.uid)?;
    let store = (!archived.single_use).then_some(store);
    let there = match &store {
        Some(store) => store.read().await?,
        None => None,
    };
    if is_checked && step(there.as_ref(), archived)? == Step::Nothing {
        return Ok(Unpacked::Nothing(SAME_SEQUENCE));
    }
    let past = there.as_ref().map_or(&[][..], |it| &it.past_associations);
    let coming = &archived.past_associations;
    let pruning = Pruning::plan(archived.uid, past, coming, target).await?;
    let held = held(past, target)?;
    blocking(move || {
        Ok(Unpacked::Publish(Box::new(Publication {
            content: set.content()?,
            pruning,
            catalogs: archived_catalogs(&set)?,
            set,
            held,
            stores: store.into_iter().collect(),
        })))
    })
    .await
}

/// Publishes a set of archives: images, then the catalogs that name them. Then what nobody wants any more leaves the target.
/// The run is remembered there by [`Outcome::remember`].
///
/// Errors: an image or catalog that cannot be sent, or deleted, unless the run goes on then.
pub async fn unpack(
    setup: Setup<'_>,
    publication: Publication,
    target: &Target,
) -> Result<Outcome, Error> {
    let Publication {
        content,
        pruning,
        catalogs,
        set,
        held,
        stores,
    } = publication;
    let (limits, progress) = (setup.limits, setup.progress);
    let published = publish(&content, &set, target, held, limits, progress).await;
    let mirror = &set.metadata().past_mirror.mirror;
    let mut outcome = Outcome::of(&content, published, target, mirror, limits)?;
    let former = set.former_images()?;
    outcome.results.remember(&former, target, mirror)?;
    outcome.results.signatures = blocking({
        let set = set.clone();
        move || signatures(&set)
    })
    .await?;
    let scratch = tempfile::tempdir_in(setup.workspace)
        .map_err(|e| Error::internal("making a temporary folder", e))?;
    for (number, catalog) in catalogs.iter().enumerate() {
        let index = scratch.path().join(format!("index-{number}.json"));
        let (from, to) = (index_path(&folder_of(&catalog.name)), index.clone());
        let archives = set.clone();
        blocking(move || extract(&archives, &from, &to)).await?;
        let item = Item {
            name: &catalog.name,
            original: &catalog.original,
            index: &index,
            repository: &catalog.repository,
            tag: &catalog.tag,
            template: catalog.template.as_ref(),
        };
        let put = catalogs::put(setup, item, target, scratch.path()).await?;
        outcome.sent.add(put.1);
        outcome.results.catalogs.push(put.0);
    }
    let (archives, folder) = (set.clone(), scratch.path().to_owned());
    if let Some(data) = blocking(move || graph_data(&archives, &folder)).await? {
        graph::put(setup, &data, target, scratch.path(), &mut outcome).await?;
    }
    let memory = Memory {
        metadata: set.stored_metadata().clone(),
        stores,
    };
    settle(setup, target, &pruning, memory, &mut outcome).await?;
    let charts = set.below(helm::FOLDER).map(|(path, from)| Copied {
        path: path.to_owned(),
        from,
    });
    outcome.results.charts = charts.collect();
    Ok(outcome)
}

/// What clusters are told of images that this set and former ones have carried to a target, which is not asked.
///
/// Errors: Invalid – the metadata has names that are none, or that do not fit into the target.
pub fn names_of(set: &Set, target: &Target) -> Result<results::Outcome, Error> {
    let mirror = &set.metadata().past_mirror.mirror;
    results::Outcome::of(&set.all_images()?, target, mirror)
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
        let (repository, tag) = names::catalog::rebuilt(operator, &original.root)?;
        Ok(ArchivedCatalog {
            name: name.clone(),
            original,
            repository,
            tag,
            template: template::of_archive(set, &folder, name)?,
        })
    };
    let starts = starts.map(|start| catalog(&start.catalog));
    let archived: Vec<_> = starts.collect::<Result<_, _>>()?;
    let places = archived.iter();
    catalogs::apart(places.map(|it| (it.name.as_str(), &it.repository, &it.tag)))?;
    Ok(archived)
}

/// The signatures of releases, by the names of their files.
fn signatures(set: &Set) -> Result<Vec<(String, Bytes)>, Error> {
    let files = set.below(SIGNATURES);
    let read = files.map(|(path, place)| {
        let name = path.trim_start_matches(SIGNATURES);
        Ok((name.to_owned(), place.read(SIGNATURES_LIMIT_BYTES)?))
    });
    read.collect()
}

/// The data of the upgrade graph, if there is any, in a file of the folder.
fn graph_data(set: &Set, folder: &Path) -> Result<Option<GraphData>, Error> {
    if set.place(GRAPH_DATA).is_none() {
        return Ok(None);
    }
    let file = folder.join("graph-data.tar.gz");
    extract(set, GRAPH_DATA, &file)?;
    let base = match set.place(GRAPH_BASE) {
        Some(place) => {
            let named = place.read(BASE_LIMIT_BYTES)?;
            String::from_utf8_lossy(&named).parse()?
        }
        None => usual_graph_base(),
    };
    Ok(Some(GraphData { file, base }))
}

/// Takes a file out of the archive.
fn extract(set: &Set, path: &str, to: &Path) -> Result<(), Error> {
    let place = set.place(path);
    let place = place.ok_or_else(|| Error::not_found("file of the archive", path))?;
    let copied = place.open().and_then(|mut from| {
        let mut copy = || io::copy(&mut from, &mut File::create(to)?);
        copy().map_err(|e| Error::internal(format!("writing {}", to.display()), e))
    });
    copied.map(drop)
}
