//! A set as its target sees it: operators are selected in the target's pruned catalogs, and releases read from their images
//! there, also where the sources cannot be reached.

use std::path::Path;

use model::Error;
use model::image_set::{MirrorSelection, OperatorSelection};
use net::web;
use oci::Reference;
use oci_client::Client;

use crate::content::SelectedImage;
use crate::names;
use crate::platform::{TargetReleases, graph_image_name};
use crate::publish::MirrorTarget;
use crate::run::RunContext;
use crate::select::{SelectOptions, Selected, select};

/// The images of a set, and the catalogs of the target that name them. `releases` has those of its releases.
///
/// Errors: as [`select`]; Unavailable – a repository of charts, which no target has.
pub(crate) async fn images(
    context: RunContext<'_>,
    mirror: &MirrorSelection,
    releases: Vec<SelectedImage>,
    target: &MirrorTarget,
    options: SelectOptions<'_>,
) -> Result<Selected, Error> {
    let mut operators = Vec::new();
    for operator in &mirror.operators {
        operators.push(of_target(operator, target).await?);
    }
    let own = MirrorSelection {
        operators,
        additional_images: mirror.additional_images.clone(),
        blocked_images: mirror.blocked_images.clone(),
        helm: mirror.helm.clone(),
        ..MirrorSelection::default()
    };
    let selected = select(&target.client, &own, None, options, context.progress).await;
    let mut selected = selected.map_err(|error| match error {
        Error::Unavailable { what, .. } if what == web::SERVER => {
            let reason = format!(
                "{}: where a repository of charts cannot be reached, name them below helm.local; the results of the run \
                 that carried them have them",
                error.chain()
            );
            Error::invalid("helm.repositories", reason)
        }
        other => other,
    })?;
    selected.add(releases, &mirror.blocked_images)?;
    Ok(selected)
}

/// The releases of a set.
pub(crate) fn releases<'a>(
    client: &'a Client,
    mirror: &'a MirrorSelection,
    target: &'a MirrorTarget,
    scratch: &'a Path,
) -> TargetReleases<'a> {
    TargetReleases {
        target,
        sources: client,
        mirror,
        scratch,
    }
}

/// Reference of an image in the target: by digest where its source is named by one, or else by tag.
///
/// Errors: Invalid – its name does not fit.
pub(crate) fn place_of(image: &SelectedImage, target: &MirrorTarget) -> Result<Reference, Error> {
    let place = target.place(&image.repository)?;
    Ok(match &image.source.digest {
        Some(digest) => place.with_digest(digest.clone()),
        None => Reference {
            tag: Some(image.tag.clone()),
            ..place
        },
    })
}

/// Reference of the upgrade graph's image in the target.
///
/// Errors: Invalid – its name does not fit.
pub(crate) fn graph(target: &MirrorTarget) -> Result<Reference, Error> {
    let (repository, tag) = graph_image_name()?;
    Ok(Reference {
        tag: Some(tag),
        ..target.place(&repository)?
    })
}

/// References of the pruned catalogs in the target that were made of one catalog. There are several where the digest gives
/// the tag: a layout may have changed between runs.
///
/// Errors: Invalid – its name does not fit; those of the target.
pub(crate) async fn catalogs_of(
    operator: &OperatorSelection,
    target: &MirrorTarget,
) -> Result<Vec<Reference>, Error> {
    let (repository, tag) = names::catalog::named(operator)?;
    let place = target.place(&repository)?;
    let pinned = names::reference(&operator.catalog).ok();
    let tags = match (tag, pinned.and_then(|it| it.digest)) {
        (Some(tag), _) => vec![tag],
        (None, Some(digest)) => vec![names::catalog::rebuilt(operator, &digest)?.1],
        (None, None) => {
            let all = target.client.tags(&place);
            let mut tags = match all.await {
                Err(Error::NotFound { .. }) => Vec::new(),
                found => found?,
            };
            tags.retain(names::catalog::is_of_digest);
            tags
        }
    };
    let tagged = tags.into_iter().map(|tag| Reference {
        tag: Some(tag),
        ..place.clone()
    });
    Ok(tagged.collect())
}

/// Reference of the pruned catalog in the target.
///
/// Errors: as [`catalogs_of`]; NotFound – there is none; Invalid – there are several.
async fn catalog_of(
    operator: &OperatorSelection,
    target: &MirrorTarget,
) -> Result<Reference, Error> {
    match catalogs_of(operator, target).await?.as_slice() {
        [] => Err(Error::not_found("catalog", &operator.catalog)),
        [catalog] => Ok(catalog.clone()),
        several => {
            let several: Vec<_> = several.iter().map(Reference::to_string).collect();
            let reason = format!(
                "ambiguous, name one of them with targetTag: {}",
                several.join(", ")
            );
            Err(Error::invalid(operator.catalog.clone(), reason))
        }
    }
}

/// The operator, with the target's pruned catalog instead of its own.
async fn of_target(
    operator: &OperatorSelection,
    target: &MirrorTarget,
) -> Result<OperatorSelection, Error> {
    Ok(OperatorSelection {
        catalog: catalog_of(operator, target).await?.to_string(),
        target_catalog: String::new(),
        target_name: String::new(),
        target_tag: String::new(),
        ..operator.clone()
    })
}
