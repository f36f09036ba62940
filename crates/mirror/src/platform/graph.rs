//! Upgrade graphs: the releases of a channel, and which of them lead to which.

use std::cmp::Reverse;
use std::collections::VecDeque;

use model::Error;
use regex::Regex;
use semver::Version;
use serde::Deserialize;

/// Metadata key with a release's channels. Source: Cincinnati, as OpenShift runs it.
const CHANNELS: &str = "io.openshift.upgrades.graph.release.channels";

/// The graph of a channel.
#[derive(Debug, Clone, Default)]
pub struct UpdateGraph {
    releases: Vec<GraphRelease>,
    /// For each release, those that it can be upgraded to at once, the highest first.
    next: Vec<Vec<usize>>,
}

/// A release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphRelease {
    pub version: Version,
    /// The reference of its image.
    pub payload: String,
    /// The channels that it is in, where the graph says it.
    pub channels: Vec<String>,
}

#[derive(Deserialize)]
struct WireGraph {
    #[serde(default)]
    nodes: Vec<WireNode>,
    #[serde(default)]
    edges: Vec<(usize, usize)>,
}

#[derive(Deserialize)]
struct WireNode {
    version: Version,
    payload: String,
    #[serde(default)]
    metadata: serde_json::Map<String, serde_json::Value>,
}

impl UpdateGraph {
    /// Parses the reply of an update service.
    ///
    /// Errors: Invalid – it is no graph.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let wrong = |reason: String| Error::invalid("upgrade graph", reason);
        let wire: WireGraph = serde_json::from_slice(bytes)
            .map_err(|e| wrong(format!("expected nodes and edges as JSON: {e}")))?;
        let mut next = vec![Vec::new(); wire.nodes.len()];
        for (from, to) in wire.edges {
            if from >= next.len() || to >= next.len() {
                let count = next.len();
                let reason = format!("the edge [{from},{to}] leads to none of its {count} nodes");
                return Err(wrong(reason));
            }
            next[from].push(to);
        }
        let releases: Vec<GraphRelease> = wire.nodes.into_iter().map(GraphRelease::from).collect();
        for to in &mut next {
            to.sort_by_key(|index| Reverse(&releases[*index].version));
        }
        Ok(Self { releases, next })
    }

    pub fn is_empty(&self) -> bool {
        self.releases.is_empty()
    }

    pub fn releases(&self) -> &[GraphRelease] {
        &self.releases
    }

    /// The release of a version.
    pub fn find(&self, version: &Version) -> Option<&GraphRelease> {
        self.index(version).map(|index| &self.releases[index])
    }

    /// The lowest version and the highest one, of those that `filter` fits.
    pub fn ends(&self, filter: Option<&Regex>) -> Option<(&Version, &Version)> {
        let is_meant =
            |version: &&Version| filter.is_none_or(|it| it.is_match(&version.to_string()));
        let versions = || self.releases.iter().map(|it| &it.version).filter(is_meant);
        Some((versions().min()?, versions().max()?))
    }

    /// The releases from one version to another, the lowest first.
    pub fn between(&self, min: &Version, max: &Version) -> Vec<&GraphRelease> {
        let is_between = |it: &&GraphRelease| (min..=max).contains(&&it.version);
        let mut found: Vec<_> = self.releases.iter().filter(is_between).collect();
        found.sort_by_key(|it| &it.version);
        found
    }

    /// The shortest path between two versions, both included; of equal ones that over the highest versions. None where no
    /// path exists.
    pub fn way(&self, from: &Version, to: &Version) -> Option<Vec<&GraphRelease>> {
        let (start, end) = (self.index(from)?, self.index(to)?);
        let mut before: Vec<Option<usize>> = vec![None; self.releases.len()];
        before[start] = Some(start);
        let mut queue = VecDeque::from([start]);
        while let Some(at) = queue.pop_front() {
            if at == end {
                break;
            }
            for &next in &self.next[at] {
                if before[next].is_none() {
                    before[next] = Some(at);
                    queue.push_back(next);
                }
            }
        }
        let mut way = vec![end];
        let mut at = end;
        while at != start {
            at = before[at]?;
            way.push(at);
        }
        way.reverse();
        Some(way.into_iter().map(|at| &self.releases[at]).collect())
    }

    fn index(&self, version: &Version) -> Option<usize> {
        let mut releases = self.releases.iter();
        releases.position(|it| it.version == *version)
    }
}

impl From<WireNode> for GraphRelease {
    fn from(node: WireNode) -> Self {
        let channels = node.metadata.get(CHANNELS).and_then(|it| it.as_str());
        let channels = channels.unwrap_or_default().split(',').map(str::trim);
        Self {
            version: node.version,
            payload: node.payload,
            channels: channels
                .filter(|it| !it.is_empty())
                .map(str::to_owned)
                .collect(),
        }
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

    fn graph(versions: &[&str], edges: &[(usize, usize)]) -> UpdateGraph {
        let node =
            |version: &&str| json!({"version": version, "payload": format!("r.io/a:{version}")});
        let nodes: Vec<_> = versions.iter().map(node).collect();
        let text = json!({"nodes": nodes, "edges": edges}).to_string();
        UpdateGraph::parse(text.as_bytes()).unwrap()
    }

    fn names(releases: &[&GraphRelease]) -> Vec<String> {
        releases.iter().map(|it| it.version.to_string()).collect()
    }

    #[test]
    fn the_shortest_way_goes_over_the_highest_versions() {
        let versions = ["4.1.0", "4.1.1", "4.1.2", "4.1.3", "4.1.10"];
        let graph = graph(
            &versions,
            &[(0, 1), (1, 2), (0, 2), (0, 3), (2, 4), (3, 4), (1, 4)],
        );
        let way = graph.way(&version("4.1.0"), &version("4.1.10")).unwrap();
        assert_eq!(names(&way), ["4.1.0", "4.1.3", "4.1.10"]);
        let same = graph.way(&version("4.1.2"), &version("4.1.2")).unwrap();
        assert_eq!(names(&same), ["4.1.2"]);
        assert_eq!(graph.way(&version("4.1.10"), &version("4.1.0")), None);
        assert_eq!(graph.way(&version("4.0.0"), &version("4.1.0")), None);
        let range = graph.between(&version("4.1.1"), &version("4.1.3"));
        assert_eq!(names(&range), ["4.1.1", "4.1.2", "4.1.3"]);
    }

    #[test]
    fn the_ends_are_those_that_the_filter_fits() {
        let graph = graph(&["4.1.9", "4.1.10", "4.1.0-rc.1", "4.1.2"], &[]);
        let (lowest, highest) = graph.ends(None).unwrap();
        assert_eq!(
            (lowest, highest),
            (&version("4.1.0-rc.1"), &version("4.1.10"))
        );
        let filter = Regex::new(r"^4\.1\.\d$").unwrap();
        let (lowest, highest) = graph.ends(Some(&filter)).unwrap();
        assert_eq!((lowest, highest), (&version("4.1.2"), &version("4.1.9")));
    }

    #[test]
    fn malformed_graphs_are_refused() {
        for (text, expected) in [
            ("<html>", "expected nodes and edges"),
            (r#"{"nodes":[{"version":"4.1","payload":"a"}]}"#, "expected"),
            (r#"{"nodes":[],"edges":[[0,1]]}"#, "[0,1]"),
        ] {
            let refused = UpdateGraph::parse(text.as_bytes()).unwrap_err().to_string();
            assert!(refused.contains(expected), "{refused}");
        }
        assert!(UpdateGraph::parse(b"{}").unwrap().is_empty());
    }

    proptest! {
        #[test]
        fn anything_is_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = UpdateGraph::parse(&bytes);
        }

        #[test]
        fn a_way_goes_along_edges_and_none_is_shorter(
            edges in prop::collection::vec((0_usize..8, 0_usize..8), 0..24), from in 0_usize..8, to in 0_usize..8,
        ) {
            let versions: Vec<String> = (0..8).map(|n| format!("1.0.{n}")).collect();
            let texts: Vec<&str> = versions.iter().map(String::as_str).collect();
            let graph = graph(&texts, &edges);
            // The distance of the ends, by breadth-first search.
            let mut reached = std::collections::BTreeSet::from([from]);
            let mut steps = 0;
            while !reached.contains(&to) && steps < 8 {
                let next = edges.iter().filter(|(at, _)| reached.contains(at)).map(|(_, next)| *next);
                let next: Vec<_> = next.collect();
                reached.extend(next);
                steps += 1;
            }
            let way = graph.way(&version(texts[from]), &version(texts[to]));
            prop_assert_eq!(way.is_some(), reached.contains(&to));
            let Some(way) = way else { return Ok(()) };
            prop_assert_eq!(way.len(), steps + 1);
            let places: Vec<usize> = way.iter().map(|it| usize::try_from(it.version.patch).unwrap()).collect();
            for pair in places.windows(2) {
                prop_assert!(edges.contains(&(pair[0], pair[1])));
            }
        }
    }
}
