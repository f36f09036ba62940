//! The releases that a set names.

use std::collections::BTreeMap;

use bytes::Bytes;
use model::Error;
use model::image_set::{PlatformSelection, ReleaseChannel, ReleaseKind};
use model::mirror_metadata::ChannelStart;
use semver::Version;

use super::cross_channel::journey;
use super::graph::GraphRelease;
use super::settings::ReleaseSources;
use super::shortest_path::{self, VersionSpan};
use super::updates::Updates;

/// Architecture of a set that names none.
const DEFAULT_ARCHITECTURE: &str = "amd64";
/// The architecture of releases whose images are indexes of all.
const ALL_ARCHITECTURES: &str = "multi";

/// A selected release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chosen {
    /// The reference of its image.
    pub(super) payload: String,
    /// None for a release that the configuration names by its image.
    pub(super) named: Option<Named>,
}

/// Reason of a selected release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) version: Version,
    pub(crate) channel: String,
    pub(crate) architecture: String,
}

/// Selected releases.
#[derive(Debug, Clone, Default)]
pub(super) struct ReleaseSelection {
    /// Each once, by its image.
    pub(super) releases: Vec<Chosen>,
    /// The configuration with the versions that were chosen.
    pub(super) platform: PlatformSelection,
    /// From where later runs go on.
    pub(super) starts: Vec<ChannelStart>,
    /// Graphs as the update services returned them, by architecture and channel.
    pub(super) graphs: BTreeMap<(String, String), Bytes>,
}

/// Selects the releases of a configuration in the graphs of the update services. `started` are the minimum versions of
/// previous runs.
///
/// Errors: Invalid – a missing channel or version, or a reply that is no graph; Unavailable.
pub(super) async fn select(
    platform: &PlatformSelection,
    started: &[ChannelStart],
    sources: &ReleaseSources,
) -> Result<ReleaseSelection, Error> {
    let mut selection = ReleaseSelection {
        platform: platform.clone(),
        ..ReleaseSelection::default()
    };
    if let Some(release) = &platform.release {
        selection.add(release, None);
    }
    if platform.channels.is_empty() {
        return Ok(selection);
    }
    let architectures = architectures(platform);
    if platform.platforms.is_empty() {
        selection.platform.architectures.clone_from(&architectures);
    }
    let mut updates = Updates::new(sources);
    let mut spans: BTreeMap<&str, VersionSpan> = BTreeMap::new();
    for architecture in &architectures {
        let own = of_architecture(platform, started, sources, &mut updates, architecture).await?;
        for (channel, own_span) in own.spans {
            let whole = spans.entry(channel).or_insert_with(|| own_span.clone());
            whole.min = own_span.min.min(whole.min.clone());
            whole.max = own_span.max.max(whole.max.clone());
        }
        for (payload, named) in own.releases {
            selection.add(&payload, Some(named));
        }
    }
    for channel in &mut selection.platform.channels {
        if let Some(span) = spans.get(channel.name.as_str()) {
            selection.starts.extend(start(channel, span, started));
            resolve(channel, span);
        }
    }
    selection.graphs = updates.into_replies();
    Ok(selection)
}

/// The releases of the update services that [`select`] chooses.
pub(crate) async fn named(
    platform: &PlatformSelection,
    started: &[ChannelStart],
    sources: &ReleaseSources,
) -> Result<Vec<(String, Named)>, Error> {
    let selection = select(platform, started, sources).await?;
    let releases = selection.releases.into_iter();
    let named = releases.filter_map(|it| Some((it.payload, it.named?)));
    Ok(named.collect())
}

impl ReleaseSelection {
    fn add(&mut self, payload: &str, named: Option<Named>) {
        if self.releases.iter().all(|it| it.payload != payload) {
            let payload = payload.to_owned();
            self.releases.push(Chosen { payload, named });
        }
    }
}

struct Own<'a> {
    architecture: &'a str,
    spans: Vec<(&'a str, VersionSpan)>,
    releases: Vec<(String, Named)>,
}

impl Own<'_> {
    fn add(&mut self, channel: &str, release: &GraphRelease) {
        let named = Named {
            version: release.version.clone(),
            channel: channel.to_owned(),
            architecture: self.architecture.to_owned(),
        };
        self.releases.push((release.payload.clone(), named));
    }
}

/// The selected architectures.
pub(crate) fn architectures(platform: &PlatformSelection) -> Vec<String> {
    match platform.architectures.as_slice() {
        // Parts of indexes are wanted, and only releases for all have those.
        _ if !platform.platforms.is_empty() => vec![ALL_ARCHITECTURES.to_owned()],
        [] => vec![DEFAULT_ARCHITECTURE.to_owned()],
        some => some.to_vec(),
    }
}

/// The architectures that are wanted of releases: for those of several, of their parts.
pub(super) fn wished_architectures(platform: &PlatformSelection) -> Vec<String> {
    match platform.platforms.as_slice() {
        [] => architectures(platform),
        parts => parts.iter().map(|it| it.architecture.clone()).collect(),
    }
}

async fn of_architecture<'a>(
    platform: &'a PlatformSelection,
    started: &[ChannelStart],
    sources: &ReleaseSources,
    updates: &mut Updates<'_>,
    architecture: &'a str,
) -> Result<Own<'a>, Error> {
    let mut own = Own {
        architecture,
        spans: Vec::new(),
        releases: Vec::new(),
    };
    let mut carried = Vec::new();
    for channel in &platform.channels {
        let graph = updates.graph(channel.kind, architecture, &channel.name);
        let graph = graph.await?;
        let start = started_at(&channel.name, started);
        let filter = sources.version_filter.as_ref();
        let span = shortest_path::span(channel, &graph, start.as_ref(), filter)?;
        let releases = shortest_path::releases(channel, &span, &graph)?;
        let versions = || releases.iter().map(|it| &it.version);
        if channel.kind == ReleaseKind::Ocp
            && let (Some(min), Some(max)) = (versions().min(), versions().max())
        {
            let (min, max) = (min.clone(), max.clone());
            carried.push((channel.name.as_str(), VersionSpan { min, max }));
        }
        for release in releases {
            own.add(&channel.name, release);
        }
        own.spans.push((&channel.name, span));
    }
    let carried: Vec<_> = carried.iter().map(|(name, span)| (*name, span)).collect();
    if let Some(journey) = journey(&carried)? {
        let mut graphs = BTreeMap::new();
        for channel in &journey.channels {
            let graph = updates.graph(ReleaseKind::Ocp, architecture, channel);
            graphs.insert(channel.clone(), graph.await?);
        }
        for (channel, release) in journey.releases(&graphs)? {
            own.add(channel, release);
        }
    }
    Ok(own)
}

fn started_at(channel: &str, started: &[ChannelStart]) -> Option<Version> {
    let start = started.iter().find(|it| it.channel == channel)?;
    start.min_version.parse().ok()
}

/// The start of a channel in metadata: none of one that the configuration bounds.
fn start(
    channel: &ReleaseChannel,
    span: &VersionSpan,
    started: &[ChannelStart],
) -> Option<ChannelStart> {
    let is_bounded = !channel.min_version.is_empty() && !channel.max_version.is_empty();
    if channel.full || is_bounded {
        return None;
    }
    let start = started_at(&channel.name, started);
    Some(ChannelStart {
        channel: channel.name.clone(),
        min_version: start.unwrap_or_else(|| span.min.clone()).to_string(),
    })
}

/// Writes the resolved versions into a channel, as metadata has it. Source: the peer, which resolves both ends of a range.
fn resolve(channel: &mut ReleaseChannel, span: &VersionSpan) {
    channel.full |= !channel.min_version.is_empty() && !channel.max_version.is_empty();
    channel.min_version = span.min.to_string();
    channel.max_version = span.max.to_string();
}
