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
use model::image_set::{self, Mirror, Operator};
use model::mirror_metadata::ImageType;
use oci::{Reference, Tag, Target as Named};

use self::kept::Kept;
pub use self::list::List;
use crate::attached;
use crate::content::{Wanted, Why};
use crate::gather::{self, Gathered, gather};
use crate::names;
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
    refuse_others(mirror)?;
    let scratch = tempfile::tempdir_in(setup.workspace)
        .map_err(|e| Error::internal("making a temporary folder", e))?;
    let options = gather::Options {
        scratch: scratch.path(),
        platform: setup.platform,
        goes_on: false,
        skip_missing: false,
        now: setup.now,
    };
    let operators = mirror.operators.iter();
    let own = Mirror {
        operators: operators
            .map(|it| in_target(it, target))
            .collect::<Result<_, _>>()?,
        additional_images: mirror.additional_images.clone(),
        ..Mirror::default()
    };
    let client = &target.client;
    let Gathered {
        catalogs, wanted, ..
    } = gather(client, &own, None, options, setup.progress).await?;
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

/// An operator entry for the catalog that was made of its own one.
fn in_target(operator: &Operator, target: &Target) -> Result<Operator, Error> {
    let catalog = catalog_of(operator, target)?;
    Ok(Operator {
        catalog: catalog.to_string(),
        target_catalog: String::new(),
        target_name: String::new(),
        target_tag: String::new(),
        ..operator.clone()
    })
}

/// Where the smaller catalog lies in the target.
///
/// Errors: Invalid – a folder without a tag: which catalog was made of it is not known.
fn catalog_of(operator: &Operator, target: &Target) -> Result<Reference, Error> {
    let (repository, tag) = names::catalog::named(operator)?;
    let pinned = || {
        let source = operator.catalog.parse::<Reference>();
        let digest = source.ok().and_then(|it| it.digest).ok_or_else(|| {
            let catalog = &operator.catalog;
            let reason = format!("{catalog}: name the catalog's tag in the target with targetTag");
            Error::invalid("delete.operators", reason)
        })?;
        names::catalog::rebuilt(operator, &digest).map(|(_, tag)| tag)
    };
    let tag = tag.map_or_else(pinned, Ok)?;
    Ok(Reference {
        tag: Some(tag),
        ..target.place(&repository)?
    })
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

fn refuse_others(mirror: &Mirror) -> Result<(), Error> {
    let refused = [
        (
            "delete.platform",
            mirror.platform != image_set::Platform::default(),
        ),
        ("delete.helm", mirror.helm != image_set::Helm::default()),
    ];
    match refused.into_iter().find(|(_, is_asked)| *is_asked) {
        Some((field, _)) => {
            let reason = "this version deletes operators and additionalImages; what leaves an image set is pruned when the next run is published";
            Err(Error::invalid(field, reason))
        }
        None => Ok(()),
    }
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
