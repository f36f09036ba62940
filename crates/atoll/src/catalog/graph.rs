//! `atoll catalog graph`: the upgrade graph of a channel.

use ::catalog::graph;
use clap::{Args, ValueEnum};
use service::Error;

use super::format::{CatalogFormatArgs, Format};
use super::source::RegistryAccessArgs;
use super::summary::with_package;
use crate::terminal;

/// Arguments of `atoll catalog graph`.
#[derive(Debug, Clone, Args)]
pub(crate) struct GraphArgs {
    /// Catalog: a folder, an image or an index.db
    catalog: String,
    /// Package
    package: String,
    /// Channel. Default: the default channel of the package
    channel: Option<String>,
    #[command(flatten)]
    output: CatalogFormatArgs<GraphFormat>,
    #[command(flatten)]
    access: RegistryAccessArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GraphFormat {
    /// Mermaid, as rendered by Git forges.
    Mermaid,
    /// Graphviz.
    Dot,
}

impl Format for GraphFormat {
    const DEFAULT: &'static str = "mermaid";
}

/// Prints the graph.
///
/// Errors: no such catalog, package or channel.
pub(crate) fn run(arguments: &GraphArgs) -> Result<(), Error> {
    let GraphArgs {
        catalog,
        package,
        channel,
        output,
        access,
    } = arguments;
    let doing = || format!("reading {catalog}");
    let cache = access.open()?.cache(catalog)?;
    let drawn = with_package(&cache, package, |package, _| {
        let name = channel.as_deref().unwrap_or(&package.default_channel);
        let channel = package.channel(name).ok_or_else(|| {
            let known: Vec<_> = package.channels.iter().map(|it| it.name).collect();
            let reason = format!("no channel {name:?}; known channels: {}", known.join(", "));
            Error::new(doing(), reason)
        })?;
        Ok(match output.format {
            GraphFormat::Mermaid => graph::mermaid(package, channel),
            GraphFormat::Dot => graph::dot(package, channel),
        })
    })?;
    let drawn = drawn.ok_or_else(|| Error::new(doing(), format!("no package {package:?}")))?;
    terminal::print(drawn.trim_end());
    Ok(())
}
