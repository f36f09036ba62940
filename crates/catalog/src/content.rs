//! Packages: what the documents of one package say together, checked.

mod assemble;
mod bundle;
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
pub use contents::{Contents, CsvLocation, Unpacked};

/// A package. It borrows from its documents.
#[derive(Debug)]
pub struct PackageModel<'a> {
    pub name: &'a str,
    /// Of its `olm.package` document.
    pub origin: &'a DocumentOrigin,
    /// The name of one of the channels.
    pub default_channel: Cow<'a, str>,
    pub icon: Option<Icon<'a>>,
    /// Empty where there is none.
    pub description: Cow<'a, str>,
    /// Why it is deprecated, if it is.
    pub deprecation: Option<Cow<'a, str>>,
    pub properties: Vec<Property<'a>>,
    /// One at least, by name.
    pub channels: Vec<ChannelModel<'a>>,
    /// Each is in a channel, by name.
    pub bundles: Vec<Bundle<'a>>,
}

/// A channel.
#[derive(Debug)]
pub struct ChannelModel<'a> {
    pub name: &'a str,
    pub origin: &'a DocumentOrigin,
    /// Why it is deprecated, if it is.
    pub deprecation: Option<Cow<'a, str>>,
    /// For the use of those who make catalogs.
    pub properties: Vec<Property<'a>>,
    /// One at least, by name; a bundle of that name is in the package.
    pub entries: Vec<ChannelEntry<'a>>,
    head: usize,
    chain_end: ChainEnd,
}

impl<'a> PackageModel<'a> {
    /// The channel of that name.
    pub fn channel(&self, name: &str) -> Option<&ChannelModel<'a>> {
        let index = self
            .channels
            .binary_search_by(|channel| channel.name.cmp(name))
            .ok()?;
        self.channels.get(index)
    }

    /// The bundle of that name.
    pub fn bundle(&self, name: &str) -> Option<&Bundle<'a>> {
        let index = self
            .bundles
            .binary_search_by(|bundle| bundle.name.cmp(name))
            .ok()?;
        self.bundles.get(index)
    }
}

impl<'a> ChannelModel<'a> {
    /// The entry that nothing replaces or skips.
    pub fn head(&self) -> &ChannelEntry<'a> {
        &self.entries[self.head]
    }

    /// By which rule its entries are one chain.
    pub fn chain_end(&self) -> ChainEnd {
        self.chain_end
    }

    /// The entry of that name.
    pub fn entry(&self, name: &str) -> Option<&ChannelEntry<'a>> {
        let index = self
            .entries
            .binary_search_by(|entry| (*entry.name).cmp(name))
            .ok()?;
        self.entries.get(index)
    }
}
