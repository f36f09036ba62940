//! Version range of a channel, and the releases on its shortest path.

use model::Error;
use model::image_set::ReleaseChannel;
use regex::Regex;
use semver::Version;

use super::graph::{GraphRelease, UpdateGraph};

/// A part of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VersionSpan {
    pub(super) min: Version,
    pub(super) max: Version,
}

/// The versions of a channel in a configuration, resolved in the graph. `start` is the minimum of previous runs that
/// selected the newest release only; `filter` matches versions that may be an implicit end.
///
/// Errors: Invalid – a malformed version, or none that the filter matches.
pub(super) fn span(
    channel: &ReleaseChannel,
    graph: &UpdateGraph,
    start: Option<&Version>,
    filter: Option<&Regex>,
) -> Result<VersionSpan, Error> {
    let min = version(channel, "minVersion", &channel.min_version)?;
    let max = version(channel, "maxVersion", &channel.max_version)?;
    if let (Some(min), Some(max)) = (&min, &max) {
        let (min, max) = (min.clone(), max.clone());
        return Ok(VersionSpan { min, max });
    }
    let (lowest, highest) = graph
        .ends(filter)
        .ok_or_else(|| wrong(channel, "has no release that VERSION_FILTER fits"))?;
    let is_newest = min.is_none() && max.is_none() && !channel.full;
    let max = max.unwrap_or_else(|| highest.clone());
    let min = min.unwrap_or_else(|| match start {
        _ if !is_newest => lowest.clone(),
        Some(start) if *start <= max => start.clone(),
        _ => max.clone(),
    });
    Ok(VersionSpan { min, max })
}

/// The selected releases of the range.
///
/// Errors: Invalid – an end of a shortest path is not in the channel, or the range is empty.
pub(super) fn releases<'a>(
    channel: &ReleaseChannel,
    span: &VersionSpan,
    graph: &'a UpdateGraph,
) -> Result<Vec<&'a GraphRelease>, Error> {
    let VersionSpan { min, max } = span;
    if channel.shortest_path {
        return way(&channel.name, graph, min, max);
    }
    let between = graph.between(min, max);
    if between.is_empty() {
        let reason = format!(
            "has no release from {min} to {max}{}",
            nearest(graph, min, max)
        );
        return Err(wrong(channel, &reason));
    }
    Ok(between)
}

/// The shortest path in a channel; both ends alone where no path exists.
///
/// Errors: Invalid – an end is not in the channel.
pub(super) fn way<'a>(
    channel: &str,
    graph: &'a UpdateGraph,
    from: &Version,
    to: &Version,
) -> Result<Vec<&'a GraphRelease>, Error> {
    let end = |version: &Version| {
        graph.find(version).ok_or_else(|| {
            let near = nearest(graph, version, version);
            of_channel(channel, &format!("has no release {version}{near}"))
        })
    };
    let ends = vec![end(from)?, end(to)?];
    Ok(graph.way(from, to).unwrap_or(ends))
}

/// The version of the graph below one that it does not have, and the one above, for a message.
fn nearest(graph: &UpdateGraph, below: &Version, above: &Version) -> String {
    let all = || graph.releases().iter().map(|it| &it.version);
    let below = all().filter(|known| *known < below).max();
    let above = all().filter(|known| *known > above).min();
    let near = [below, above].into_iter().flatten();
    let near: Vec<String> = near.map(Version::to_string).collect();
    if near.is_empty() {
        return String::new();
    }
    format!(": the nearest are {}", near.join(" and "))
}

pub(super) fn version(
    channel: &ReleaseChannel,
    member: &str,
    text: &str,
) -> Result<Option<Version>, Error> {
    if text.is_empty() {
        return Ok(None);
    }
    let parsed = text.strip_prefix('v').unwrap_or(text).parse();
    parsed.map(Some).map_err(|e| {
        wrong(
            channel,
            &format!("has the {member} {text:?}, which is none: {e}"),
        )
    })
}

fn wrong(channel: &ReleaseChannel, reason: &str) -> Error {
    of_channel(&channel.name, reason)
}

pub(super) fn of_channel(channel: &str, reason: &str) -> Error {
    Error::invalid("mirror.platform.channels", format!("{channel} {reason}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const VERSIONS: [&str; 6] = ["4.14.0", "4.14.1", "4.14.2", "4.14.5", "4.14.10", "4.15.0"];

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    fn graph() -> UpdateGraph {
        let node = |version: &&str| json!({"version": version, "payload": "r.io/a:1"});
        let nodes: Vec<_> = VERSIONS.iter().map(node).collect();
        let edges = json!([[0, 1], [1, 2], [2, 4], [1, 4], [4, 5]]);
        let text = json!({"nodes": nodes, "edges": edges}).to_string();
        UpdateGraph::parse(text.as_bytes()).unwrap()
    }

    fn channel(min: &str, max: &str) -> ReleaseChannel {
        ReleaseChannel {
            name: "stable-4.14".into(),
            min_version: min.into(),
            max_version: max.into(),
            ..ReleaseChannel::default()
        }
    }

    fn chosen(channel: &ReleaseChannel, start: Option<&str>) -> Result<Vec<String>, Error> {
        let (graph, start) = (graph(), start.map(version));
        let span = span(channel, &graph, start.as_ref(), None)?;
        let releases = releases(channel, &span, &graph)?;
        Ok(releases.iter().map(|it| it.version.to_string()).collect())
    }

    #[test]
    fn releases_selected_in_a_channel() {
        let full = ReleaseChannel {
            full: true,
            ..channel("", "")
        };
        let shortest = ReleaseChannel {
            shortest_path: true,
            ..channel("4.14.0", "v4.14.10")
        };
        for (channel, start, expected) in [
            (channel("", ""), None, &VERSIONS[5..]),
            (channel("", ""), Some("4.14.10"), &VERSIONS[4..]),
            (channel("", ""), Some("4.16.0"), &VERSIONS[5..]),
            (channel("4.14.2", ""), None, &VERSIONS[2..]),
            (channel("4.14.2", ""), Some("4.14.10"), &VERSIONS[2..]),
            (channel("", "4.14.2"), None, &VERSIONS[..3]),
            (channel("4.14.1", "4.14.9"), None, &VERSIONS[1..4]),
            (full, Some("4.14.10"), &VERSIONS[..]),
            (shortest, None, &["4.14.0", "4.14.1", "4.14.10"][..]),
        ] {
            assert_eq!(chosen(&channel, start).unwrap(), expected, "{channel:?}");
        }
    }

    #[test]
    fn missing_versions_are_reported_with_the_nearest() {
        let shortest = ReleaseChannel {
            shortest_path: true,
            ..channel("4.14.3", "4.14.10")
        };
        for (channel, expected) in [
            (
                shortest,
                "no release 4.14.3: the nearest are 4.14.2 and 4.14.5",
            ),
            (
                channel("4.14.6", "4.14.8"),
                "from 4.14.6 to 4.14.8: the nearest are 4.14.5 and 4.14.10",
            ),
            (
                channel("4.16.0", ""),
                "4.16.0 to 4.15.0: the nearest are 4.15.0",
            ),
            (channel("x", ""), "minVersion"),
        ] {
            let refused = chosen(&channel, None).unwrap_err().to_string();
            assert!(refused.contains(expected), "{refused}");
        }
    }

    #[test]
    fn where_no_way_leads_both_ends_are_carried() {
        let shortest = ReleaseChannel {
            shortest_path: true,
            ..channel("4.14.5", "4.15.0")
        };
        assert_eq!(chosen(&shortest, None).unwrap(), ["4.14.5", "4.15.0"]);
    }

    proptest! {
        #[test]
        fn a_range_selects_exactly_its_versions(from in 0_u64..12, to in 0_u64..12) {
            let channel = channel(&format!("4.14.{from}"), &format!("4.14.{to}"));
            let expected: Vec<_> = VERSIONS[..5].iter().filter(|it| {
                (from..=to).contains(&version(it).patch)
            }).map(|it| (*it).to_owned()).collect();
            match chosen(&channel, None) {
                Ok(found) => prop_assert_eq!(found, expected),
                Err(_) => prop_assert!(expected.is_empty()),
            }
        }
    }
}
