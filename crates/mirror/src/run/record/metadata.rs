//! Metadata for the next run.

use model::Error;
use model::image_set;
use model::mirror_metadata::CatalogStart;
use net::web;
use url::Url;
use uuid::Uuid;

use crate::content::LeftOut;
use crate::history::{NextMetadata, PlannedRun, PreviousRuns};
use crate::publish::MirrorTarget;
use crate::run::plan::{PreparedCatalog, PreparedRun};
use crate::run::setup::RunContext;
use crate::select::SelectedCatalog;

/// The metadata that the prepared run records; `target` is none for archives.
///
/// Errors: those of [`PreviousRuns::next`].
pub(in crate::run) fn next(
    context: RunContext<'_>,
    prepared: &PreparedRun,
    previous: &PreviousRuns,
    target: Option<&MirrorTarget>,
) -> Result<NextMetadata, Error> {
    let failed = prepared.failed.iter().map(|(wanted, _)| wanted);
    let absent: Vec<_> = failed.chain(&prepared.missing).cloned().collect();
    let next = previous.next(PlannedRun {
        uid: Uuid::new_v4(),
        is_single_use: prepared.is_single_use,
        timestamp: context.now,
        mirror: without_logins(&prepared.mirror),
        operators: starts(&prepared.catalogs)?,
        platforms: prepared.releases.starts.clone(),
        content: &prepared.content,
        mirrored: &prepared.mirrored,
        absent: &absent,
        has_unread_charts: !prepared.unread.is_empty(),
        target,
    })?;
    let mut left_out = prepared.left_out.iter();
    if left_out.any(|it| matches!(it, LeftOut::Package(_))) {
        return Ok(next.keeping_operators(previous));
    }
    Ok(next)
}

/// Without the logins in addresses of chart repositories: readers of archives and of the target see the metadata.
fn without_logins(mirror: &image_set::MirrorSelection) -> image_set::MirrorSelection {
    let mut mirror = mirror.clone();
    for repository in &mut mirror.helm.repositories {
        let Ok(url) = repository.url.parse::<Url>() else {
            continue;
        };
        let shown = web::shown(&url);
        if shown != url.as_str() {
            repository.url = shown;
        }
    }
    mirror
}

/// Minimum versions of each catalog, for later runs.
fn starts(catalogs: &[PreparedCatalog]) -> Result<Vec<CatalogStart>, Error> {
    let start = |it: &PreparedCatalog| {
        let catalog = &it.catalog;
        let reference = match &catalog.opened.place {
            oci_client::image::ImageLocation::Registry { reference, .. }
                if reference.digest.is_none() =>
            {
                reference
                    .with_digest(catalog.opened.digest.clone())
                    .to_string()
            }
            _ => String::new(),
        };
        Ok(CatalogStart {
            catalog: catalog.name.clone(),
            image_pin: reference,
            packages: if catalog.operator.full {
                Vec::new()
            } else {
                packages(catalog)?
            },
        })
    };
    catalogs.iter().map(start).collect()
}

fn packages(catalog: &SelectedCatalog) -> Result<Vec<image_set::IncludePackage>, Error> {
    let mut packages = Vec::new();
    for (name, part) in &catalog.choice {
        let lowest = catalog.opened.cache.with_package(name, |package, _| {
            let channels = part.channels.iter().filter_map(|(channel, bundles)| {
                let bundles = bundles.iter().filter_map(|bundle| package.bundle(bundle));
                let lowest = bundles.min_by_key(|bundle| bundle.version.clone())?;
                Some(image_set::IncludeChannel {
                    name: channel.clone(),
                    versions: image_set::IncludeBundle {
                        min_version: lowest.version_text.to_string(),
                        ..image_set::IncludeBundle::default()
                    },
                })
            });
            channels.collect::<Vec<_>>()
        });
        let lowest =
            lowest.map_err(|e| Error::internal(format!("reading the package {name}"), e))?;
        packages.push(image_set::IncludePackage {
            name: name.clone(),
            channels: lowest.unwrap_or_default(),
            ..image_set::IncludePackage::default()
        });
    }
    Ok(packages)
}
