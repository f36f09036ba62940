//! Formats of the output.

use ::catalog::write::CatalogFormat;
use clap::{Args, ValueEnum};

use crate::output_format::OutputFormat;

/// The formats of a verb.
pub(super) trait Format: ValueEnum + Send + Sync + 'static {
    /// Name of the default. It is a name because the default value that clap derives for a generic
    /// type is one static of all its formats.
    const DEFAULT: &'static str;
}

impl Format for OutputFormat {
    const DEFAULT: &'static str = "text";
}

/// `--format` of a verb; `--output` and `-o` are accepted, too.
#[derive(Debug, Clone, Args)]
pub(super) struct CatalogFormatArgs<F: Format> {
    /// Output format
    #[arg(
        long,
        alias = "output",
        short_alias = 'o',
        value_name = "FORMAT",
        value_enum,
        default_value = F::DEFAULT
    )]
    pub(super) format: F,
}

/// Format of catalog documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum DocumentFormat {
    /// One document per line.
    Json,
    /// YAML.
    Yaml,
}

impl Format for DocumentFormat {
    const DEFAULT: &'static str = "json";
}

impl From<DocumentFormat> for CatalogFormat {
    fn from(form: DocumentFormat) -> Self {
        match form {
            DocumentFormat::Json => Self::Json,
            DocumentFormat::Yaml => Self::Yaml,
        }
    }
}
