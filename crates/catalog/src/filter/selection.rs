//! Selection of packages, channels and versions.

use std::fmt;

use crate::graph::VersionBounds;

/// Selection from a catalog.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CatalogSelection {
    /// All packages when empty. The last entry of a package wins.
    pub packages: Vec<PackageSelection>,
    /// Keep all versions instead of channel heads where no bounds are set.
    pub full: bool,
}

/// Selection from a package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackageSelection {
    pub name: String,
    /// All channels when empty.
    pub channels: Vec<ChannelSelection>,
    /// Bounds of channels without their own.
    pub bounds: VersionBounds,
    /// Default channel when the package's own is not kept.
    pub default_channel: Option<String>,
}

/// Selection from a channel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChannelSelection {
    pub name: String,
    pub bounds: VersionBounds,
}

impl CatalogSelection {
    /// The selection from `package`; `None` when it is not selected.
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

/// A selection that matches nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unsatisfied {
    /// The package has no such channel.
    Channel {
        package: String,
        channel: String,
        /// Its channels.
        known: Vec<String>,
    },
    /// No version is within the bounds.
    Versions {
        package: String,
        /// `None` when all channels were searched.
        channel: Option<String>,
        /// Existing versions, oldest first.
        known: Vec<String>,
    },
    /// Selected bundles break rules of all versions of opm.
    Broken {
        package: String,
        bundles: Vec<String>,
    },
    /// The default channel is not kept, and its replacement is ambiguous.
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
                    "no version of package {package:?}{channel} is within the bounds; there are {known}"
                )
            }
            Self::Broken { package, bundles } => {
                let bundles = bundles.join(", ");
                write!(
                    f,
                    "bundles of package {package:?} are selected and invalid: {bundles}"
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
