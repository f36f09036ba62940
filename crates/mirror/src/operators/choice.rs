//! The selected parts of a catalog.

use std::collections::BTreeMap;
use std::fmt;

use catalog::cache::CatalogCache;
use catalog::content::PackageModel;
use catalog::filter::Channels;
use model::Error;

/// The selected parts of a catalog, by package.
pub type Choice = BTreeMap<String, PackageChoice>;

/// The selected part of a package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackageChoice {
    /// Selected bundles by channel. No channel is empty.
    pub channels: Channels,
    /// The default channel where the package's own is not taken, as the image set has it.
    pub default_channel: Option<String>,
    /// Bundles that were wanted, but no upgrade leads from them to the others.
    pub left_out: Channels,
    /// Why each bundle is taken.
    pub reasons: BTreeMap<String, Reason>,
}

/// Why a bundle is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// It is the head of its channel, and no versions are configured.
    Head { channel: String },
    /// All of the channel is.
    Whole { channel: String },
    /// It is in the configured version range.
    InRange { channel: String },
    /// Since the run that took this version, it and all that came after are taken.
    Since { channel: String, version: String },
    /// An upgrade to the others leads through it.
    Way { channel: String },
    /// That bundle requires it, or an API that it provides.
    Needed { by: String, what: String },
}

/// Does `work` with a package.
pub(super) fn with_package<T>(
    cache: &CatalogCache,
    name: &str,
    work: impl FnOnce(&PackageModel<'_>) -> T,
) -> Result<Option<T>, Error> {
    cache
        .with_package(name, |package, _| work(package))
        .map_err(|e| Error::internal(format!("reading the package {name}"), e))
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Head { channel } => write!(f, "the head of channel {channel}"),
            Self::Whole { channel } => write!(f, "all of channel {channel} is wanted"),
            Self::InRange { channel } => {
                write!(
                    f,
                    "among the versions of channel {channel} that are asked for"
                )
            }
            Self::Since { channel, version } => {
                write!(
                    f,
                    "in channel {channel}, which is mirrored from {version} on"
                )
            }
            Self::Way { channel } => write!(f, "an upgrade in channel {channel} leads through it"),
            Self::Needed { by, what } => write!(f, "{by} needs {what}"),
        }
    }
}
