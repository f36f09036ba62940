//! Errors of a run.

use std::fmt;

use ::mirror::content::SelectedImage;

/// Error of a run.
#[derive(Debug)]
pub(in crate::mirror) enum RunError {
    /// The run ended without these images and so many charts, which were reported.
    Incomplete {
        images: Vec<SelectedImage>,
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
                write!(f, "{} images were not mirrored", images.len())
            }
            Self::Incomplete { images, charts } => {
                let images = images.len();
                write!(
                    f,
                    "{images} images and those of {charts} charts were not mirrored"
                )
            }
            Self::Other(error) => f.write_str(&error.chain()),
        }
    }
}

impl std::error::Error for RunError {}
