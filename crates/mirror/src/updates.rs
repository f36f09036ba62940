//! Updates: bundles and releases that the next run of a set would add.

use std::collections::{BTreeMap, BTreeSet};

use catalog::content::PackageModel;
use model::Error;
use model::image_set::{MirrorSelection, OperatorSelection};
use model::mirror_metadata::{ImageType, MirrorMetadata};
use oci::Reference;
use oci_client::Client;
use semver::Version;

use crate::platform::{self, ReleaseSources};
use crate::progress::RunProgress;
use crate::select::{SelectOptions, Selected, SelectedCatalog, select};

/// New releases of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseUpdates {
    pub channel: String,
    pub architecture: String,
    /// The lowest first.
    pub versions: Vec<Version>,
}

/// New bundles of a catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogUpdates {
    pub catalog: String,
    pub bundles: Vec<BundleUpdate>,
}

/// A bundle in a channel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BundleUpdate {
    pub package: String,
    pub channel: String,
    pub bundle: String,
    /// Empty where it replaces none.
    pub replaces: String,
}

/// Releases that a set selects and previous runs did not mirror, for each channel of the configuration.
///
/// Errors: Invalid – a missing channel or version; Unavailable.
pub async fn releases(
    mirror: &MirrorSelection,
    metadata: &MirrorMetadata,
    sources: &ReleaseSources,
) -> Result<Vec<ReleaseUpdates>, Error> {
    let started = &metadata.past_mirror.platforms;
    let named = platform::named(&mirror.platform, started, sources).await?;
    let carried = names(metadata, |kind| kind == ImageType::OcpRelease);
    let mut found: BTreeMap<(String, String), BTreeSet<Version>> = BTreeMap::new();
    for architecture in platform::architectures(&mirror.platform) {
        for channel in &mirror.platform.channels {
            found
                .entry((architecture.clone(), channel.name.clone()))
                .or_default();
        }
    }
    for (payload, named) in named {
        // Releases of cross-channel upgrades are among them.
        let versions = found
            .entry((named.architecture, named.channel))
            .or_default();
        if !is_carried(&payload, &carried) {
            versions.insert(named.version);
        }
    }
    let found = found.into_iter();
    let updates = found.map(|((architecture, channel), versions)| ReleaseUpdates {
        channel,
        architecture,
        versions: versions.into_iter().collect(),
    });
    Ok(updates.collect())
}

/// Bundles that a set selects and previous runs did not mirror.
///
/// Errors: as [`select`].
pub async fn operators(
    client: &Client,
    mirror: &MirrorSelection,
    metadata: &MirrorMetadata,
    options: SelectOptions<'_>,
) -> Result<Vec<CatalogUpdates>, Error> {
    let own = MirrorSelection {
        operators: mirror.operators.iter().map(without_template).collect(),
        ..MirrorSelection::default()
    };
    let last = Some(&metadata.past_mirror);
    let Selected { catalogs, .. } =
        select(client, &own, last, options, &RunProgress::default()).await?;
    let carried = names(metadata, |kind| {
        matches!(
            kind,
            ImageType::OperatorBundle | ImageType::OperatorRelatedImage
        )
    });
    let updates = |catalog: &SelectedCatalog| of_catalog(catalog, &carried);
    catalogs.iter().map(updates).collect()
}

/// Templates are for results, which are not written here.
fn without_template(operator: &OperatorSelection) -> OperatorSelection {
    OperatorSelection {
        target_catalog_source_template: None,
        ..operator.clone()
    }
}

/// The images that metadata has: by digest, and by the tag that they went by.
fn names(metadata: &MirrorMetadata, is_meant: impl Fn(ImageType) -> bool) -> BTreeSet<String> {
    let past = metadata.past_associations.iter();
    let past = past.filter(|it| is_meant(it.kind));
    let names = past.flat_map(|it| {
        let repository = it.name.split_once('@').map(|(repository, _)| repository);
        let tagged = repository.map(|repository| format!("{repository}:{}", it.tag_symlink));
        [it.name.clone()].into_iter().chain(tagged)
    });
    names.collect()
}

/// Whether an image that is named so is among them.
fn is_carried(image: &str, carried: &BTreeSet<String>) -> bool {
    let pinned = image.parse::<Reference>().ok().and_then(|reference| {
        let digest = reference.digest.clone()?;
        Some(reference.with_digest(digest).to_string())
    });
    carried.contains(pinned.as_deref().unwrap_or(image))
}

fn of_catalog(
    catalog: &SelectedCatalog,
    carried: &BTreeSet<String>,
) -> Result<CatalogUpdates, Error> {
    let mut bundles = Vec::new();
    for (name, part) in &catalog.choice {
        let mut add = |package: &PackageModel<'_>| {
            for (channel, chosen) in &part.channels {
                let channel = package.channel(channel);
                let entries = channel.iter().flat_map(|it| &it.entries);
                for entry in entries.filter(|it| chosen.contains(&*it.name)) {
                    let bundle = package.bundle(&entry.name);
                    if bundle.is_some_and(|it| !is_carried(&it.image, carried)) {
                        bundles.push(BundleUpdate {
                            package: name.clone(),
                            channel: channel.map_or_else(String::new, |it| it.name.to_owned()),
                            bundle: entry.name.to_string(),
                            replaces: entry.replaces.to_string(),
                        });
                    }
                }
            }
        };
        let cache = &catalog.opened.cache;
        let added = cache.with_package(name, |package, _| add(package));
        added.map_err(|e| Error::internal(format!("reading the package {name}"), e))?;
    }
    bundles.sort();
    Ok(CatalogUpdates {
        catalog: catalog.operator.catalog.clone(),
        bundles,
    })
}
