//! Summaries of packages.

use std::sync::Arc;

use ::catalog::Document;
use ::catalog::cache::CatalogCache;
use ::catalog::content::PackageModel;
use serde::Serialize;
use service::Error;

/// Summary of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PackageSummary {
    pub(super) name: String,
    pub(super) default_channel: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) deprecation: Option<String>,
    pub(super) channels: Vec<ChannelSummary>,
}

/// Summary of a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChannelSummary {
    pub(super) name: String,
    pub(super) head: String,
    pub(super) head_version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) deprecation: Option<String>,
    pub(super) entries: Vec<EntrySummary>,
}

/// Summary of a channel entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EntrySummary {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) replaces: String,
    pub(super) skips: Vec<String>,
    pub(super) skip_range: String,
}

/// Calls `work` with each valid package of `cache` in order.
///
/// Errors: those of `work`; a damaged cache.
pub(crate) fn each_package(
    cache: &Arc<CatalogCache>,
    mut work: impl FnMut(&PackageModel<'_>, &[Document]) -> Result<(), Error>,
) -> Result<(), Error> {
    let valid = cache.package_names();
    let groups = cache.groups().into_iter();
    for (name, lines) in groups.filter(|(name, _)| valid.contains(*name)) {
        let documents = cache.read(lines).map_err(|e| invalid_package(name, e))?;
        let package =
            PackageModel::assemble_partly(&documents).map_err(|e| invalid_package(name, e))?;
        if let Some(package) = package {
            work(&package, &documents)?;
        }
    }
    Ok(())
}

/// Calls `work` with the package `name`, if there is one.
///
/// Errors: as [`each_package`]; the package breaks rules.
pub(crate) fn with_package<T>(
    cache: &Arc<CatalogCache>,
    name: &str,
    work: impl FnOnce(&PackageModel<'_>, &[Document]) -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    if let Some(problems) = cache.report().refused.get(name) {
        return Err(invalid_package(name, problems.clone()));
    }
    let worked = cache.with_package(name, work);
    worked.map_err(|e| invalid_package(name, e))?.transpose()
}

fn invalid_package(package: &str, e: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(format!("reading the package {package}"), e)
}

impl PackageSummary {
    pub(super) fn of(package: &PackageModel<'_>) -> Self {
        let version = |name: &str| {
            let bundle = package.bundle(name);
            bundle.map_or_else(String::new, |bundle| bundle.version_text.to_string())
        };
        let channels = package.channels.iter().map(|channel| ChannelSummary {
            name: channel.name.to_owned(),
            head: channel.head().name.to_string(),
            head_version: version(&channel.head().name),
            deprecation: channel.deprecation.as_ref().map(ToString::to_string),
            entries: channel
                .entries
                .iter()
                .map(|entry| EntrySummary {
                    name: entry.name.to_string(),
                    version: version(&entry.name),
                    replaces: entry.replaces.to_string(),
                    skips: entry.skips.iter().map(ToString::to_string).collect(),
                    skip_range: entry.skip_range.to_string(),
                })
                .collect(),
        });
        Self {
            name: package.name.to_owned(),
            default_channel: package.default_channel.to_string(),
            deprecation: package.deprecation.as_ref().map(ToString::to_string),
            channels: channels.collect(),
        }
    }

    /// The channel `name`.
    pub(super) fn channel(&self, name: &str) -> Option<&ChannelSummary> {
        self.channels.iter().find(|channel| channel.name == name)
    }
}
