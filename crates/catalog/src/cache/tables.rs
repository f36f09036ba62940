//! Builds the tables of a cache.

use std::collections::{BTreeMap, HashMap};

use super::build_error::{BuildError, too_large};
use super::encode::{EncodedChannel, EncodedEntry, EncodedPackage};
use super::header::{TABLES, TableId};
use super::record::{
    ByteRange, Channel, Custom, Entry, Line, Package, Provided, Replaced, Rows, TableRow, TextRef,
};
use super::string_table::StringTable;

/// A bundle of `ListBundles`.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListedBundle {
    channel: TextRef,
    package: TextRef,
    bundle: TextRef,
    pub(super) parts: [ByteRange; 3],
}

#[derive(Debug, Default)]
pub(super) struct Tables {
    packages: Vec<Package>,
    channels: Vec<Channel>,
    entries: Vec<Entry>,
    replaced: HashMap<TextRef, Vec<u32>>,
    provided: HashMap<[TextRef; 3], Providers>,
    customs: Vec<Custom>,
    pub(super) listed: Vec<ListedBundle>,
}

#[derive(Debug, Default)]
struct Providers {
    all: Vec<u32>,
    latest: Vec<u32>,
}

impl Tables {
    /// Adds the next package; packages arrive sorted by name.
    ///
    /// Errors: a number exceeds the width of its column.
    pub(super) fn package(
        &mut self,
        package: &EncodedPackage,
        texts: &mut StringTable,
    ) -> Result<(), BuildError> {
        let number = row(&self.packages)?;
        let name = texts.add(&package.name)?;
        let apis = package.provided.iter().map(|apis| {
            let texts = apis.iter().map(|[group, version, kind]| {
                Ok([texts.add(group)?, texts.add(version)?, texts.add(kind)?])
            });
            texts.collect::<Result<Vec<_>, BuildError>>()
        });
        let apis = apis.collect::<Result<Vec<_>, _>>()?;
        let first = row(&self.channels)?;
        for channel in &package.channels {
            self.channel(channel, (number, name), &apis, texts)?;
        }
        self.packages.push(Package {
            name,
            channels: rows(first, package.channels.len())?,
            default_channel: texts.add(&package.default_channel)?,
            reply: package.reply,
        });
        Ok(())
    }

    fn channel(
        &mut self,
        channel: &EncodedChannel,
        (package, package_name): (u32, TextRef),
        apis: &[Vec<[TextRef; 3]>],
        texts: &mut StringTable,
    ) -> Result<(), BuildError> {
        let number = row(&self.channels)?;
        let name = texts.add(&channel.name)?;
        let first = row(&self.entries)?;
        for (index, entry) in channel.entries.iter().enumerate() {
            let own = row(&self.entries)?;
            let bundle = texts.add(&entry.name)?;
            self.replaced(entry, own, texts)?;
            for api in &apis[entry.bundle] {
                let providers = self.provided.entry(*api).or_default();
                providers.all.push(own);
                if index == channel.head {
                    providers.latest.push(own);
                }
            }
            self.listed.push(ListedBundle {
                channel: name,
                package: package_name,
                bundle,
                parts: entry.listed,
            });
            self.entries.push(Entry {
                bundle,
                channel: number,
                own: entry.own,
                common: entry.common[0],
                csv: entry.common[1],
                provides: entry.provides,
                itself: entry.itself,
                latest: entry.latest,
            });
        }
        self.channels.push(Channel {
            name,
            package,
            entries: rows(first, channel.entries.len())?,
            head: first + u32::try_from(channel.head).map_err(too_large)?,
        });
        Ok(())
    }

    /// Indexes an entry under each name that it replaces or skips; under "" when it replaces nothing. Source:
    /// operator-registry matches an empty name with every entry without `replaces`.
    fn replaced(
        &mut self,
        entry: &EncodedEntry,
        own: u32,
        texts: &mut StringTable,
    ) -> Result<(), BuildError> {
        let skips = entry.skips.iter().filter(|skip| **skip != entry.replaces);
        for name in std::iter::once(&entry.replaces).chain(skips) {
            self.replaced.entry(texts.add(name)?).or_default().push(own);
        }
        Ok(())
    }

    /// Adds the custom documents at `reply`; they arrive sorted by package.
    ///
    /// Errors: a number exceeds the width of its column.
    pub(super) fn custom(
        &mut self,
        schema: &str,
        package: &str,
        reply: ByteRange,
        texts: &mut StringTable,
    ) -> Result<(), BuildError> {
        let (schema, package) = (texts.add(schema)?, texts.add(package)?);
        self.customs.push(Custom {
            schema,
            package,
            reply,
        });
        Ok(())
    }

    /// Whether there is no package.
    pub(super) fn is_empty(&self) -> bool {
        self.packages.is_empty()
    }

    /// Sorted names of all packages.
    pub(super) fn names<'a>(&self, texts: &'a StringTable) -> impl Iterator<Item = &'a str> {
        self.packages.iter().map(|package| texts.get(package.name))
    }

    /// Sorts the bundles by channel, package and name. Source: operator-registry, `pkg/cache/cache.go`, `ListBundles`.
    pub(super) fn sort_listed(&mut self, texts: &StringTable) {
        self.listed.sort_unstable_by_key(|one| {
            [one.channel, one.package, one.bundle].map(|text| texts.get(text))
        });
    }

    /// Serialises the tables, in the order of [`TableId`].
    ///
    /// Errors: a number exceeds the width of its column.
    pub(super) fn into_bytes(
        mut self,
        texts: &StringTable,
        lines: &[Line],
        report: Vec<u8>,
        blocks: &[u32],
    ) -> Result<[Vec<u8>; TABLES], BuildError> {
        let mut lists = Vec::new();
        let mut list = |rows: Vec<u32>| {
            let first = row(&lists)?;
            lists.extend(rows);
            Ok::<_, BuildError>(Rows {
                first,
                count: row(&lists)? - first,
            })
        };
        let by_text: BTreeMap<_, _> = self
            .replaced
            .into_iter()
            .map(|(name, by)| (texts.get(name), (name, by)))
            .collect();
        let replaced = by_text.into_values().map(|(name, by)| {
            Ok(Replaced {
                name,
                by: list(by)?,
            })
        });
        let replaced = replaced.collect::<Result<Vec<_>, BuildError>>()?;
        let by_text: BTreeMap<_, _> = self
            .provided
            .into_iter()
            .map(|(api, by)| (api.map(|text| texts.get(text)), (api, by)))
            .collect();
        let provided = by_text.into_values().map(|([group, version, kind], by)| {
            Ok(Provided {
                group,
                version,
                kind,
                by: list(by.all)?,
                latest: list(by.latest)?,
            })
        });
        let provided = provided.collect::<Result<Vec<_>, BuildError>>()?;
        self.customs
            .sort_by_key(|one| [one.schema, one.package].map(|text| texts.get(text)));
        let mut tables = [const { Vec::new() }; TABLES];
        let mut set = |table: TableId, bytes| tables[table as usize] = bytes;
        set(TableId::Texts, texts.bytes().to_vec());
        set(TableId::Packages, bytes(&self.packages));
        set(TableId::Channels, bytes(&self.channels));
        set(TableId::Entries, bytes(&self.entries));
        set(TableId::Replaced, bytes(&replaced));
        set(TableId::Provided, bytes(&provided));
        set(TableId::Lists, bytes(&lists));
        set(TableId::Customs, bytes(&self.customs));
        set(TableId::Lines, bytes(lines));
        set(TableId::Report, report);
        set(TableId::Blocks, bytes(blocks));
        Ok(tables)
    }
}

fn bytes<R: TableRow>(rows: &[R]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(rows.len() * R::WIDTH);
    for row in rows {
        row.put(&mut bytes);
    }
    bytes
}

/// Number of the next row.
fn row<R>(rows: &[R]) -> Result<u32, BuildError> {
    u32::try_from(rows.len()).map_err(too_large)
}

fn rows(first: u32, count: usize) -> Result<Rows, BuildError> {
    let count = u32::try_from(count).map_err(too_large)?;
    Ok(Rows { first, count })
}
