//! Upgrades over several channels: minor version by minor version, or, in channels of extended support, two by two.
//!
//! Source: the peer's v1.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use model::Error;
use semver::Version;

use super::graph::{GraphRelease, UpdateGraph};
use super::shortest_path::{VersionSpan, of_channel, way};

/// Channels of extended support begin with it: they have every second minor version.
const EXTENDED: &str = "eus";
/// Most channels of a cross-channel upgrade: each costs a request.
const STEPS_LIMIT: u64 = 32;

/// A path from the minimum version of a set to the maximum, through channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Journey {
    /// The channels in their order; one at least.
    pub(super) channels: Vec<String>,
    from: Version,
    to: Version,
}

/// The name of a channel, as in `stable-4.14`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChannelName {
    pub(super) prefix: String,
    pub(super) major: u64,
    pub(super) minor: u64,
}

impl FromStr for ChannelName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let parsed = text.rsplit_once('-').and_then(|(prefix, number)| {
            let (major, minor) = number.split_once('.')?;
            Some(Self {
                prefix: prefix.to_owned(),
                major: major.parse().ok()?,
                minor: minor.parse().ok()?,
            })
        });
        parsed.ok_or_else(|| {
            of_channel(
                text,
                "does not end as in stable-4.14: the channel after it is unknown",
            )
        })
    }
}

impl fmt::Display for ChannelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}.{}", self.prefix, self.major, self.minor)
    }
}

/// The cross-channel upgrade that several channels ask for, each with its version range; none where one channel has both
/// ends. Of channels of the same version, the last one alone is used.
///
/// Errors: Invalid – the name of a channel has no version, or the steps do not reach the last one.
pub(super) fn journey(spans: &[(&str, &VersionSpan)]) -> Result<Option<Journey>, Error> {
    // The first configured one of equals, for both ends.
    let lowest = spans.iter().min_by_key(|(_, span)| &span.min);
    let highest = spans.iter().rev().max_by_key(|(_, span)| &span.max);
    let (Some((first, low)), Some((last, high))) = (lowest, highest) else {
        return Ok(None);
    };
    if first == last {
        return Ok(None);
    }
    let (mut at, end): (ChannelName, ChannelName) = (first.parse()?, last.parse()?);
    let step = if at.prefix == EXTENDED { 2 } else { 1 };
    let apart = end.minor.checked_sub(at.minor);
    let steps = apart
        .filter(|apart| at.major == end.major && apart % step == 0 && apart / step <= STEPS_LIMIT);
    let Some(steps) = steps.map(|apart| apart / step) else {
        let reason = format!(
            "is not reached from {first} by steps of {step}: name a channel in between, or mirror them by separate sets"
        );
        return Err(of_channel(last, &reason));
    };
    let mut channels = Vec::new();
    for number in 0..steps {
        channels.push(if number == 0 {
            (*first).to_owned()
        } else {
            at.to_string()
        });
        at.minor += step;
    }
    channels.push((*last).to_owned());
    Ok(Some(Journey {
        channels,
        from: low.min.clone(),
        to: high.max.clone(),
    }))
}

impl Journey {
    /// Its releases with their channels: in each channel the shortest path to its highest version, and at last to the end.
    /// Where a channel lacks the version that was reached before, only the end is added.
    ///
    /// Errors: Invalid – a channel is empty, or an end is not in its channel.
    pub(super) fn releases<'a>(
        &'a self,
        graphs: &'a BTreeMap<String, Arc<UpdateGraph>>,
    ) -> Result<Vec<(&'a str, &'a GraphRelease)>, Error> {
        let mut at = self.from.clone();
        let mut found = Vec::new();
        let count = self.channels.len();
        for (number, channel) in self.channels.iter().enumerate() {
            let graph = graphs.get(channel);
            let ends = graph.and_then(|graph| Some((graph, graph.ends(None)?)));
            let (graph, (_, highest)) =
                ends.ok_or_else(|| of_channel(channel, "has no releases"))?;
            let is_last = number + 1 == count;
            let to = if is_last { &self.to } else { highest };
            if graph.find(&at).is_none() {
                return self.only_end(found, graphs);
            }
            let releases = way(channel, graph, &at, to)?;
            found.extend(releases.into_iter().map(|it| (channel.as_str(), it)));
            at = to.clone();
        }
        Ok(found)
    }

    fn only_end<'a>(
        &'a self,
        mut found: Vec<(&'a str, &'a GraphRelease)>,
        graphs: &'a BTreeMap<String, Arc<UpdateGraph>>,
    ) -> Result<Vec<(&'a str, &'a GraphRelease)>, Error> {
        let Some(last) = self.channels.last() else {
            return Ok(found);
        };
        let graph = graphs.get(last);
        let graph = graph.ok_or_else(|| of_channel(last, "has no releases"))?;
        let end = way(last, graph, &self.to, &self.to)?;
        found.extend(end.into_iter().map(|it| (last.as_str(), it)).take(1));
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    fn span(min: &str, max: &str) -> VersionSpan {
        VersionSpan {
            min: version(min),
            max: version(max),
        }
    }

    fn channels(spans: &[(&str, VersionSpan)]) -> Result<Option<Vec<String>>, Error> {
        let spans: Vec<_> = spans.iter().map(|(name, span)| (*name, span)).collect();
        Ok(journey(&spans)?.map(|it| it.channels))
    }

    /// A channel in which each version leads to the next one.
    fn chain(versions: &[&str]) -> UpdateGraph {
        let node =
            |version: &&str| json!({"version": version, "payload": format!("r.io/a:{version}")});
        let nodes: Vec<_> = versions.iter().map(node).collect();
        let edges: Vec<_> = (1..versions.len()).map(|to| [to - 1, to]).collect();
        let text = json!({"nodes": nodes, "edges": edges}).to_string();
        UpdateGraph::parse(text.as_bytes()).unwrap()
    }

    fn graphs(channels: &[(&str, &[&str])]) -> BTreeMap<String, Arc<UpdateGraph>> {
        let graphs = channels.iter();
        graphs
            .map(|(name, versions)| ((*name).to_owned(), Arc::new(chain(versions))))
            .collect()
    }

    fn walked(
        spans: &[(&str, VersionSpan)],
        graphs: &BTreeMap<String, Arc<UpdateGraph>>,
    ) -> Result<Vec<String>, Error> {
        let spans: Vec<_> = spans.iter().map(|(name, span)| (*name, span)).collect();
        let journey = journey(&spans)?.unwrap();
        let releases = journey.releases(graphs)?;
        Ok(releases
            .iter()
            .map(|(channel, it)| format!("{channel} {}", it.version))
            .collect())
    }

    #[test]
    fn minor_versions_are_passed_one_by_one_and_those_of_extended_support_two_by_two() {
        let (low, high) = (span("4.12.1", "4.12.9"), span("4.15.0", "4.15.3"));
        assert_eq!(
            channels(&[("fast-4.15", high.clone()), ("stable-4.12", low.clone())])
                .unwrap()
                .unwrap(),
            ["stable-4.12", "stable-4.13", "stable-4.14", "fast-4.15"]
        );
        let high_eus = span("4.16.0", "4.16.3");
        assert_eq!(
            channels(&[("eus-4.12", low.clone()), ("eus-4.16", high_eus)])
                .unwrap()
                .unwrap(),
            ["eus-4.12", "eus-4.14", "eus-4.16"]
        );
        let both = [
            ("stable-4.12", low.clone()),
            ("fast-4.12", span("4.12.2", "4.12.10")),
        ];
        assert_eq!(channels(&both).unwrap().unwrap(), ["fast-4.12"]);
        let inside = [
            ("stable-4.12", span("4.11.0", "4.12.9")),
            ("stable-4.11", span("4.11.1", "4.11.5")),
        ];
        assert_eq!(channels(&inside).unwrap(), None);
        assert_eq!(channels(&[]).unwrap(), None);
        let missed = channels(&[("eus-4.12", low.clone()), ("stable-4.15", high)]).unwrap_err();
        assert!(
            missed
                .to_string()
                .contains("stable-4.15 is not reached from eus-4.12"),
            "{missed}"
        );
        let unnamed =
            channels(&[("stable-4.12", low), ("nightly", span("4.13.0", "4.13.1"))]).unwrap_err();
        assert!(
            unnamed.to_string().contains("nightly does not end as in"),
            "{unnamed}"
        );
    }

    #[test]
    fn each_channel_is_left_at_its_highest_version() {
        let graphs = graphs(&[
            ("stable-4.12", &["4.12.1", "4.12.2"]),
            ("stable-4.13", &["4.12.2", "4.13.0", "4.13.4"]),
            ("stable-4.14", &["4.13.4", "4.14.0", "4.14.1"]),
        ]);
        let spans = [
            ("stable-4.12", span("4.12.1", "4.12.2")),
            ("stable-4.14", span("4.14.0", "4.14.0")),
        ];
        assert_eq!(
            walked(&spans, &graphs).unwrap(),
            [
                "stable-4.12 4.12.1",
                "stable-4.12 4.12.2",
                "stable-4.13 4.12.2",
                "stable-4.13 4.13.0",
                "stable-4.13 4.13.4",
                "stable-4.14 4.13.4",
                "stable-4.14 4.14.0",
            ]
        );
    }

    #[test]
    fn where_the_way_is_blocked_the_end_is_carried_alone() {
        let graphs = graphs(&[
            ("stable-4.12", &["4.12.1", "4.12.2"]),
            ("stable-4.13", &["4.13.0", "4.13.4"]),
            ("stable-4.14", &["4.13.4", "4.14.0"]),
        ]);
        let spans = [
            ("stable-4.12", span("4.12.1", "4.12.2")),
            ("stable-4.14", span("4.14.0", "4.14.0")),
        ];
        assert_eq!(
            walked(&spans, &graphs).unwrap(),
            [
                "stable-4.12 4.12.1",
                "stable-4.12 4.12.2",
                "stable-4.14 4.14.0"
            ]
        );
    }

    proptest! {
        #[test]
        fn journeys_end_where_they_should(from in 0_u64..30, to in 0_u64..30, extended in any::<bool>()) {
            let prefix = if extended { EXTENDED } else { "stable" };
            let (first, last) = (format!("{prefix}-4.{from}"), format!("fast-4.{to}"));
            let (low, high) = (span(&format!("4.{from}.0"), &format!("4.{from}.1")), span(&format!("4.{to}.0"), &format!("4.{to}.1")));
            let spans = [(first.as_str(), &low), (last.as_str(), &high)];
            match journey(&spans) {
                Ok(Some(journey)) => {
                    let (begin, end) = if from <= to { (&first, &last) } else { (&last, &first) };
                    prop_assert_eq!(journey.channels.last(), Some(end));
                    prop_assert_eq!(journey.channels.first(), Some(begin));
                }
                Ok(None) => prop_assert_eq!(from, to),
                Err(_) => prop_assert!(extended && from < to && (to - from) % 2 == 1),
            }
        }

        #[test]
        fn names_print_back(prefix in "[a-z]{1,8}(-[a-z]{1,4})?", major in 0_u64..10, minor in 0_u64..100) {
            let name = ChannelName { prefix, major, minor };
            prop_assert_eq!(name.to_string().parse::<ChannelName>().unwrap(), name);
        }
    }
}
