//! `atoll catalog list`: packages, channels and versions as tables.

use clap::Args;
use serde::Serialize;
use service::{Error, ResultExt as _};

use super::format::CatalogFormatArgs;
use super::source::RegistryAccessArgs;
use super::summary::{ChannelSummary, PackageSummary, each_package, with_package};
use super::table::table;
use crate::output_format::OutputFormat;
use crate::terminal;

/// Arguments of `atoll catalog list`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ListArgs {
    /// Catalog: a folder, an image or an index.db
    catalog: String,
    /// List the channels of this package
    package: Option<String>,
    /// List the entries of this channel of the package
    channel: Option<String>,
    #[command(flatten)]
    output: CatalogFormatArgs<OutputFormat>,
    #[command(flatten)]
    access: RegistryAccessArgs,
}

/// Prints the list.
///
/// Errors: no such catalog, package or channel.
pub(crate) fn run(arguments: &ListArgs) -> Result<(), Error> {
    let ListArgs {
        catalog, output, ..
    } = arguments;
    let cache = arguments.access.open()?.cache(catalog)?;
    let Some(package) = &arguments.package else {
        let mut all = Vec::new();
        each_package(&cache, |package, _| {
            all.push(PackageSummary::of(package));
            Ok(())
        })?;
        return print(output.format, &all, packages);
    };
    let doing = || format!("reading {catalog}");
    let found = with_package(&cache, package, |package, _| {
        Ok(PackageSummary::of(package))
    })?;
    let package = found.ok_or_else(|| {
        let reason = format!("no package {package:?}: `atoll catalog list {catalog}` lists all");
        Error::new(doing(), reason)
    })?;
    let Some(channel) = &arguments.channel else {
        return print(output.format, &package, channels);
    };
    let found = package.channel(channel).ok_or_else(|| {
        let known: Vec<_> = package.channels.iter().map(|it| it.name.as_str()).collect();
        let reason = format!(
            "no channel {channel:?}; known channels: {}",
            known.join(", ")
        );
        Error::new(doing(), reason)
    })?;
    print(output.format, found, versions)
}

fn print<T: Serialize>(
    output: OutputFormat,
    value: &T,
    text: impl FnOnce(&T) -> String,
) -> Result<(), Error> {
    terminal::print(&match output {
        OutputFormat::Text => text(value),
        OutputFormat::Json => serde_json::to_string(value).doing("printing")?,
    });
    Ok(())
}

#[expect(
    clippy::ptr_arg,
    reason = "a formatter of `print`, whose value is the Vec"
)]
fn packages(all: &Vec<PackageSummary>) -> String {
    let row = |package: &PackageSummary| {
        let head = package.channel(&package.default_channel);
        [
            package.name.clone(),
            package.default_channel.clone(),
            head.map_or_else(String::new, |channel| channel.head.clone()),
            package.channels.len().to_string(),
            state(package.deprecation.as_ref()),
        ]
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    table(
        ["PACKAGE", "DEFAULT CHANNEL", "HEAD", "CHANNELS", "STATE"],
        &rows,
    )
}

fn channels(package: &PackageSummary) -> String {
    let row = |channel: &ChannelSummary| {
        let is_default = channel.name == package.default_channel;
        [
            channel.name.clone(),
            channel.head.clone(),
            channel.head_version.clone(),
            channel.entries.len().to_string(),
            if is_default { "default" } else { "" }.to_owned(),
            state(channel.deprecation.as_ref()),
        ]
    };
    let rows: Vec<_> = package.channels.iter().map(row).collect();
    table(
        ["CHANNEL", "HEAD", "VERSION", "ENTRIES", "DEFAULT", "STATE"],
        &rows,
    )
}

fn versions(channel: &ChannelSummary) -> String {
    let rows: Vec<_> = channel
        .entries
        .iter()
        .map(|entry| {
            [
                entry.version.clone(),
                entry.name.clone(),
                entry.replaces.clone(),
                entry.skips.join(" "),
                entry.skip_range.clone(),
            ]
        })
        .collect();
    table(
        ["VERSION", "BUNDLE", "REPLACES", "SKIPS", "SKIP RANGE"],
        &rows,
    )
}

fn state(deprecation: Option<&String>) -> String {
    deprecation.map_or_else(String::new, |_| "deprecated".to_owned())
}
