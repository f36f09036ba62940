//! Filtering of one package.

use std::collections::{BTreeMap, BTreeSet};

use super::edit::Members;
use super::{PackageSelection, Unsatisfied};
use crate::Document;
use crate::content::{ChannelModel, PackageModel};
use crate::graph::{KeptEntries, VersionBounds, keep};
use crate::schema::decode::decode;
use crate::schema::{
    BUNDLE, CHANNEL, ChannelEntry, ChannelProperty, DEPRECATIONS, DeprecationEntry, PACKAGE,
    Reference, kind,
};

/// Bundles by channel.
pub type Channels = BTreeMap<String, BTreeSet<String>>;

/// Selected part of a package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SelectedBundles {
    /// Selected bundles. No channel is empty.
    pub channels: Channels,
    /// Selected bundles without an upgrade path to the others of their channel.
    pub left_out: Channels,
}

/// Filtered documents of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilteredPackage {
    /// In input order.
    pub documents: Vec<Document>,
    /// Selected bundles without an upgrade path to the others of their channel.
    pub left_out: Channels,
}

/// Filters the documents of `package` by `selection`.
///
/// Errors: the selection matches nothing.
pub fn filter(
    package: &PackageModel<'_>,
    documents: &[Document],
    selection: &PackageSelection,
    full: bool,
) -> Result<FilteredPackage, Unsatisfied> {
    let SelectedBundles { channels, left_out } = choose(package, selection, full)?;
    let broken = broken(package, &channels);
    if !broken.is_empty() {
        return Err(Unsatisfied::Broken {
            package: package.name.to_owned(),
            bundles: broken.into_iter().map(str::to_owned).collect(),
        });
    }
    let default = selection.default_channel.as_deref();
    let documents = cut(package, documents, &channels, default)?;
    Ok(FilteredPackage {
        documents,
        left_out,
    })
}

/// Resolves a selection. Without version bounds it is each channel's head, or everything when `full`.
///
/// Errors: the selection matches nothing.
pub fn choose(
    package: &PackageModel<'_>,
    selection: &PackageSelection,
    full: bool,
) -> Result<SelectedBundles, Unsatisfied> {
    let mut chosen = SelectedBundles::default();
    for (channel, bounds) in wanted(package, selection)? {
        let kept = part(package, channel, &bounds, full);
        let is_named = selection.channels.iter().any(|it| it.name == channel.name);
        if kept.entries.is_empty() && is_named {
            return Err(no_versions(package, Some(channel)));
        }
        let name = || channel.name.to_owned();
        if !kept.left_out.is_empty() {
            chosen.left_out.insert(name(), kept.left_out);
        }
        if !kept.entries.is_empty() {
            chosen.channels.insert(name(), kept.entries);
        }
    }
    if chosen.channels.is_empty() {
        return Err(no_versions(package, None));
    }
    Ok(chosen)
}

/// Bundles among `channels` that the package lacks, since they break rules.
pub fn broken<'c>(package: &PackageModel<'_>, channels: &'c Channels) -> BTreeSet<&'c str> {
    let bundles = channels.values().flatten().map(String::as_str);
    bundles
        .filter(|name| package.bundle(name).is_none())
        .collect()
}

/// Reduces the documents of `package` to these channels and bundles.
///
/// The default channel stays when it is kept; else it is `default`, the only channel, or the one with the highest
/// priority.
///
/// Errors: none of these applies.
pub fn cut(
    package: &PackageModel<'_>,
    documents: &[Document],
    channels: &Channels,
    default: Option<&str>,
) -> Result<Vec<Document>, Unsatisfied> {
    let default = default_channel(package, default, channels)?;
    let part = PackageCut {
        bundles: channels.values().flatten().map(String::as_str).collect(),
        channels,
        default: &default,
    };
    let documents = documents
        .iter()
        .filter_map(|document| part.document(document));
    Ok(documents.collect())
}

/// Selected channels with their version bounds.
fn wanted<'p, 'a>(
    package: &'p PackageModel<'a>,
    selection: &PackageSelection,
) -> Result<Vec<(&'p ChannelModel<'a>, VersionBounds)>, Unsatisfied> {
    if selection.channels.is_empty() {
        let all = package.channels.iter();
        return Ok(all
            .map(|channel| (channel, selection.bounds.clone()))
            .collect());
    }
    let find = |name: &str| {
        package.channel(name).ok_or_else(|| Unsatisfied::Channel {
            package: package.name.to_owned(),
            channel: name.to_owned(),
            known: package
                .channels
                .iter()
                .map(|it| it.name.to_owned())
                .collect(),
        })
    };
    let wanted = selection.channels.iter().map(|wanted| {
        let bounds = if wanted.bounds.is_open() {
            &selection.bounds
        } else {
            &wanted.bounds
        };
        Ok((find(&wanted.name)?, bounds.clone()))
    });
    wanted.collect()
}

fn part(
    package: &PackageModel<'_>,
    channel: &ChannelModel<'_>,
    bounds: &VersionBounds,
    full: bool,
) -> KeptEntries {
    if !bounds.is_open() {
        return keep(package, channel, bounds);
    }
    let head = [channel.head()].into_iter();
    let all = channel.entries.iter().filter(|_| full);
    KeptEntries {
        entries: head
            .chain(all)
            .map(|entry| entry.name.to_string())
            .collect(),
        left_out: BTreeSet::new(),
    }
}

fn no_versions(package: &PackageModel<'_>, channel: Option<&ChannelModel<'_>>) -> Unsatisfied {
    let is_meant = |name: &str| channel.is_none_or(|channel| channel.entry(name).is_some());
    let mut versions: Vec<_> = package
        .bundles
        .iter()
        .filter(|bundle| is_meant(bundle.name))
        .map(|bundle| &bundle.version)
        .collect();
    versions.sort_unstable();
    Unsatisfied::Versions {
        package: package.name.to_owned(),
        channel: channel.map(|channel| channel.name.to_owned()),
        known: versions.iter().map(ToString::to_string).collect(),
    }
}

fn default_channel(
    package: &PackageModel<'_>,
    named: Option<&str>,
    kept: &Channels,
) -> Result<String, Unsatisfied> {
    let default = &*package.default_channel;
    let only = (kept.len() == 1).then(|| kept.keys().next().map(String::as_str));
    let by_priority = || {
        let priorities = kept.keys().filter_map(|name| {
            let priority = priority(package.channel(name)?)?;
            Some((priority, name.as_str()))
        });
        priorities.max().map(|(_, name)| name)
    };
    [Some(default), named, only.flatten()]
        .into_iter()
        .flatten()
        .find(|name| kept.contains_key(*name))
        .or_else(by_priority)
        .map(ToOwned::to_owned)
        .ok_or_else(|| Unsatisfied::DefaultChannel {
            package: package.name.to_owned(),
            default: default.to_owned(),
            kept: kept.keys().map(ToString::to_string).collect(),
        })
}

fn priority(channel: &ChannelModel<'_>) -> Option<i64> {
    let mut properties = channel.properties.iter();
    let property = properties.find(|property| property.kind == kind::CHANNEL)?;
    decode::<ChannelProperty<'_>>(property.value())
        .ok()?
        .priority()
}

/// Kept part of a package.
struct PackageCut<'p> {
    channels: &'p Channels,
    bundles: BTreeSet<&'p str>,
    default: &'p str,
}

impl PackageCut<'_> {
    /// The kept part of a document.
    fn document(&self, document: &Document) -> Option<Document> {
        let json = match document.schema.as_str() {
            PACKAGE => Members::new(&document.json)?.with("defaultChannel", &self.default),
            CHANNEL => self.channel(document)?,
            BUNDLE if !self.bundles.contains(&*document.name) => return None,
            DEPRECATIONS => self.deprecations(document)?,
            _ => document.json.clone(),
        };
        Some(Document {
            json,
            ..document.clone()
        })
    }

    fn channel(&self, document: &Document) -> Option<String> {
        let kept = self.channels.get(&*document.name)?;
        let members = Members::new(&document.json)?;
        let entries = members.items("entries", |entry: &ChannelEntry<'_>| {
            kept.contains(&*entry.name)
        });
        Some(members.with("entries", &entries))
    }

    fn deprecations(&self, document: &Document) -> Option<String> {
        let members = Members::new(&document.json)?;
        let entries = members.items("entries", |entry: &DeprecationEntry<'_>| {
            let Reference { schema, name } = &entry.reference;
            match &**schema {
                CHANNEL => self.channels.contains_key(&**name),
                BUNDLE => self.bundles.contains(&**name),
                _ => true,
            }
        });
        (!entries.is_empty()).then(|| members.with("entries", &entries))
    }
}
