//! What is deleted in a target because somebody names it: a list is made first, and what is in the list is deleted then.
//!
//! Operators are chosen in the catalogs of the target: these are what clusters there see, and can be read where the sources
//! cannot. The one invariant: an image that something else in the target needs is not in the list.
//!
//! Source: the peer's v2, whose lists are read and written here; it lists images that others need, too.

mod kept;
mod list;

use std::collections::BTreeSet;

use futures_util::stream::{self, StreamExt as _};
use model::Error;
use model::image_set::Mirror;
use model::mirror_metadata::ImageType;
use oci::{Reference, Tag, Target as Named};

use self::kept::Kept;
pub use self::list::List;
use crate::attached;
use crate::content::{Wanted, Why};
use crate::gather::{self, Gathered};
use crate::inside;
use crate::publish::Target;
use crate::run::Setup;

/// What is to be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// What it was at its source.
    pub source: Reference,
    /// Where it is in the target.
    pub image: Reference,
    pub kind: ImageType,
}

/// What a list was made of.
#[derive(Debug, Default)]
pub struct Planned {
    pub list: List,
    /// Images that stay because something else needs them, and what.
    pub kept: Vec<(Reference, String)>,
    /// Images that the target does not have.
    pub missing: usize,
}

/// Lists the images that `mirror` names and the target has. With `with_attached`, what is attached to them is listed as well.
///
/// Errors: Invalid – releases and charts, a package that the target's catalog does not have; NotFound – a catalog; those of the
/// target.
pub async fn plan(
    setup: Setup<'_>,
    mirror: &Mirror,
    target: &Target,
    with_attached: bool,
) -> Result<Planned, Error> {
    let scratch = tempfile::tempdir_in(setup.workspace)
        .map_err(|e| Error::internal("making a temporary folder", e))?;
    let options = gather::Options {
        scratch: scratch.path(),
        platform: setup.platform,
        goes_on: false,
        skip_missing: false,
        now: setup.now,
    };
    let Gathered {
        catalogs, wanted, ..
    } = inside::images(setup, mirror, target, options).await?;
    let kept = Kept::find(target, &mirror.operators, &catalogs, &wanted, options).await?;
    let mut planned = Planned::default();
    let mut looks = stream::iter(wanted)
        .map(|wanted| async { (look(&wanted, target).await, wanted) })
        .buffered(setup.limits.parallel.max(1));
    while let Some((found, wanted)) = looks.next().await {
        match found? {
            None => planned.missing += 1,
            Some(image) => match kept.why(&image) {
                Some(why) => planned.kept.push((image, why.to_owned())),
                None => planned.list.items.push(Item {
                    source: wanted.source,
                    image,
                    kind: wanted.kind,
                }),
            },
        }
    }
    if with_attached {
        planned.list.add_attached(target).await?;
    }
    planned.list.sort();
    Ok(planned)
}

/// Deletes what is in a list, at most `parallel` manifests at a time, and tells what could not be deleted. What is not there has
/// gone. How many images were there is the other result.
pub async fn delete(list: &List, target: &Target, parallel: usize) -> (usize, Vec<Error>) {
    let deleted: Vec<_> = stream::iter(&list.items)
        .map(|item| async {
            let found = target.client.manifest_digest(&item.image).await;
            let Some(digest) = found? else {
                return Ok(false);
            };
            match target
                .client
                .delete_manifest(&item.image.with_digest(digest))
                .await
            {
                Ok(()) => Ok(true),
                Err(Error::NotFound { .. }) => Ok(false),
                Err(error) => Err(error),
            }
        })
        .buffered(parallel.max(1))
        .collect()
        .await;
    let (done, failed): (Vec<_>, Vec<_>) = deleted.into_iter().partition(Result::is_ok);
    let count = done.iter().filter(|it| matches!(it, Ok(true))).count();
    (count, failed.into_iter().filter_map(Result::err).collect())
}

/// The image in the target.
async fn look(wanted: &Wanted, target: &Target) -> Result<Option<Reference>, Error> {
    let place = target.place(&wanted.repository)?;
    let name = match wanted.source.target() {
        Named::Digest(digest) => place.with_digest(digest),
        Named::Tag(_) => Reference {
            tag: Some(wanted.tag.clone()),
            ..place.clone()
        },
    };
    let digest = target.client.manifest_digest(&name).await?;
    Ok(digest.map(|digest| place.with_digest(digest)))
}

impl List {
    /// Adds what is attached to its images.
    async fn add_attached(&mut self, target: &Target) -> Result<(), Error> {
        let repositories: BTreeSet<_> = self
            .items
            .iter()
            .map(|item| item.image.repository.clone())
            .collect();
        let mut attached = Vec::new();
        for repository in repositories {
            let tags = target.client.tags(&target.registry, &repository).await?;
            for tag in tags {
                let Some(subject) = attached::subject(tag.as_str()) else {
                    continue;
                };
                let mut items = self.items.iter();
                let owner = items.find(|item| {
                    item.image.repository == repository
                        && item.image.digest.as_ref() == Some(&subject)
                });
                attached.extend(owner.map(|owner| Item {
                    source: tagged(&owner.source, &tag),
                    image: tagged(&owner.image, &tag),
                    kind: owner.kind,
                }));
            }
        }
        self.items.extend(attached);
        Ok(())
    }
}

fn tagged(image: &Reference, tag: &Tag) -> Reference {
    Reference {
        tag: Some(tag.clone()),
        digest: None,
        ..image.clone()
    }
}

/// Whether somebody else than those bundles wants an image.
fn other_reason<'a>(
    wanted: &'a Wanted,
    is_deleted: &dyn Fn(&str, &str) -> bool,
) -> Option<&'a Why> {
    wanted.why.iter().find(|why| match why {
        Why::Bundle {
            package, bundle, ..
        }
        | Why::Related {
            package, bundle, ..
        } => !is_deleted(package, bundle),
        _ => true,
    })
}
