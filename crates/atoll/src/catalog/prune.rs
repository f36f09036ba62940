//! `atoll catalog prune`: a pruned catalog.

use std::collections::BTreeSet;
use std::path::PathBuf;

use ::catalog::filter::{FilteredPackage, filter};
use ::catalog::write::CatalogWriter;
use clap::Args;
use service::{Error, ResultExt as _};

use super::format::{CatalogFormatArgs, DocumentFormat};
use super::selection::{self, DefaultChannelArg, KeepArg};
use super::source::RegistryAccessArgs;
use super::summary::each_package;
use crate::terminal;

/// Arguments of `atoll catalog prune`.
#[derive(Debug, Clone, Args)]
pub(crate) struct PruneArgs {
    /// Catalog: a folder, an image or an index.db
    catalog: String,
    /// Packages to keep: PACKAGE or PACKAGE:CHANNEL, optionally with versions, as in etcd:stable@1.2.0..1.4.9
    #[arg(required = true, value_name = "PACKAGE[:CHANNEL][@VERSIONS]", value_parser = selection::parse)]
    keep: Vec<KeepArg>,
    /// Folder for the pruned catalog; must be missing or empty
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    #[command(flatten)]
    output: CatalogFormatArgs<DocumentFormat>,
    /// Keep only the heads of channels without versions
    #[arg(long)]
    heads: bool,
    /// Default channel of a package whose own is pruned
    #[arg(long, value_name = "PACKAGE=CHANNEL", value_parser = selection::parse_default)]
    default_channel: Vec<DefaultChannelArg>,
    #[command(flatten)]
    access: RegistryAccessArgs,
}

/// Writes one folder per kept package.
///
/// Errors: an unreadable catalog, an unknown package, channel or version, an existing target folder.
pub(crate) fn run(arguments: &PruneArgs) -> Result<(), Error> {
    let PruneArgs { catalog, to, .. } = arguments;
    let doing = || format!("pruning {catalog}");
    let selection = selection::selection(
        &arguments.keep,
        &arguments.default_channel,
        !arguments.heads,
    )
    .doing(doing)?;
    let cache = arguments.access.open()?.cache(catalog)?;
    let mut writer = CatalogWriter::create(to, arguments.output.format.into()).doing(doing)?;
    let mut missing: BTreeSet<&str> = selection
        .packages
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    each_package(&cache, |package, documents| {
        let Some(wanted) = selection.of(package.name) else {
            return Ok(());
        };
        missing.remove(package.name);
        let filtered = filter(package, documents, &wanted, selection.full)
            .map_err(|e| Error::new(doing(), e.to_string()))?;
        report(package.name, &filtered);
        writer
            .package(package.name, &filtered.documents)
            .doing(|| format!("writing {}", to.display()))
    })?;
    for name in &missing {
        if let Some(problems) = cache.report().refused.get(*name) {
            return Err(Error::new(doing(), problems.clone()));
        }
    }
    if !missing.is_empty() {
        let missing: Vec<_> = missing.into_iter().collect();
        let reason = format!("the catalog has no package {}", missing.join(", "));
        return Err(Error::new(doing(), reason));
    }
    writer
        .finish()
        .doing(|| format!("writing {}", to.display()))
}

fn report(package: &str, filtered: &FilteredPackage) {
    let count = filtered.documents.len();
    terminal::print(&format!("{package}: {count} documents"));
    for (channel, bundles) in &filtered.left_out {
        let bundles: Vec<_> = bundles.iter().map(String::as_str).collect();
        let bundles = bundles.join(", ");
        terminal::notice(&format!(
            "{package} {channel}: pruned, since no upgrade path leads to a kept bundle: {bundles}"
        ));
    }
}
