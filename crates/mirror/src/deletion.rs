//! Deletion of images from a target: a list is generated first, and its images are deleted in a second run.
//!
//! Operators are selected in the catalogs of the target, which clusters there use and which can be read where the sources
//! cannot. So are releases, once their versions are known. The one invariant: an image that other content of the target
//! needs is not in the list, as far as the target's metadata has it. Sets without storageConfig have no metadata.
//!
//! Source: the peer's v2, whose lists are read and written here; it lists images that others need, too.

mod forget;
mod list;
mod other_tags;
mod required;

use std::collections::BTreeSet;

use futures_util::stream::{self, StreamExt as _};
use model::Error;
use model::image_set::MirrorSelection;
use model::mirror_metadata::ImageType;
use net::web;
use oci::{Digest, Reference, Repository};
use oci_client::Client;

use self::forget::forget;

pub use self::list::{DeletionItem, List};
use self::required::{DeletedImages, RequiredImages};
use crate::attached::attached_there;
use crate::content::{SelectedImage, Why};
use crate::platform::{ReleaseSources, TargetReleases};
use crate::publish::MirrorTarget;
use crate::run::RunContext;
use crate::select::{SelectOptions, Selected};
use crate::target_view;

/// Warning about sets without metadata.
const UNKNOWN_SETS: &str =
    "images that sets without storageConfig need are unknown: the target has no metadata of them";

/// A list, and the images that are not in it.
#[derive(Debug, Default)]
pub struct DeletionPlan {
    pub list: List,
    /// Images that stay, with the content that needs them.
    pub kept: Vec<(Reference, String)>,
    /// Images that the target does not have.
    pub missing: usize,
    /// Warnings for the user.
    pub notes: Vec<String>,
}

/// Lists the images that `mirror` names and the target has; with `with_attached`, their attached artifacts as well.
///
/// Errors: Invalid – a package that the target's catalog does not have, or a channel that cannot be queried; NotFound – a
/// catalog, or a chart; those of the target.
pub async fn plan(
    client: &Client,
    platform: &ReleaseSources,
    context: RunContext<'_>,
    mirror: &MirrorSelection,
    target: &MirrorTarget,
    with_attached: bool,
) -> Result<DeletionPlan, Error> {
    let scratch = tempfile::tempdir_in(context.workspace)
        .map_err(|e| Error::internal("making a temporary folder", e))?;
    let options = SelectOptions {
        scratch: scratch.path(),
        platform,
        continue_on_error: false,
        skip_missing: false,
    };
    let mut planned = DeletionPlan::default();
    let present = target_view::releases(client, mirror, target, scratch.path());
    let releases = planned.releases(present, platform).await?;
    let named = without_dependencies(mirror);
    let Selected {
        catalogs, wanted, ..
    } = target_view::images(context, &named, releases, target, options).await?;
    let meant = DeletedImages {
        target,
        catalogs: &catalogs,
        releases: present,
        wanted: &wanted,
    };
    let mut kept = RequiredImages::find(meant, options).await?;
    planned.notes.append(&mut kept.notes);
    let mut lookups = stream::iter(wanted)
        .map(|wanted| async { (pinned_in_target(&wanted, target).await, wanted) })
        .buffered(context.limits.parallel.max(1));
    let mut meant = BTreeSet::new();
    while let Some((found, wanted)) = lookups.next().await {
        meant.insert((
            target.place(&wanted.repository)?.repository,
            wanted.tag.clone(),
        ));
        match found? {
            None => planned.missing += 1,
            Some(image) => match kept.why(&image) {
                Some(why) => planned.kept.push((image, why.to_owned())),
                None => planned.list.items.push(DeletionItem {
                    kind: kind(&wanted),
                    source: wanted.source,
                    image,
                }),
            },
        }
    }
    planned
        .keep_named(&meant, target, context.limits.parallel)
        .await?;
    if mirror.platform.graph {
        planned.graph(target).await?;
    }
    if with_attached {
        let parallel = context.limits.parallel;
        planned.list.add_attached(target, parallel).await?;
    }
    planned.list.sort();
    if !planned.list.items.is_empty() {
        planned.notes.push(UNKNOWN_SETS.to_owned());
    }
    Ok(planned)
}

/// The same with nothing but the packages that are named: those that they need may be wanted for themselves.
fn without_dependencies(mirror: &MirrorSelection) -> MirrorSelection {
    let mut named = mirror.clone();
    for operator in &mut named.operators {
        operator.skip_dependencies = true;
    }
    named
}

impl DeletionPlan {
    /// The images of the releases that are meant: those that the update service names, or, where it does not answer, those of
    /// the target in the bounds of the configuration.
    async fn releases(
        &mut self,
        present: TargetReleases<'_>,
        sources: &ReleaseSources,
    ) -> Result<Vec<SelectedImage>, Error> {
        let found = match present.chosen(sources).await {
            Err(error @ Error::Unavailable { what, .. }) if what == web::SERVER => {
                let cause = error.chain();
                let found = present.between().await.map_err(|error| match error {
                    Error::Invalid { field, reason } => {
                        Error::invalid(field, format!("{reason} ({cause})"))
                    }
                    other => other,
                })?;
                self.notes.push(format!(
                    "{cause}: listed are those releases of the target that minVersion and maxVersion enclose"
                ));
                found
            }
            done => done?,
        };
        self.missing += found.unread.len();
        let notes = found.unread.iter();
        self.notes.extend(notes.map(|unread| {
            format!("{unread}: if the target has components of it, they are not listed")
        }));
        Ok(found.wanted)
    }

    /// Lists the image of the upgrade graph. Its base image stays: no later run mirrors that again.
    async fn graph(&mut self, target: &MirrorTarget) -> Result<(), Error> {
        let place = target_view::graph(target)?;
        match target.client.manifest_digest(&place).await? {
            None => self.missing += 1,
            Some(digest) => self.list.items.push(DeletionItem {
                image: place.with_digest(digest),
                source: place,
                kind: ImageType::CincinnatiGraph,
            }),
        }
        Ok(())
    }
}

/// The kind in the peer's lists, which have more kinds than its metadata.
fn kind(wanted: &SelectedImage) -> ImageType {
    match wanted.why.first() {
        Some(Why::Related { .. }) => ImageType::OperatorRelatedImage,
        Some(Why::Chart { .. }) => ImageType::HelmImage,
        _ => wanted.kind,
    }
}

/// Deletes the images of a list, at most `parallel` manifests at a time, and removes them from the target's metadata: later
/// runs mirror them again if they are selected. Returns how many existed, and the failures. Missing images count as
/// deleted.
pub async fn delete(list: &List, target: &MirrorTarget, parallel: usize) -> (usize, Vec<Error>) {
    // Components first: while the release image exists, they can be listed again.
    let (releases, others): (Vec<_>, Vec<_>) = list
        .items
        .iter()
        .partition(|item| item.kind == ImageType::OcpRelease);
    let mut lookups = stream::iter(others.into_iter().chain(releases))
        .map(|item| leave(&item.image, target))
        .buffered(parallel.max(1));
    let (mut count, mut gone, mut failed) = (0, BTreeSet::new(), Vec::new());
    while let Some(left) = lookups.next().await {
        match left {
            Ok(left) => {
                count += usize::from(left.was_there);
                gone.extend(left.image);
            }
            Err(error) => failed.push(error),
        }
    }
    failed.extend(forget(&gone, target).await.err());
    (count, failed)
}

/// An image after its deletion.
struct Deleted {
    /// Nothing where a tag leads to no image.
    image: Option<(Repository, Digest)>,
    was_there: bool,
}

async fn leave(image: &Reference, target: &MirrorTarget) -> Result<Deleted, Error> {
    let repository = image.repository.clone();
    let Some(digest) = target.client.manifest_digest(image).await? else {
        let digest = image.digest.clone();
        return Ok(Deleted {
            image: digest.map(|digest| (repository, digest)),
            was_there: false,
        });
    };
    let pinned = image.with_digest(digest.clone());
    let was_there = match target.client.delete_manifest(&pinned).await {
        Ok(()) => true,
        Err(Error::NotFound { .. }) => false,
        Err(error) => return Err(error),
    };
    Ok(Deleted {
        image: Some((repository, digest)),
        was_there,
    })
}

/// The image in the target.
async fn pinned_in_target(
    wanted: &SelectedImage,
    target: &MirrorTarget,
) -> Result<Option<Reference>, Error> {
    let place = target_view::place_of(wanted, target)?;
    let digest = target.client.manifest_digest(&place).await?;
    Ok(digest.map(|digest| place.with_digest(digest)))
}

impl List {
    /// Adds the attached artifacts of its images.
    async fn add_attached(&mut self, target: &MirrorTarget, parallel: usize) -> Result<(), Error> {
        let images: Vec<_> = self.items.iter().map(|item| item.image.clone()).collect();
        for (owner, image) in attached_there(target, &images, parallel).await? {
            let owner = &self.items[owner];
            self.items.push(DeletionItem {
                source: Reference {
                    tag: image.tag.clone(),
                    digest: None,
                    ..owner.source.clone()
                },
                kind: owner.kind,
                image,
            });
        }
        Ok(())
    }
}
