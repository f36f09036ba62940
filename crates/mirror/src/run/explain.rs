//! What a run would carry, and why.

use model::Error;
use oci::Reference;

use super::prepare::Prepared;
use crate::publish::Target;
use crate::results::{self, Catalog, Mirrored, Outcome};

/// Why the bundles and images are carried that have `name` in theirs, one a line.
pub fn reasons(prepared: &Prepared, name: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    for it in &prepared.catalogs {
        let catalog = &it.catalog.operator.catalog;
        for (package, part) in &it.catalog.choice {
            for (bundle, reason) in part
                .reasons
                .iter()
                .filter(|(bundle, _)| bundle.contains(name))
            {
                reasons.push(format!(
                    "{bundle} of package {package} in {catalog}: {reason}"
                ));
            }
        }
    }
    let images = prepared.content.images.iter().chain(&prepared.known);
    for image in images {
        let source = image.pinned().to_string();
        if source.contains(name) {
            let why = image.wanted.why.iter();
            reasons.extend(why.map(|why| format!("{source}: {why}")));
        }
    }
    reasons
}

/// Which source would become which name of the target, one a line.
///
/// Errors: Invalid – a name does not fit into the target.
pub fn mapping(prepared: &Prepared, target: &Target) -> Result<String, Error> {
    let mut outcome = Outcome::default();
    for image in &prepared.content.images {
        let wanted = &image.wanted;
        outcome.images.push(Mirrored {
            source: image.pinned(),
            destination: Reference {
                tag: Some(wanted.tag.clone()),
                ..target.place(&wanted.repository)?
            },
            kind: wanted.kind,
            is_tagged: wanted.source.digest.is_none(),
        });
    }
    for it in &prepared.catalogs {
        let catalog = &it.catalog;
        outcome.catalogs.push(Catalog {
            name: catalog.name.clone(),
            repository: catalog.repository.clone(),
            destination: Reference {
                tag: Some(catalog.tag.clone()),
                ..target.place(&catalog.repository)?
            },
            template: None,
        });
    }
    Ok(results::mapping(&outcome))
}
