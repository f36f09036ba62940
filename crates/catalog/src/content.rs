//! Packages: what the documents of one package say together, checked.

mod assemble;
mod bundle;
mod contents;
mod read;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crate::Origin;
use crate::graph::ChainEnd;
use crate::schema::{Entry, Icon, Property};

pub use crate::csv::Face;
pub use bundle::{Bundle, Dependency};
pub use contents::{Contents, Csv, Unpacked};

/// A package. It borrows from its documents.
#[derive(Debug)]
pub struct Package<'a> {
    pub name: &'a str,
    /// Of its `olm.package` document.
    pub origin: &'a Origin,
    /// The name of one of the channels.
    pub default_channel: Cow<'a, str>,
    pub icon: Option<Icon<'a>>,
    /// Empty where there is none.
    pub description: Cow<'a, str>,
    /// Why it is deprecated, if it is.
    pub deprecation: Option<Cow<'a, str>>,
    pub properties: Vec<Property<'a>>,
    /// One at least, by name.
    pub channels: Vec<Channel<'a>>,
    /// Each is in a channel, by name.
    pub bundles: Vec<Bundle<'a>>,
}

/// A channel.
#[derive(Debug)]
pub struct Channel<'a> {
    pub name: &'a str,
    pub origin: &'a Origin,
    /// Why it is deprecated, if it is.
    pub deprecation: Option<Cow<'a, str>>,
    /// For the use of those who make catalogs.
    pub properties: Vec<Property<'a>>,
    /// One at least, by name; a bundle of that name is in the package.
    pub entries: Vec<Entry<'a>>,
    head: usize,
    chain_end: ChainEnd,
}

impl<'a> Package<'a> {
    /// The channel of that name.
    pub fn channel(&self, name: &str) -> Option<&Channel<'a>> {
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

impl<'a> Channel<'a> {
    /// The entry that nothing replaces or skips.
    pub fn head(&self) -> &Entry<'a> {
        &self.entries[self.head]
    }

    /// By which rule its entries are one chain.
    pub fn chain_end(&self) -> ChainEnd {
        self.chain_end
    }

    /// The entry of that name.
    pub fn entry(&self, name: &str) -> Option<&Entry<'a>> {
        let index = self
            .entries
            .binary_search_by(|entry| (*entry.name).cmp(name))
            .ok()?;
        self.entries.get(index)
    }
}
