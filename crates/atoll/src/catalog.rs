//! `atoll catalog`: operator catalogs are listed, validated, compared and pruned.
//!
//! Every catalog argument is a folder, an image or a deprecated SQLite database; of an image, only the catalog is
//! pulled. The server of catalogs is `atoll serve catalog-server`.

mod bundle;
mod cache;
mod diff;
mod expansion;
mod format;
mod graph;
mod list;
mod notices;
mod prune;
mod render;
mod selection;
mod source;
mod summary;
pub(crate) mod table;
mod validate;

use clap::Subcommand;
use service::Error;

pub(crate) use self::source::{Opener, RegistryAccessArgs};
pub(crate) use self::summary::{each_package, with_package};
pub(crate) use self::table::table;

/// Subcommands for catalogs.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum CatalogCommand {
    /// Validate a catalog, and list all problems with file and line
    Validate(validate::ValidateArgs),
    /// Render catalogs, templates and bundles as file-based catalog
    Render(render::RenderArgs),
    /// List packages with their heads, the channels of a package, or the entries of a channel
    List(list::ListArgs),
    /// Print the differences between two catalogs
    Diff(diff::DiffArgs),
    /// Write a catalog pruned to the given packages, channels and versions
    Prune(prune::PruneArgs),
    /// Print the upgrade graph of a channel for Mermaid or Graphviz
    Graph(graph::GraphArgs),
    /// Build the cache file of the catalog server
    Cache(cache::CacheArgs),
}

/// Runs the subcommand.
///
/// Errors: a catalog that is unavailable or invalid; files that cannot be written.
pub(crate) fn run(command: &CatalogCommand) -> Result<(), Error> {
    match command {
        CatalogCommand::Validate(arguments) => validate::run(arguments),
        CatalogCommand::Render(arguments) => render::run(arguments),
        CatalogCommand::List(arguments) => list::run(arguments),
        CatalogCommand::Diff(arguments) => diff::run(arguments),
        CatalogCommand::Prune(arguments) => prune::run(arguments),
        CatalogCommand::Graph(arguments) => graph::run(arguments),
        CatalogCommand::Cache(arguments) => cache::run(arguments),
    }
}
