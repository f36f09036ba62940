//! Sections of a configuration, which policies and pruning distinguish.

use std::fmt;

use model::mirror_metadata::ImageType;

/// A section of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// Single images and those of charts.
    Generic,
    /// Bundles and their related images.
    Operator,
    /// Releases and their components.
    Release,
}

impl Section {
    /// All, by their names.
    pub const ALL: [Self; 3] = [Self::Generic, Self::Operator, Self::Release];

    /// The section of an image; none for images that are built for the target.
    pub fn of(kind: ImageType) -> Option<Self> {
        match kind {
            ImageType::Generic | ImageType::HelmImage => Some(Self::Generic),
            ImageType::OperatorBundle | ImageType::OperatorRelatedImage => Some(Self::Operator),
            ImageType::OcpRelease | ImageType::OcpReleaseContent => Some(Self::Release),
            ImageType::OperatorCatalog | ImageType::CincinnatiGraph => None,
        }
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Generic => "generic",
            Self::Operator => "operator",
            Self::Release => "release",
        })
    }
}
