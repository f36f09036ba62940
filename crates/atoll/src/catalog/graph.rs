//! Upgrades in a channel, drawn.

use ::catalog::graph;
use clap::{Args, ValueEnum};
use service::Error;

use super::source::RegistryAccessArgs;
use super::summary::with_package;
use crate::terminal;

/// What is drawn.
#[derive(Debug, Clone, Args)]
pub(crate) struct GraphArgs {
    /// A folder, an image or an index.db
    catalog: String,
    /// The package
    package: String,
    /// Its channel; without one, the default channel
    channel: Option<String>,
    /// For which program
    #[arg(short, long, value_enum, default_value_t)]
    output: GraphFormat,
    #[command(flatten)]
    access: RegistryAccessArgs,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum GraphFormat {
    /// Mermaid, as pages of forges show it.
    #[default]
    Mermaid,
    /// Graphviz.
    Dot,
}

/// Prints the drawing.
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
    let doing = || format!("looking at {catalog}");
    let cache = access.open()?.cache(catalog)?;
    let drawn = with_package(&cache, package, |package, _| {
        let name = channel.as_deref().unwrap_or(&package.default_channel);
        let channel = package.channel(name).ok_or_else(|| {
            let known: Vec<_> = package.channels.iter().map(|it| it.name).collect();
            let reason = format!("there is no channel {name:?}, but {}", known.join(", "));
            Error::new(doing(), reason)
        })?;
        Ok(match output {
            GraphFormat::Mermaid => graph::mermaid(package, channel),
            GraphFormat::Dot => graph::dot(package, channel),
        })
    })?;
    let drawn =
        drawn.ok_or_else(|| Error::new(doing(), format!("there is no package {package:?}")))?;
    terminal::print(drawn.trim_end());
    Ok(())
}
