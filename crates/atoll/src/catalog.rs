//! `atoll catalog`: operator catalogs, looked at, checked, compared and cut down.
//!
//! A catalog is a folder, an image or a database of former times wherever one is asked for; of an image, only the
//! catalog is pulled. The server of catalogs is `atoll serve catalog-server`.

mod cache;
mod diff;
mod graph;
mod list;
mod prune;
mod render;
mod selection;
mod source;
mod summary;
pub(crate) mod table;
mod validate;

use ::catalog::write::Format;
use clap::{Subcommand, ValueEnum};
use service::Error;

pub(crate) use self::source::{Opener, RegistryAccessArgs};
pub(crate) use self::summary::{each_package, with_package};
pub(crate) use self::table::table;

/// What can be done with catalogs.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum CatalogCommand {
    /// Check a catalog, and tell everything that is wrong with it, with file and line
    Validate(validate::ValidateArgs),
    /// Print the documents of catalogs in one form
    Render(render::RenderArgs),
    /// Show packages, channels and heads; of a package its channels, of a channel its versions
    List(list::ListArgs),
    /// Tell what changed from one catalog to another
    Diff(diff::DiffArgs),
    /// Write a smaller catalog, with just these packages, channels and versions
    Prune(prune::PruneArgs),
    /// Print the upgrades in a channel as a drawing for Mermaid or Graphviz
    Graph(graph::GraphArgs),
    /// Make the file from which the server starts at once
    Cache(cache::CacheArgs),
}

/// How something is printed that people and programs read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// How documents are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum DocumentFormat {
    #[default]
    Json,
    Yaml,
}

impl From<DocumentFormat> for Format {
    fn from(form: DocumentFormat) -> Self {
        match form {
            DocumentFormat::Json => Self::Json,
            DocumentFormat::Yaml => Self::Yaml,
        }
    }
}

/// Does what the command line says.
///
/// Errors: a catalog that cannot be had, or that has problems; files that cannot be written.
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
