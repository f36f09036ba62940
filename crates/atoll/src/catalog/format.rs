//! Formats of the output.

use ::catalog::write::CatalogFormat;
use clap::{Args, ValueEnum};

/// `--format` of a verb; `--output` and `-o` are accepted, too.
#[derive(Debug, Clone, Args)]
pub(super) struct CatalogFormatArgs<F: ValueEnum + Default + Send + Sync + 'static> {
    /// Output format
    #[arg(
        long,
        alias = "output",
        short_alias = 'o',
        value_name = "FORMAT",
        value_enum,
        default_value_t
    )]
    pub(super) format: F,
}

/// Format of catalog documents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum DocumentFormat {
    /// One document per line.
    #[default]
    Json,
    /// YAML.
    Yaml,
}

impl From<DocumentFormat> for CatalogFormat {
    fn from(form: DocumentFormat) -> Self {
        match form {
            DocumentFormat::Json => Self::Json,
            DocumentFormat::Yaml => Self::Yaml,
        }
    }
}
