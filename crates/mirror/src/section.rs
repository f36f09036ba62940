//! The parts of a configuration, as policies and pruning tell them apart.

use std::fmt;

use model::mirror_metadata::ImageType;

/// A part of a configuration that brings images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// Single images and those of charts.
    Generic,
    /// Bundles and what they run.
    Operator,
    /// Releases and what they consist of.
    Release,
}

impl Section {
    /// All, by their names.
    pub const ALL: [Self; 3] = [Self::Generic, Self::Operator, Self::Release];

    /// Which part an image belongs to; none for what was made for the target, and has no name elsewhere.
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
