//! Formats of the output.

use ::catalog::write::CatalogFormat;
use clap::ValueEnum;

/// Format of catalog documents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum DocumentFormat {
    #[default]
    Json,
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
