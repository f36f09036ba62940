//! What somebody wants of a catalog.

use std::fmt;

use crate::graph::VersionBounds;

/// What is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CatalogSelection {
    /// All, where none is named. A package's last mention counts.
    pub packages: Vec<PackageSelection>,
    /// Whether everything is wanted where no bounds are set, or only the heads of channels.
    pub full: bool,
}

/// What is wanted of a package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackageSelection {
    pub name: String,
    /// All, where none is named.
    pub channels: Vec<ChannelSelection>,
    /// For channels without bounds of their own.
    pub bounds: VersionBounds,
    /// The default channel, if the package's own is not kept.
    pub default_channel: Option<String>,
}

/// What is wanted of a channel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChannelSelection {
    pub name: String,
    pub bounds: VersionBounds,
}

impl CatalogSelection {
    /// What is wanted of a package, if anything is.
    pub fn of(&self, package: &str) -> Option<PackageSelection> {
        if self.packages.is_empty() {
            let name = package.to_owned();
            return Some(PackageSelection {
                name,
                ..PackageSelection::default()
            });
        }
        let named = self.packages.iter().rev().find(|it| it.name == package);
        named.cloned()
    }
}

/// Why something that is wanted cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unsatisfied {
    /// The package has no such channel.
    Channel {
        package: String,
        channel: String,
        /// Those that it has.
        known: Vec<String>,
    },
    /// No version lies within the bounds.
    Versions {
        package: String,
        /// Nothing where all channels of the package were searched.
        channel: Option<String>,
        /// Those that there are, oldest first.
        known: Vec<String>,
    },
    /// The default channel is not kept, and which of these takes its place is not clear.
    DefaultChannel {
        package: String,
        default: String,
        kept: Vec<String>,
    },
}

impl fmt::Display for Unsatisfied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Channel {
                package,
                channel,
                known,
            } => {
                let known = known.join(", ");
                write!(
                    f,
                    "package {package:?} has no channel {channel:?}; it has {known}"
                )
            }
            Self::Versions {
                package,
                channel,
                known,
            } => {
                let channel = channel.iter().map(|name| format!(" channel {name:?}"));
                let channel: String = channel.collect();
                let known = known.join(", ");
                write!(
                    f,
                    "no version of package {package:?}{channel} lies within the bounds; there are {known}"
                )
            }
            Self::DefaultChannel {
                package,
                default,
                kept,
            } => {
                let kept = kept.join(", ");
                write!(
                    f,
                    "the default channel {default:?} of package {package:?} is not selected; name one of {kept} as the default channel"
                )
            }
        }
    }
}

impl std::error::Error for Unsatisfied {}
