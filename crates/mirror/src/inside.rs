//! A set as its target sees it: operators are looked up in the catalogs that were made for the target, and releases in their
//! images there, which can be read where the sources cannot.

use std::path::Path;

use model::Error;
use model::image_set::{Mirror, Operator};
use oci::Reference;

use crate::content::Wanted;
use crate::gather::{self, Gathered, gather};
use crate::names;
use crate::platform::{Present, graph_image_name};
use crate::publish::Target;
use crate::run::Setup;
use crate::web;

/// The images of a set, and the catalogs of the target that name them. `releases` has those of its releases.
///
/// Errors: as [`gather`]; Unavailable – a repository of charts, which no target has.
pub(crate) async fn images(
    setup: Setup<'_>,
    mirror: &Mirror,
    releases: Vec<Wanted>,
    target: &Target,
    options: gather::Options<'_>,
) -> Result<Gathered, Error> {
    let operators = mirror.operators.iter();
    let own = Mirror {
        operators: operators
            .map(|it| of_target(it, target))
            .collect::<Result<_, _>>()?,
        additional_images: mirror.additional_images.clone(),
        blocked_images: mirror.blocked_images.clone(),
        helm: mirror.helm.clone(),
        ..Mirror::default()
    };
    let gathered = gather(&target.client, &own, None, options, setup.progress).await;
    let mut gathered = gathered.map_err(|error| match error {
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
    gathered.add(releases, &mirror.blocked_images)?;
    Ok(gathered)
}

/// The releases of a set.
pub(crate) fn releases<'a>(
    setup: Setup<'a>,
    mirror: &'a Mirror,
    target: &'a Target,
    scratch: &'a Path,
) -> Present<'a> {
    Present {
        target,
        sources: setup.client,
        platform: &mirror.platform,
        scratch,
    }
}

/// Where an image lies in the target: by digest where its source is named by one, or else by tag.
///
/// Errors: Invalid – its name does not fit.
pub(crate) fn place_of(image: &Wanted, target: &Target) -> Result<Reference, Error> {
    let place = target.place(&image.repository)?;
    Ok(match &image.source.digest {
        Some(digest) => place.with_digest(digest.clone()),
        None => Reference {
            tag: Some(image.tag.clone()),
            ..place
        },
    })
}

/// Where the image of the upgrade graph lies in the target.
///
/// Errors: Invalid – its name does not fit.
pub(crate) fn graph(target: &Target) -> Result<Reference, Error> {
    let (repository, tag) = graph_image_name()?;
    Ok(Reference {
        tag: Some(tag),
        ..target.place(&repository)?
    })
}

/// Where the smaller catalog lies in the target.
///
/// Errors: Invalid – a folder without a tag: which catalog was made of it is not known.
pub(crate) fn catalog_of(operator: &Operator, target: &Target) -> Result<Reference, Error> {
    let (repository, tag) = names::catalog::named(operator)?;
    let pinned = || {
        let source = operator.catalog.parse::<Reference>();
        let digest = source.ok().and_then(|it| it.digest).ok_or_else(|| {
            let reason = "which tag it has in the target is not known: name it with targetTag";
            Error::invalid(operator.catalog.clone(), reason)
        })?;
        names::catalog::rebuilt(operator, &digest).map(|(_, tag)| tag)
    };
    Ok(Reference {
        tag: Some(tag.map_or_else(pinned, Ok)?),
        ..target.place(&repository)?
    })
}

/// An operator entry for the catalog that was made of its own one.
fn of_target(operator: &Operator, target: &Target) -> Result<Operator, Error> {
    Ok(Operator {
        catalog: catalog_of(operator, target)?.to_string(),
        target_catalog: String::new(),
        target_name: String::new(),
        target_tag: String::new(),
        ..operator.clone()
    })
}
