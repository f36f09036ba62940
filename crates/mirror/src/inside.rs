//! A set as its target sees it: operators are looked up in the catalogs that were made for the target, which can be read where
//! the sources cannot.

use model::Error;
use model::image_set::{self, Mirror, Operator};
use oci::Reference;

use crate::gather::{self, Gathered, gather};
use crate::names;
use crate::publish::Target;
use crate::run::Setup;

/// The images of a set, and the catalogs of the target that name them.
///
/// Errors: as [`gather`]; Invalid – releases and charts, which no catalog names.
pub(crate) async fn images(
    setup: Setup<'_>,
    mirror: &Mirror,
    target: &Target,
    options: gather::Options<'_>,
) -> Result<Gathered, Error> {
    refuse_others(mirror)?;
    let operators = mirror.operators.iter();
    let own = Mirror {
        operators: operators
            .map(|it| of_target(it, target))
            .collect::<Result<_, _>>()?,
        additional_images: mirror.additional_images.clone(),
        blocked_images: mirror.blocked_images.clone(),
        ..Mirror::default()
    };
    gather(&target.client, &own, None, options, setup.progress).await
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

fn refuse_others(mirror: &Mirror) -> Result<(), Error> {
    let refused = [
        (
            "platform",
            mirror.platform != image_set::Platform::default(),
        ),
        ("helm", mirror.helm != image_set::Helm::default()),
    ];
    match refused.into_iter().find(|(_, is_asked)| *is_asked) {
        Some((field, _)) => {
            let reason = "in a target, operators and additionalImages can be looked up; what is known of the others is in the metadata there";
            Err(Error::invalid(field, reason))
        }
        None => Ok(()),
    }
}
