//! Lookups in a cache.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::header::TableId;
use super::mmap::Damaged;
use super::open::CatalogCache;
use super::record::{self, ByteRange, Custom, Provided, Replaced, Rows, TextRef};
use super::slices::{EntryPart, Slices, Spans};
use crate::{Document, DocumentOrigin, PACKAGE};

/// A package in the cache.
#[derive(Debug, Clone, Copy)]
pub struct CachedPackage<'a> {
    cache: &'a Arc<CatalogCache>,
    row: record::Package,
}

/// A channel in the cache.
#[derive(Debug, Clone, Copy)]
pub struct CachedChannel<'a> {
    cache: &'a Arc<CatalogCache>,
    row: record::Channel,
}

/// A channel entry in the cache.
#[derive(Debug, Clone, Copy)]
pub struct CachedEntry<'a> {
    cache: &'a Arc<CatalogCache>,
    row: record::Entry,
}

/// A document in the cache.
#[derive(Debug, Clone, Copy)]
pub struct CachedDocument<'a> {
    pub schema: &'a str,
    /// Empty when absent.
    pub package: &'a str,
    /// Empty when absent.
    pub name: &'a str,
    /// File and line of its source.
    pub origin: (&'a str, u64),
    /// The document in the normal form, without a newline.
    pub json: ByteRange,
}

impl CatalogCache {
    /// Framed names of all packages.
    pub fn list_packages(self: &Arc<Self>) -> Slices {
        self.slices(self.header().packages)
    }

    /// A reply without messages.
    pub fn nothing(self: &Arc<Self>) -> Slices {
        Slices::new(self, Spans::One(None))
    }

    /// Framed bundles of all channels.
    pub fn list_bundles(self: &Arc<Self>) -> Slices {
        self.slices(self.header().bundles)
    }

    /// Number of packages.
    pub fn package_count(&self) -> u32 {
        self.all::<record::Package>(TableId::Packages).count
    }

    /// Number of channels of all packages.
    pub fn channel_count(&self) -> u32 {
        self.all::<record::Channel>(TableId::Channels).count
    }

    /// Number of entries of all channels.
    pub fn entry_count(&self) -> u32 {
        self.all::<record::Entry>(TableId::Entries).count
    }

    /// The package `name`.
    pub fn package<'a>(self: &'a Arc<Self>, name: &str) -> Option<CachedPackage<'a>> {
        let rows = self.all::<record::Package>(TableId::Packages);
        let order = |row: &record::Package| self.text(row.name).cmp(name);
        let (_, row) = self.find(TableId::Packages, rows, order)?;
        Some(CachedPackage { cache: self, row })
    }

    /// Framed channel entries that replace or skip `bundle`; `None` without any.
    pub fn replacing(self: &Arc<Self>, bundle: &str) -> Option<Slices> {
        let by = self.replaced_by(bundle)?;
        Some(Slices::new(self, Spans::Entries(by, EntryPart::Itself)))
    }

    /// Framed channel entries that provide the API, with one per skip; `None` without any.
    pub fn providing(self: &Arc<Self>, group: &str, version: &str, kind: &str) -> Option<Slices> {
        let provided = self.provided([group, version, kind])?;
        let spans = Spans::Entries(provided.by, EntryPart::Provides);
        Some(Slices::new(self, spans))
    }

    /// As [`providing`](Self::providing), of channel heads only, with skips that are entries of their channels.
    pub fn latest_providing(
        self: &Arc<Self>,
        group: &str,
        version: &str,
        kind: &str,
    ) -> Option<Slices> {
        let provided = self.provided([group, version, kind])?;
        let spans = Spans::Entries(provided.latest, EntryPart::Latest);
        (provided.latest.count > 0).then(|| Slices::new(self, spans))
    }

    /// Packages with a bundle that provides the API.
    pub fn packages_providing(
        self: &Arc<Self>,
        group: &str,
        version: &str,
        kind: &str,
    ) -> BTreeSet<&str> {
        let provided = self.provided([group, version, kind]);
        let entries = provided.map(|provided| self.list(provided.by));
        let entries = entries.into_iter().flatten();
        let package = |number| {
            let entry: record::Entry = self.row(TableId::Entries, number)?;
            let channel: record::Channel = self.row(TableId::Channels, entry.channel)?;
            let package: record::Package = self.row(TableId::Packages, channel.package)?;
            Some(self.text(package.name))
        };
        entries.filter_map(package).collect()
    }

    /// The default provider: head of a default channel, of the first package by name.
    pub fn default_providing<'a>(
        self: &'a Arc<Self>,
        group: &str,
        version: &str,
        kind: &str,
    ) -> Option<CachedEntry<'a>> {
        let latest = self.provided([group, version, kind])?.latest;
        let mut heads = self.list(latest).filter_map(|number| self.entry(number));
        heads.find(CachedEntry::is_in_default_channel)
    }

    /// Framed custom documents by schema and package ("" for none).
    pub fn customs(self: &Arc<Self>, schema: &str, package: &str) -> Option<Slices> {
        let order = |row: &Custom| {
            let own = [row.schema, row.package].map(|text| self.text(text));
            own.cmp(&[schema, package])
        };
        let rows = self.all::<Custom>(TableId::Customs);
        let (_, row) = self.find(TableId::Customs, rows, order)?;
        Some(self.slices(row.reply))
    }

    /// All documents, in walk order.
    pub fn lines(&self) -> impl Iterator<Item = CachedDocument<'_>> {
        let Rows { count, .. } = self.all::<record::Line>(TableId::Lines);
        (0..count).filter_map(|number| {
            let row: record::Line = self.row(TableId::Lines, number)?;
            Some(CachedDocument {
                schema: self.text(row.schema),
                package: self.text(row.package),
                name: self.text(row.name),
                origin: (self.text(row.file), row.number),
                json: row.json,
            })
        })
    }

    /// Documents by package, in walk order; "" for those without one.
    pub fn groups(&self) -> BTreeMap<&str, Vec<CachedDocument<'_>>> {
        let mut groups: BTreeMap<&str, Vec<CachedDocument<'_>>> = BTreeMap::new();
        for line in self.lines() {
            groups.entry(line.group()).or_default().push(line);
        }
        groups
    }

    /// Documents of a package, in walk order.
    ///
    /// Errors: as [`read`](Self::read).
    pub fn documents(&self, group: &str) -> Result<Vec<Document>, Damaged> {
        self.read(self.lines().filter(|line| line.group() == group))
    }

    /// Reads the documents at `lines`.
    ///
    /// Errors: checksum mismatch.
    pub fn read<'a>(
        &self,
        lines: impl IntoIterator<Item = CachedDocument<'a>>,
    ) -> Result<Vec<Document>, Damaged> {
        let read = |line: CachedDocument<'_>| {
            let json = self.slice(line.json)?;
            let (file, number) = line.origin;
            Ok(Document {
                schema: line.schema.to_owned(),
                package: line.package.to_owned(),
                name: line.name.to_owned(),
                json: String::from_utf8_lossy(&json).into_owned(),
                origin: DocumentOrigin::new(file, number),
            })
        };
        lines.into_iter().map(read).collect()
    }

    fn entry(self: &Arc<Self>, number: u32) -> Option<CachedEntry<'_>> {
        let row = self.row(TableId::Entries, number)?;
        Some(CachedEntry { cache: self, row })
    }

    fn replaced_by(&self, bundle: &str) -> Option<Rows> {
        let order = |row: &Replaced| self.text(row.name).cmp(bundle);
        let rows = self.all::<Replaced>(TableId::Replaced);
        let (_, row) = self.find(TableId::Replaced, rows, order)?;
        Some(row.by)
    }

    fn provided(&self, api: [&str; 3]) -> Option<Provided> {
        let order = |row: &Provided| {
            let own = [row.group, row.version, row.kind].map(|text| self.text(text));
            own.cmp(&api)
        };
        let rows = self.all::<Provided>(TableId::Provided);
        Some(self.find(TableId::Provided, rows, order)?.1)
    }

    /// Entry numbers in a range of the lists.
    fn list(&self, rows: Rows) -> impl Iterator<Item = u32> {
        let numbers = rows.first..rows.first.saturating_add(rows.count);
        numbers.filter_map(|number| self.row(TableId::Lists, number))
    }
}

impl<'a> CachedDocument<'a> {
    /// Package of the document; empty for documents without one.
    pub fn group(&self) -> &'a str {
        if self.schema == PACKAGE {
            self.name
        } else {
            self.package
        }
    }
}

impl<'a> CachedPackage<'a> {
    /// The framed `Package`.
    pub fn reply(&self) -> Slices {
        self.cache.slices(self.row.reply)
    }

    /// The channel `name`.
    pub fn channel(&self, name: &str) -> Option<CachedChannel<'a>> {
        let cache = self.cache;
        let order = |row: &record::Channel| cache.text(row.name).cmp(name);
        let (_, row) = cache.find(TableId::Channels, self.row.channels, order)?;
        Some(CachedChannel { cache, row })
    }
}

impl<'a> CachedChannel<'a> {
    /// The channel head.
    pub fn head(&self) -> Option<CachedEntry<'a>> {
        self.cache.entry(self.row.head)
    }

    /// The entry `name`.
    pub fn entry(&self, name: &str) -> Option<CachedEntry<'a>> {
        let cache = self.cache;
        let order = |row: &record::Entry| cache.text(row.bundle).cmp(name);
        let (_, row) = cache.find(TableId::Entries, self.row.entries, order)?;
        Some(CachedEntry { cache, row })
    }

    /// The first entry of the channel that replaces or skips `bundle`.
    pub fn replacing(&self, bundle: &str) -> Option<CachedEntry<'a>> {
        let Rows { first, count } = self.row.entries;
        let (cache, by) = (self.cache, self.cache.replaced_by(bundle)?);
        let place = |row: &u32| match *row {
            row if row < first => Ordering::Less,
            row if row - first < count => Ordering::Equal,
            _ => Ordering::Greater,
        };
        // Binary search finds any entry of the channel; step back to the first.
        let (mut at, mut found) = cache.find(TableId::Lists, by, place)?;
        while at > by.first
            && let Some(before) = cache.row::<u32>(TableId::Lists, at - 1)
            && before >= first
        {
            (at, found) = (at - 1, before);
        }
        cache.entry(found)
    }
}

impl CachedEntry<'_> {
    /// The framed `Bundle`.
    pub fn reply(&self) -> Slices {
        let spans = [self.row.own, self.row.common, self.row.csv];
        Slices::new(self.cache, Spans::Three(spans))
    }

    fn is_in_default_channel(&self) -> bool {
        let name = |text: TextRef| self.cache.text(text);
        let channel = self
            .cache
            .row::<record::Channel>(TableId::Channels, self.row.channel);
        channel.is_some_and(|channel| {
            let package = self
                .cache
                .row::<record::Package>(TableId::Packages, channel.package);
            package.is_some_and(|package| name(package.default_channel) == name(channel.name))
        })
    }
}
