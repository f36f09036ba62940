//! `atoll catalog render`: documents of catalogs, templates and bundles.

use std::io::{self, BufWriter, ErrorKind, Write as _};

use ::catalog::Document;
use ::catalog::registry_v1::with_csv_metadata;
use ::catalog::write::{self, CatalogFormat};
use clap::{Args, ValueEnum};
use service::Error;

use super::expansion::{Expander, Stop};
use super::format::{CatalogFormatArgs, DocumentFormat};
use super::source::RegistryAccessArgs;

const WRITING: &str = "writing documents";

/// Arguments of `atoll catalog render`.
#[derive(Debug, Clone, Args)]
pub(crate) struct RenderArgs {
    /// Catalogs (folders, images or index.db files), templates or other files of documents (- for standard input), and
    /// bundles (images or folders)
    #[arg(required = true)]
    catalogs: Vec<String>,
    /// Catalog of a composite template whose components are rendered
    #[arg(long, value_name = "NAME")]
    component: Option<String>,
    /// Last migration of bundles
    #[arg(long, value_name = "LEVEL", value_enum, default_value = "none")]
    migrate_level: MigrateLevel,
    #[command(flatten)]
    output: CatalogFormatArgs<DocumentFormat>,
    #[command(flatten)]
    access: RegistryAccessArgs,
}

/// Migrations. Source: opm, `--migrate-level`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MigrateLevel {
    /// Keep bundles as they are.
    None,
    /// Replace manifests in bundles by the metadata of their CSVs, as catalogs for OpenShift from 4.17 on need it.
    BundleObjectToCsvMetadata,
}

/// Prints the documents in file order, with sorted keys and normalized numbers and strings. Templates are expanded.
///
/// Errors: an unreadable catalog; its readable documents are printed nevertheless.
pub(crate) fn run(arguments: &RenderArgs) -> Result<(), Error> {
    let opener = arguments.access.open()?;
    let expander = Expander {
        opener: &opener,
        component: arguments.component.as_deref(),
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let mut print = |document: Document| {
        let document = arguments.migrate_level.migrated(document)?;
        match arguments.output.format {
            DocumentFormat::Json => writeln!(out, "{}", document.json),
            DocumentFormat::Yaml => write::document(&document.json, CatalogFormat::Yaml, &mut out),
        }
    };
    let mut printed = Ok(());
    for catalog in &arguments.catalogs {
        printed = expander.argument(catalog, &mut print);
        if printed.is_err() {
            break;
        }
    }
    match printed {
        // The reader, such as head, closed the pipe.
        Err(Stop::Output(error)) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
        Err(Stop::Output(error)) => return Err(Error::new(WRITING, error)),
        Err(Stop::Failed(error)) => {
            out.flush().ok();
            return Err(error);
        }
        Ok(()) => {}
    }
    match out.flush() {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Error::new(WRITING, error)),
        _ => Ok(()),
    }
}

impl MigrateLevel {
    fn migrated(self, document: Document) -> io::Result<Document> {
        match self {
            Self::None => Ok(document),
            Self::BundleObjectToCsvMetadata => {
                with_csv_metadata(&document).map_err(io::Error::other)
            }
        }
    }
}
