//! Minimum versions that have to exist: the bundles that have them, and their upgrade paths.
//!
//! Source: the peer's v1, which requires the very version, not a later one, and then follows `replaces`.

use std::collections::{BTreeMap, BTreeSet};

use catalog::content::{Bundle, ChannelModel, PackageModel};
use catalog::filter::{ChannelSelection, PackageSelection, SelectedBundles};
use catalog::graph::{VersionBounds, keep_from};
use catalog::version::BundleVersion;

/// From which bundles on channels are taken.
pub(super) type MinimumVersions = BTreeMap<String, BTreeSet<String>>;

/// Takes minimum versions without a maximum out of a selection: [`follow`] selects their bundles. Those that the
/// configuration lacks are of previous runs; where one was withdrawn, the next version replaces it.
///
/// A channel's own version has to be in it; the package's in one of the channels, and channels without it are dropped.
///
/// Errors: a missing version, with the nearest ones.
pub(super) fn take(
    package: &PackageModel<'_>,
    selection: &mut PackageSelection,
    is_asked: impl Fn(&str) -> bool,
) -> Result<MinimumVersions, String> {
    let whole = selection.bounds.clone();
    let is_lowest = |bounds: &VersionBounds| bounds.min.is_some() && bounds.max.is_none();
    let mut own = selection.channels.iter();
    if !is_lowest(&whole) && !own.any(|channel| is_lowest(&channel.bounds)) {
        return Ok(MinimumVersions::new());
    }
    if selection.channels.is_empty() {
        let all = package.channels.iter().map(|channel| ChannelSelection {
            name: channel.name.to_owned(),
            bounds: VersionBounds::default(),
        });
        selection.channels = all.collect();
    }
    let (mut starts, mut taken) = (MinimumVersions::new(), Vec::new());
    for mut wanted in std::mem::take(&mut selection.channels) {
        let is_own = !wanted.bounds.is_open();
        if !is_own {
            wanted.bounds = whole.clone();
        }
        if is_lowest(&wanted.bounds)
            && let Some(min) = wanted.bounds.min.take()
            && let Some(channel) = package.channel(&wanted.name)
        {
            let found = having(package, channel, &min, is_asked(&wanted.name));
            if found.is_empty() && is_own {
                let place = format!("channel {:?} of package {:?}", channel.name, package.name);
                return Err(missing(&place, &min, bundles(package, channel)));
            }
            if found.is_empty() {
                continue;
            }
            starts.insert(wanted.name.clone(), found);
        }
        taken.push(wanted);
    }
    if taken.is_empty()
        && let Some(min) = &whole.min
    {
        let place = format!("package {:?}", package.name);
        return Err(missing(&place, min, package.bundles.iter()));
    }
    selection.channels = taken;
    selection.bounds = VersionBounds::default();
    Ok(starts)
}

/// Chooses the bundles of the starts.
pub(super) fn follow(
    package: &PackageModel<'_>,
    starts: &MinimumVersions,
    chosen: &mut SelectedBundles,
) {
    for (name, bundles) in starts {
        let Some(channel) = package.channel(name) else {
            continue;
        };
        let kept = keep_from(package, channel, bundles);
        chosen.channels.remove(name);
        if !kept.entries.is_empty() {
            chosen.channels.insert(name.clone(), kept.entries);
        }
        if !kept.left_out.is_empty() {
            chosen.left_out.insert(name.clone(), kept.left_out);
        }
    }
}

/// The bundles of a channel that have a version: `x.y.z` is that of `x.y.z-suffix` as well.
fn having(
    package: &PackageModel<'_>,
    channel: &ChannelModel<'_>,
    min: &BundleVersion,
    is_asked: bool,
) -> BTreeSet<String> {
    let above = bundles(package, channel).map(|bundle| &bundle.version);
    let next = above.filter(|version| *version >= min).min();
    let asked = min.to_string();
    let is_meant = |version: &BundleVersion| {
        if !is_asked {
            return Some(version) == next;
        }
        let text = version.to_string();
        version == min || text.split('-').next() == Some(asked.as_str())
    };
    let meant = bundles(package, channel).filter(|bundle| is_meant(&bundle.version));
    meant.map(|bundle| bundle.name.to_owned()).collect()
}

fn bundles<'p, 'a>(
    package: &'p PackageModel<'a>,
    channel: &'p ChannelModel<'a>,
) -> impl Iterator<Item = &'p Bundle<'a>> {
    let entries = channel.entries.iter();
    entries.filter_map(|entry| package.bundle(&entry.name))
}

fn missing<'p, 'a: 'p>(
    place: &str,
    min: &BundleVersion,
    known: impl Iterator<Item = &'p Bundle<'a>>,
) -> String {
    let known: Vec<_> = known.map(|bundle| &bundle.version).collect();
    let below = known.iter().filter(|version| **version < min).max();
    let above = known.iter().filter(|version| **version > min).min();
    let near: Vec<_> = [below, above].into_iter().flatten().collect();
    let near: Vec<_> = near.iter().map(ToString::to_string).collect();
    let near = near.join(" and ");
    format!("{place} has no version {min}, which minVersion names; the nearest are {near}")
}
