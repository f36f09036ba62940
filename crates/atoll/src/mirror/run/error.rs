//! Why a run has failed.

use std::fmt;

use ::mirror::content::Wanted;

/// Why a run has failed.
#[derive(Debug)]
pub(in crate::mirror) enum RunError {
    /// It came to its end without these images, and so many charts, of which people were told.
    Incomplete {
        images: Vec<Wanted>,
        charts: usize,
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
            Self::Incomplete { images, charts: 0 } => {
                write!(f, "images: {} were not carried", images.len())
            }
            Self::Incomplete { images, charts } => {
                let images = images.len();
                write!(
                    f,
                    "images: {images} were not carried, and those of {charts} charts"
                )
            }
            Self::Other(error) => f.write_str(&error.chain()),
        }
    }
}

impl std::error::Error for RunError {}
