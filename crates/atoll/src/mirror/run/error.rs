//! Errors of a run.

use std::fmt;

use ::mirror::content::SelectedImage;

/// Error of a run.
#[derive(Debug)]
pub(in crate::mirror) enum RunError {
    /// The run ended without these images, so many charts, and so many packages or malformed references of catalogs,
    /// which were reported.
    Incomplete {
        images: Vec<SelectedImage>,
        charts: usize,
        catalog_parts: usize,
    },
    Other(model::Error),
}

impl From<model::Error> for RunError {
    fn from(error: model::Error) -> Self {
        Self::Other(error)
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Incomplete {
                images,
                charts,
                catalog_parts,
            } => {
                let counts = [
                    (images.len(), "images"),
                    (*charts, "charts with their images"),
                    (*catalog_parts, "parts of catalogs"),
                ];
                let counted = counts.iter().filter(|(count, _)| *count > 0);
                let counted: Vec<_> = counted.map(|(n, what)| format!("{n} {what}")).collect();
                write!(f, "{} were not mirrored", counted.join(" and "))
            }
            Self::Other(error) => f.write_str(&error.chain()),
        }
    }
}

impl std::error::Error for RunError {}
