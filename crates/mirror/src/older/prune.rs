//! Smaller indexes.

use model::Error;
use model::image_set::{ImageSet, IncludePackage, MirrorSelection, OperatorSelection};
use oci::Reference;
use oci_client::Client;

use crate::platform::ReleaseSources;
use crate::publish::MirrorTarget;
use crate::results::MirroredCatalog;
use crate::run::{self, RunContext, Sources};

/// An index with fewer packages.
#[derive(Debug, Clone, Copy)]
pub struct SmallerIndex<'a> {
    /// The catalog that has more.
    pub index: &'a str,
    pub packages: &'a [String],
    /// Its own name.
    pub to: &'a Reference,
}

/// Pushes a smaller index.
///
/// Errors: the catalog cannot be read, or has no such package; those of the registries.
pub async fn prune(
    client: &Client,
    platform: &ReleaseSources,
    context: RunContext<'_>,
    smaller: SmallerIndex<'_>,
    target: Client,
) -> Result<MirroredCatalog, Error> {
    let SmallerIndex {
        index,
        packages,
        to,
    } = smaller;
    let package = |name: &String| IncludePackage {
        name: name.clone(),
        ..IncludePackage::default()
    };
    let set = ImageSet {
        mirror: MirrorSelection {
            operators: vec![OperatorSelection {
                catalog: index.to_owned(),
                packages: packages.iter().map(package).collect(),
                full: true,
                skip_dependencies: true,
                target_catalog: to.repository.to_string(),
                target_tag: to
                    .tag
                    .as_ref()
                    .map_or_else(|| "latest".into(), ToString::to_string),
                ..OperatorSelection::default()
            }],
            ..MirrorSelection::default()
        },
        ..ImageSet::default()
    };
    let target = MirrorTarget {
        client: target,
        registry: to.registry.clone(),
        namespace: String::new(),
        max_components: 0,
    };
    let sources = Sources {
        client,
        set: &set,
        platform,
        skip_missing: false,
        with_attached: false,
    };
    let pushed = run::push_catalogs(sources, context, &target).await?;
    let mut pushed = pushed.into_iter();
    pushed
        .next()
        .ok_or_else(|| Error::not_found("catalog", index))
}
