//! Validated packages, built from their documents. Source: operator-registry, `alpha/model`.

mod assemble;
pub(crate) mod bundle;
mod contents;
#[cfg(test)]
mod tests;
mod typed;

use std::borrow::Cow;

use crate::DocumentOrigin;
use crate::graph::ChainEnd;
use crate::schema::{ChannelEntry, Icon, Property};

pub use crate::csv::PackageMetadata;
pub use bundle::{Bundle, BundleDependency};
pub use contents::{Contents, CsvLocation, UnpackedBundle};

/// A valid package. It borrows from its documents.
#[derive(Debug)]
pub struct PackageModel<'a> {
    pub name: &'a str,
    /// Location of its `olm.package` document.
    pub origin: &'a DocumentOrigin,
    /// Name of the default channel, which exists.
    pub default_channel: Cow<'a, str>,
    pub icon: Option<Icon<'a>>,
    /// Empty when absent.
    pub description: Cow<'a, str>,
    /// Deprecation message.
    pub deprecation: Option<Cow<'a, str>>,
    pub properties: Vec<Property<'a>>,
    /// At least one, sorted by name.
    pub channels: Vec<ChannelModel<'a>>,
    /// Sorted by name; each is an entry of some channel.
    pub bundles: Vec<Bundle<'a>>,
}

/// A valid channel.
#[derive(Debug)]
pub struct ChannelModel<'a> {
    pub name: &'a str,
    pub origin: &'a DocumentOrigin,
    /// Deprecation message.
    pub deprecation: Option<Cow<'a, str>>,
    /// Properties for catalog authors.
    pub properties: Vec<Property<'a>>,
    /// At least one, sorted by name; each has a bundle in the package.
    pub entries: Vec<ChannelEntry<'a>>,
    head: usize,
    chain_end: ChainEnd,
}

impl<'a> PackageModel<'a> {
    /// The channel `name`.
    pub fn channel(&self, name: &str) -> Option<&ChannelModel<'a>> {
        let index = self
            .channels
            .binary_search_by(|channel| channel.name.cmp(name))
            .ok()?;
        self.channels.get(index)
    }

    /// The bundle `name`.
    pub fn bundle(&self, name: &str) -> Option<&Bundle<'a>> {
        let index = self
            .bundles
            .binary_search_by(|bundle| bundle.name.cmp(name))
            .ok()?;
        self.bundles.get(index)
    }
}

impl<'a> ChannelModel<'a> {
    /// The channel head.
    pub fn head(&self) -> &ChannelEntry<'a> {
        &self.entries[self.head]
    }

    /// Rule that ends its replaces chain.
    pub fn chain_end(&self) -> ChainEnd {
        self.chain_end
    }

    /// The entry `name`.
    pub fn entry(&self, name: &str) -> Option<&ChannelEntry<'a>> {
        let index = self
            .entries
            .binary_search_by(|entry| (*entry.name).cmp(name))
            .ok()?;
        self.entries.get(index)
    }
}
