//! `atoll catalog render`: documents of catalogs.

use std::io::{self, BufWriter, ErrorKind, Write as _};

use ::catalog::write::{self, CatalogFormat};
use ::catalog::{Document, cores, read};
use clap::Args;
use service::Error;

use super::format::{CatalogFormatArgs, DocumentFormat};
use super::source::RegistryAccessArgs;

/// Arguments of `atoll catalog render`.
#[derive(Debug, Clone, Args)]
pub(crate) struct RenderArgs {
    /// Catalogs: folders, images or index.db files
    #[arg(required = true)]
    catalogs: Vec<String>,
    #[command(flatten)]
    output: CatalogFormatArgs<DocumentFormat>,
    #[command(flatten)]
    access: RegistryAccessArgs,
}

/// Prints the documents in file order, with sorted keys and normalized numbers and strings.
///
/// Errors: an unreadable catalog; its readable documents are printed nevertheless.
pub(crate) fn run(arguments: &RenderArgs) -> Result<(), Error> {
    let opener = arguments.access.open()?;
    let mut out = BufWriter::new(io::stdout().lock());
    for catalog in &arguments.catalogs {
        let content = opener.content(catalog)?;
        let print = |document: Document| match arguments.output.format {
            DocumentFormat::Json => writeln!(out, "{}", document.json),
            DocumentFormat::Yaml => write::document(&document.json, CatalogFormat::Yaml, &mut out),
        };
        let problems = match read(content.folder(), cores(), print) {
            Ok(problems) => problems,
            // The reader, such as head, closed the pipe.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => return Err(Error::new("writing documents", error)),
        };
        if !problems.0.is_empty() {
            out.flush().ok();
            return Err(Error::new(format!("reading {catalog}"), problems));
        }
    }
    match out.flush() {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::new("writing documents", error))
        }
        _ => Ok(()),
    }
}
