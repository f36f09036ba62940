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
mod source;
mod summary;
pub(crate) mod table;
mod validate;
mod wanted;

use ::catalog::write::Format;
use clap::{Subcommand, ValueEnum};
use service::Error;

pub(crate) use self::source::{Access, Opener};
pub(crate) use self::summary::{each_package, with_package};
pub(crate) use self::table::table;

/// What can be done with catalogs.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Verb {
    /// Check a catalog, and tell everything that is wrong with it, with file and line
    Validate(validate::Arguments),
    /// Print the documents of catalogs in one form
    Render(render::Arguments),
    /// Show packages, channels and heads; of a package its channels, of a channel its versions
    List(list::Arguments),
    /// Tell what changed from one catalog to another
    Diff(diff::Arguments),
    /// Write a smaller catalog, with just these packages, channels and versions
    Prune(prune::Arguments),
    /// Print the upgrades in a channel as a drawing for Mermaid or Graphviz
    Graph(graph::Arguments),
    /// Make the file from which the server starts at once
    Cache(cache::Arguments),
}

/// How something is printed that people and programs read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// How documents are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    #[default]
    Json,
    Yaml,
}

impl From<Form> for Format {
    fn from(form: Form) -> Self {
        match form {
            Form::Json => Self::Json,
            Form::Yaml => Self::Yaml,
        }
    }
}

/// Does what the command line says.
///
/// Errors: a catalog that cannot be had, or that has problems; files that cannot be written.
pub(crate) fn run(verb: &Verb) -> Result<(), Error> {
    match verb {
        Verb::Validate(arguments) => validate::run(arguments),
        Verb::Render(arguments) => render::run(arguments),
        Verb::List(arguments) => list::run(arguments),
        Verb::Diff(arguments) => diff::run(arguments),
        Verb::Prune(arguments) => prune::run(arguments),
        Verb::Graph(arguments) => graph::run(arguments),
        Verb::Cache(arguments) => cache::run(arguments),
    }
}
